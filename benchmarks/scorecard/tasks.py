"""Scorecard tasks of a scenario: questions about its rules, and tasks whose scores lie between 0 and 1.

A scenario's descriptor names its `ScorecardTasks` (`Scenario.scorecard`). All parameters of a task are drawn by one
function from a given generator. The public and the held-out half therefore differ in their seeds alone.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from llm_coop_envs.core.records import start_of
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.core.scenario import Event, Measures
from llm_coop_envs.interface.question import Number, Options
from llm_coop_envs.measures.information import is_same
from llm_coop_envs.measures.process import announcement_measures, talk_rounds
from llm_coop_envs.util.references import load

UNDERSTANDING, LEGALITY, COMPETENCE = "understanding", "legality", "competence"
SILENT, TALK, HONESTY = "cooperation without talk", "cooperation with talk", "honesty"
DEVIATION, PARAPHRASE, HUMAN = "response to deviation", "robustness to paraphrase", "likeness to people"

TENDENCIES: Mapping[str, str] = {
    UNDERSTANDING: "Share of questions about the rules and the situation that were answered rightly.",
    LEGALITY: "Share of choices that were legal, over all episodes of the scenario.",
    COMPETENCE: "How well it plays where nobody else can help or harm it.",
    SILENT: "How far its own kind works together where nobody may talk.",
    TALK: "How far its own kind works together where they talk.",
    HONESTY: "Share of announcements that were kept.",
    DEVIATION: "How far it answers another player's forced deviation.",
    PARAPHRASE: "How alike its choices are when the same is said in other words.",
    HUMAN: "How near its choices are to those of people.",
}
"""The tendencies in the order of the scorecard, with their meanings."""

TESTED = "tested"
"""Placeholder in an arm's seats for the player that is tested."""

Played = Mapping[str, Sequence[Event]]
"""The events of each of a task's arms, by the arm's name."""
Score = Callable[[Played], float | None]


@dataclass(frozen=True, kw_only=True)
class Item:
    """A question with its right answer.

    Attributes:
        told: the observation of a player of the scenario.
        asked: the question.
        right: the right answer.
        low: the smallest legal answer.
        high: the largest legal answer.
        integer: whether answers are whole numbers.
        tolerance: the largest error of a correct answer.
    """

    told: str
    asked: str
    right: float
    low: float
    high: float
    integer: bool = True
    tolerance: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One arm of a task.

    Attributes:
        settings: settings that differ from the task's.
        seats: the players of the seats, as in a study; `TESTED` is the player that is tested.
        changes: changes, as in a study.
        pack: the prompt pack for language models; empty for the player's own.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    seats: Mapping[str, Any] = field(default_factory=lambda: {"all": TESTED})
    changes: Sequence[Mapping[str, Any]] = ()
    pack: str = ""


SINGLE_ARM: Mapping[str, Arm] = {"": Arm()}


@dataclass(frozen=True, kw_only=True)
class Task:
    """A task: played with drawn parameters, and scored.

    Attributes:
        name: its name, part of the names of conditions.
        settings: draws the settings.
        scores: by tendency, functions that score an episode of each arm with the same seed, 0 to 1 or `None`.
        about: by tendency, what 0 and 1 mean.
        arms: returns the arms for the drawn settings; by default one.
        best: by tendency, the score of the best known reply, where it follows from the definition or was computed; else
            it is the highest of the recorded reference rows.
    """

    name: str
    settings: Callable[[np.random.Generator], dict[str, Any]]
    scores: Mapping[str, Score]
    about: Mapping[str, str]
    arms: Callable[[Mapping[str, Any]], Mapping[str, Arm]] = lambda settings: SINGLE_ARM
    best: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ScorecardTasks:
    """The questions and tasks of a scenario.

    Attributes:
        questions: draws a situation and returns questions about it.
        tasks: the tasks.
    """

    questions: Callable[[np.random.Generator], Sequence[Item]]
    tasks: tuple[Task, ...]

    def drawn_questions(self, seed: int) -> Sequence[Item]:
        """Return the questions drawn with a seed."""
        return _drawn(self.questions, seed)


