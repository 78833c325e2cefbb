"""Say before anything is paid that the episodes of an arm may be copies of one."""

from __future__ import annotations

from llm_coop_envs.statistics.comparison import FEWEST_COURSES
from llm_coop_envs.studies.conditions import Condition, Player
from llm_coop_envs.studies.families import comparisons
from llm_coop_envs.studies.players import asks_a_model, describe_model
from llm_coop_envs.studies.study import Study


def may_be_copies(study: Study) -> str:
    """A sentence on the compared conditions whose models are all asked at temperature 0; empty if there are none.

    The same question then has the same answer. Where nothing else draws, all seeds are one course of play.
    """
    compared = {condition.name: condition for pair in comparisons(study.conditions) for condition in pair}
    names = [name for name, condition in compared.items() if len(condition.seeds) > 1 and _is_cold(condition)]
    if not names:
        return ""
    return (
        f"Temperature 0 in {', '.join(names)}: the same question has the same answer, so that episodes may be "
        f"copies of one; nothing is claimed where they leave an arm fewer than {FEWEST_COURSES} distinct courses."
    )


def _is_cold(condition: Condition) -> bool:
    """Whether language models play, all of them at temperature 0."""
    models = [player for player in condition.players if asks_a_model(player.policy)]
    temperatures = [value for player in models for value in _temperatures(condition.scenario, player)]
    return bool(models) and all(value == 0 for value in temperatures)


def _temperatures(scenario: str, player: Player) -> list[float | None]:
    """The temperatures at which a model is asked in a scenario; `None` for the provider's default."""
    parameters = describe_model(player.policy, player.options, {scenario})["settings"]["parameters"]
    # Names are those of scenarios, or of their calls: "bertrand", "bertrand.plan".
    own = [values for name, values in parameters.items() if name.split(".")[0] == scenario]
    return [values.get("temperature") for values in own or [parameters.get("default", {})]]
