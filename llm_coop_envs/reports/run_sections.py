"""Reading of a run into the sections of its report; every finished episode is read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import Any

from llm_coop_envs.core.scenario import Row, Scenario
from llm_coop_envs.render.charts.style import BLUE, MORE, PALETTE, VERMILION
from llm_coop_envs.reports.answers import AnswersSection
from llm_coop_envs.reports.generic import GenericSection
from llm_coop_envs.reports.page_parts import excerpt
from llm_coop_envs.reports.played import PlayedCondition
from llm_coop_envs.reports.section import ScenarioSection
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.reading import Episodes, read_portions
from llm_coop_envs.runs.tables import EpisodeTables, read_episode
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.studies.study_file import JUDGED
from llm_coop_envs.util.invalid import INVALID_ABOVE
from llm_coop_envs.util.references import load

LANGUAGE_MODEL = "language model"
SCRIPTED_ANSWERS = "scripted answers"


def new_section(scenario: Scenario) -> ScenarioSection[Any]:
    """The scenario's own section, or the generic one, without episodes."""
    section: ScenarioSection[Any] = load(scenario.report or GenericSection)(scenario)
    return section


def read_run(
    run: Run, invalid_above: float = INVALID_ABOVE, *, for_figures: bool = True
) -> tuple[list[ScenarioSection[Any]], AnswersSection | None]:
    """Read every finished episode of a run.

    Args:
        run: the run.
        invalid_above: the share of a model's decisions that fell back, or of its answers that were unreadable, above
            which a condition is marked invalid.
        for_figures: keep what figures and tables of the scenario need of each episode; measures are always kept.

    Returns:
        A section for each scenario with finished episodes, in the study's order, and the section on the models that
        answered, if any did.

    Raises:
        RunError: an episode's file is damaged.
    """
    sections = {condition.scenario: new_section(condition.spec) for condition in run.conditions}
    for section in sections.values():
        section.source = run.manifest.get("source", "")
    answers = AnswersSection(run, invalid_above)
    colors = {}
    for name in sections:
        colors.update(colours([condition for condition in run.conditions if condition.scenario == name]))
    arms: dict[str, PlayedCondition[Any]] = {}
    for played, answered in read_portions(run, _read_for_figures if for_figures else _read_measures):
        for name, arm in played.items():
            if name in arms:
                arms[name].extend(arm)
                continue
            arm.color = colors[name]
            arms[name] = arm
            sections[arm.condition.scenario].conditions.append(arm)
        for name, rows, models in answered:
            answers.add(name, rows, models)
    for name, arm in arms.items():
        played_by = (
            arm.who.replace(LANGUAGE_MODEL, SCRIPTED_ANSWERS) if answers.is_scripted_condition(name) else arm.who
        )
        arm.end(played_by, answers.invalid.get(name, ""))
    return [section for section in sections.values() if section.conditions], answers if answers.rows else None


# The answers of an episode in which a model answered: its condition, their rows, and the number of each model.
_Answered = tuple[str, list[Row], dict[str, int]]


def _read_for_figures(run: Run, episodes: Episodes) -> tuple[dict[str, PlayedCondition[Any]], list[_Answered]]:
    """The arms of some episodes, by the names of their conditions, and the answers in them."""
    sections = {condition.scenario: new_section(condition.spec) for condition, _ in episodes}
    return _read_arms(run, episodes, lambda episode: sections[episode.condition.scenario].read(episode))


def _read_measures(run: Run, episodes: Episodes) -> tuple[dict[str, PlayedCondition[Any]], list[_Answered]]:
    """As `_read_for_figures`, without what figures and tables of the scenario need."""
    return _read_arms(run, episodes, lambda episode: None)


def _read_arms(
    run: Run, episodes: Episodes, read: Callable[[EpisodeTables], Any]
) -> tuple[dict[str, PlayedCondition[Any]], list[_Answered]]:
    arms: dict[str, PlayedCondition[Any]] = {}
    answered: list[_Answered] = []
    verdicts: Mapping[str, float] = {}
    if (run.folder / "judges").is_dir():
        from llm_coop_envs.runs.judgements import read_verdicts

        verdicts = read_verdicts(run)
    for condition, seed in episodes:
        episode = read_episode(run, condition, seed)
        if (judged := verdicts.get(f"{condition.name}/{seed}")) is not None:
            episode.metrics[JUDGED] = judged
        if condition.name not in arms:
            played_by = " and ".join(sorted({str(run.manifest["policies"][name]) for name in condition.policies}))
            arms[condition.name] = PlayedCondition(condition=condition, who=played_by)
        arm = arms[condition.name]
        arm.add(episode, read)
        messages = [event for event in episode.by_type["message"] if event["text"].strip()]
        arm.said.append([(event["round"], event["text"]) for event in messages])
        arm.excerpt = arm.excerpt or excerpt(episode)
        if episode.answers:
            answered.append((condition.name, episode.answers, episode.models))
    return arms, answered


def colours(conditions: Sequence[Condition]) -> dict[str, str]:
    """Choose a colour per condition: blue for the first without talk, vermilion for the first with, others in turn."""
    others = cycle(color for color in (*PALETTE, *MORE) if color not in (BLUE, VERMILION))
    first = {False: BLUE, True: VERMILION}
    chosen: dict[str, str] = {}
    for condition in conditions:
        talk = bool(condition.settings["talk"])
        chosen[condition.name] = first.pop(talk) if talk in first else next(others)
    return chosen