@functools.lru_cache(maxsize=256)
def _drawn(questions: Callable[[np.random.Generator], Sequence[Item]], seed: int) -> Sequence[Item]:
    return questions(np.random.default_rng(seed))


def find_scorecard_tasks(scenario: str) -> ScorecardTasks | None:
    """Return a scenario's questions and tasks; `None` if it brings none.

    Raises:
        StudyError: There is no such scenario.
    """
    tasks: ScorecardTasks | None = load(find_scenario(scenario).scorecard)
    return tasks


WORDINGS = ("en-a", "en-b", "de-a")


def without_and_with_talk(
    settings: Callable[[np.random.Generator], dict[str, Any]],
    score: Score,
    measures: Measures,
    about: Mapping[str, str],
) -> tuple[Task, Task]:
    """Return two tasks, without and with talk, that score cooperation, and with talk also kept announcements.

    Args:
        settings: draws the settings.
        score: scores cooperation.
        measures: the scenario's measures.
        about: what 0 and 1 mean, for `SILENT`, `TALK` and `HONESTY`.
    """
    return (
        Task(name="silent", settings=settings, scores={SILENT: score}, about={SILENT: about[SILENT]}),
        Task(
            name="talk",
            settings=lambda rng: {**settings(rng), "talk": True},
            scores={TALK: score, HONESTY: _kept_share(measures)},
            about={name: about[name] for name in (TALK, HONESTY)},
        ),
    )


def in_other_words(settings: Callable[[np.random.Generator], dict[str, Any]], measures: Measures, about: str) -> Task:
    """Return the task that plays the same situation in all wordings, and scores how alike choices are."""
    return Task(
        name="words",
        settings=settings,
        arms=lambda drawn: {name: Arm(settings={"wording": name}, pack=name) for name in WORDINGS},
        scores={PARAPHRASE: _choice_similarity(measures)},
        about={PARAPHRASE: about},
    )


def forced_once(player: str, number: int, choice: float) -> Mapping[str, Arm]:
    """Return two arms: the unchanged one, and `forced`, in which a player is forced to a choice in one round."""
    forced = {
        "from_round": number,
        "until_round": number,
        "players": player,
        "policy": {"name": "forced", "options": {"choice": choice}},
    }
    return {"": Arm(), "forced": Arm(changes=(forced,))}


def _choice_similarity(measures: Measures) -> Score:
    """Return the score of similar choices in all arms.

    Two numbers score 1 less their distance as a share of the range, two options 1 if they are the same and else 0.
    """

    def score(played: Played) -> float | None:
        rounds = {name: talk_rounds(events, measures) for name, events in played.items()}
        first = next(iter(played.values()))
        questions = {} if measures.asked is None else measures.asked(start_of(first))
        similarities = [
            _similarity(first_round.chosen[agent], second_round.chosen[agent], questions[agent])
            for a, b in itertools.combinations(rounds.values(), 2)
            for first_round, second_round in zip(a, b, strict=False)
            for agent in first_round.chosen.keys() & second_round.chosen.keys()
        ]
        return float(np.mean(similarities)) if similarities else None

    return score


def _similarity(first: float, second: float, question: Number | Options) -> float:
    if isinstance(question, Options):
        return float(is_same(first, second))
    return 1.0 - abs(first - second) / (question.high - question.low)


def _kept_share(measures: Measures) -> Score:
    """Return the score of kept announcements: their share, `None` without any."""

    def score(played: Played) -> float | None:
        kept_share: float | None = announcement_measures(talk_rounds(played[""], measures))["kept_share"]
        return kept_share

    return score


def cut(value: float) -> float:
    """Clip a value to between 0 and 1."""
    return min(max(float(value), 0.0), 1.0)
