"""A condition's population: who is made of its people, and who writes about them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import MissingExtra, SettingsError
from llm_coop_envs.policies.kinds import LLM
from llm_coop_envs.policies.population import Population, read_population
from llm_coop_envs.policies.population.population import POLICY
from llm_coop_envs.studies.conditions import Condition, Player, make_player
from llm_coop_envs.studies.players import asks_a_model, check_policy, full_name
from llm_coop_envs.treatments.regulator import SEAT
from llm_coop_envs.util.yaml_source import Spot, read_yaml_file


def read_crowd(spot: Spot, scenario: str, agents: Sequence[str]) -> tuple[Population, tuple[Player, ...]]:
    """The population of a condition: a mapping, or a file, looked for beside the study first.

    Returns:
        The population; and who plays its people, as it says itself, or nobody.

    Raises:
        StudyError: it is wrong, cannot have so many people as there are seats, or somebody cannot play so.
    """
    if isinstance(spot.value, str):
        beside = Path(spot.source).expanduser().parent / spot.text()
        source = read_yaml_file(beside if beside.is_file() else Path(spot.text()).expanduser())[1]
    else:
        source = spot
    crowd = read_population(source)
    try:
        crowd.check(sum(agent != SEAT for agent in agents))
        for cell in crowd.cells({None: True}):
            options = crowd.options(cell)
            check_policy(scenario, f"{LLM}:{options.pop('model', 'any')}", options)
        return crowd, _own_players(crowd, scenario)
    except (SettingsError, MissingExtra) as error:
        if isinstance(error, MissingExtra):
            source.fail(str(error))
        place = _place(source, crowd, error.field)
        place.fail(f"{error.value!r}: {error.why}" if place is not source else str(error))


def _place(source: Spot, crowd: Population, field: str) -> Spot:
    """Where to point for what is not possible."""
    below = source.mapping()
    for part, columns in (("play", crowd.play), ("attributes", crowd.attributes)):
        if part in below and field in (column.name for column in columns):
            return below[part].mapping().get(field, below[part])
    return below.get(field, source)


def _own_players(crowd: Population, scenario: str) -> tuple[Player, ...]:
    column = next((one for one in crowd.play if one.name == POLICY), None)
    if column is None:
        return ()
    given: dict[int | None, tuple[str, Mapping[str, Any]]] = {}
    for code, value in enumerate(column.values):
        entry: Any = {"name": value} if isinstance(value, str) else value
        if not isinstance(entry, Mapping) or not {"name"} <= entry.keys() <= {"name", "options"}:
            raise SettingsError(POLICY, value, "must be a policy's name, or a mapping of 'name' and 'options'")
        given[code] = full_name(scenario, str(entry["name"])), entry.get("options") or {}
    return crowd_players(crowd, given, lambda name, options: make_player(scenario, name, options))


def crowd_players(
    crowd: Population,
    given: Mapping[int | None, tuple[str, Mapping[str, Any]]],
    make: Callable[[str, Mapping[str, Any]], Player],
) -> tuple[Player, ...]:
    """A player for each kind of people in a population.

    Args:
        crowd: the population.
        given: name and options of the policy for each code of the column `"policy"`; `None` for one that is given
            beside the file.
        make: makes a player of a policy's name and options.

    Raises:
        LlmCoopError: one of them cannot be made.
    """
    players = []
    for cell in crowd.cells({code: asks_a_model(name) for code, (name, _) in given.items()}):
        name, options = given[cell.get(POLICY)]
        own = {key: value for key, value in crowd.options(cell).items() if key != "model" or name == LLM}
        players.append(replace(make(name, {**options, **own}), share=crowd.share(cell), cell=cell))
    return tuple(players)


def with_writer(condition: Condition, crowd: Population) -> Condition:
    """The condition with its population, and with the model that writes backgrounds, if there is one."""
    background = crowd.background
    writer = None
    if background is not None and background.model:
        options = {"preset": "none", "parameters": {"default": dict(background.options)}}
        writer = Player(policy=f"{LLM}:{background.model}", options=options, endpoint=background.endpoint)
    return replace(condition, population=crowd.data, writer=writer)
