"""The suite: what the scorecard plays, made from the scenarios' tasks, a public seed and a held-out one.

Both halves are drawn by the same functions. The public half is the same for everybody; the held-out seed is drawn when
a scorecard is begun, and recorded, so that `llm-coop verify` can draw the same parameters again.
"""

from __future__ import annotations

import fnmatch
import functools
import hashlib
import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from llm_coop_envs.benchmarks.scorecard.tasks import (
    TESTED,
    UNDERSTANDING,
    Arm,
    Played,
    ScorecardTasks,
    Task,
    find_scorecard_tasks,
)
from llm_coop_envs.core.registry import find_scenario, scenarios
from llm_coop_envs.core.settings import plain
from llm_coop_envs.errors import LlmCoopError, RunError, StudyError
from llm_coop_envs.policies.kinds import parse
from llm_coop_envs.storage.folder import digest_of
from llm_coop_envs.studies.conditions import Condition, make_player
from llm_coop_envs.studies.players import asks_a_model, full_name
from llm_coop_envs.studies.seating import GivenPlayer, check_can_begin
from llm_coop_envs.studies.study import Study, parse_study
from llm_coop_envs.util.checks import suggestion

NAME, VERSION = "scorecard", 2
PUBLIC, HELD_OUT = "public", "held_out"
PUBLIC_SEED = 2402_12327
QUIZ = "quiz"
MOST = 2**31


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is played: of each task so many parameters in each half, each with so many seeds."""

    parameters: int
    seeds: int


SIZES: Mapping[str, Size] = {"full": Size(parameters=5, seeds=2), "quick": Size(parameters=2, seeds=1)}


@dataclass(frozen=True, kw_only=True)
class Part:
    """A task with one set of parameters.

    Attributes:
        scenario: whose tendencies it is about.
        plays: the scenario that is played: the same, or the quiz.
        task: the task.
        half: `PUBLIC` or `HELD_OUT`.
        number: of the set, from 1.
        settings: what was drawn.
        seeds: the environment's.
    """

    scenario: str
    plays: str
    task: Task
    half: str
    number: int
    settings: Mapping[str, Any]
    seeds: tuple[int, ...]

    @property
    def arms(self) -> Mapping[str, Arm]:
        """The ways in which it is played."""
        return self.task.arms(self.settings)

    @property
    def key(self) -> tuple[str, str]:
        """The scenario and the task's name."""
        return self.scenario, self.task.name

    @property
    def label(self) -> str:
        """The same in one word."""
        return "-".join(self.key)

    @property
    def name(self) -> str:
        """What the names of its conditions begin with."""
        return f"{self.label}-{self.half}{self.number}"

    def condition(self, arm: str) -> str:
        """The name of an arm's condition."""
        return f"{self.name}-{arm}" if arm else self.name

    def entries(self, player: Mapping[str, Any] | str) -> Iterator[dict[str, Any]]:
        """Its conditions, as a study file has them.

        Args:
            player: who is tested, as in a study file.
        """
        arms = self.arms
        for name, arm in arms.items():
            seats = {
                pattern: _seated(player, arm, len(arms)) if one == TESTED else one for pattern, one in arm.seats.items()
            }
            yield {
                "name": self.condition(name),
                "scenario": self.plays,
                "settings": {**self.settings, **arm.settings},
                "policies": seats,
                "seeds": list(self.seeds),
                **({"changes": [dict(one) for one in arm.changes]} if arm.changes else {}),
                **({"pair": self.name} if len(arms) > 1 else {}),
            }


def _seated(player: Mapping[str, Any] | str, arm: Arm, arms: int) -> Any:
    """Who is tested, in an arm; models are asked at temperature 0 where arms are compared, so that chance is out."""
    if isinstance(player, str) or not asks_a_model(player["name"]):
        return player
    more = {**({"pack": arm.pack} if arm.pack else {}), **({"temperature": 0.0} if arms > 1 else {})}
    return {**player, "options": {**player["options"], **more}}


def _right_share(played: Played) -> float | None:
    correct = [event["correct"] for event in played[""] if event["type"] == "round"]
    return float(np.mean(correct)) if correct else None


def _rules(scenario: str) -> Task:
    """The task of answering questions about a scenario."""
    return Task(
        name="rules",
        settings=lambda rng: {"about": scenario},
        scores={UNDERSTANDING: _right_share},
        about={UNDERSTANDING: "Share of right answers to questions about the rules and a situation that is shown."},
    )


def all_scorecard_tasks() -> dict[str, ScorecardTasks]:
    """The scenarios' parts of the suite."""
    found = {name: find_scorecard_tasks(name) for name in scenarios()}
    return {name: one for name, one in found.items() if one is not None}


def scorecard_task_files() -> list[Path]:
    """The files in which the scenarios' parts of the suite stand."""
    return [Path(inspect.getfile(one.questions)) for one in all_scorecard_tasks().values()]


def parts(held_out: int, size: str) -> list[Part]:
    """All that the suite plays.

    Args:
        held_out: the seed of the held-out half.
        size: a name of `SIZES`.
    """
    found = []
    for scenario, bench in all_scorecard_tasks().items():
        for task in (_rules(scenario), *bench.tasks):
            for half, seed in ((PUBLIC, PUBLIC_SEED), (HELD_OUT, held_out)):
                for number in range(1, SIZES[size].parameters + 1):
                    key = f"{half}/{scenario}/{task.name}/{number}"
                    words = np.frombuffer(hashlib.sha256(key.encode()).digest()[:16], dtype="<u4").tolist()
                    rng = np.random.default_rng([seed, *words])
                    settings = task.settings(rng)
                    found.append(
                        Part(
                            scenario=scenario,
                            plays=QUIZ if task.name == "rules" else scenario,
                            task=task,
                            half=half,
                            number=number,
                            settings=settings,
                            seeds=tuple(rng.integers(MOST, size=SIZES[size].seeds).tolist()),
                        )
                    )
    return found


def suite_hash() -> str:
    """A hash of everything that the suite asks: conditions with an example of the held-out half, questions, answers."""
    return _hash_of(tuple(all_scorecard_tasks()))


@functools.cache
def _hash_of(scenarios: tuple[str, ...]) -> str:
    every = parts(0, "full")
    asked = [
        [item.asked, f"{item.right:.6g}", f"{item.tolerance:.3g}"]  # the last digits may differ between machines
        for part in every
        if part.plays == QUIZ
        for seed in part.seeds
        for item in all_scorecard_tasks()[part.scenario].drawn_questions(seed)
    ]
    conditions = [plain(entry) for part in every for entry in part.entries(TESTED)]
    return digest_of({"version": VERSION, "conditions": conditions, "questions": asked})


@dataclass(frozen=True, kw_only=True)
class Suite:
    """The suite for somebody who is tested.

    Attributes:
        study: what is played.
        parts: what it consists of.
        players: who is tested, by the scenario that is played.
        held_out: the seed of the held-out half.
        size: a name of `SIZES`.
        left_out: a sentence on everything that these players cannot play.
    """

    study: Study
    parts: tuple[Part, ...]
    players: Mapping[str, Mapping[str, Any]]
    held_out: int
    size: str
    left_out: tuple[str, ...]


def make_suite(given: Sequence[GivenPlayer], held_out: int, size: str, only: Sequence[str] = ()) -> Suite:
    """The suite, with somebody who is tested.

    Args:
        given: each scenario is played by the first of them who can.
        held_out: the seed of the held-out half.
        size: a name of `SIZES`.
        only: tasks such as `kbc-alone`, or patterns; all by default.

    Raises:
        LlmCoopError: nobody can play anything of it, or there is no such task.
    """
    every = parts(held_out, size)
    tasks = list(dict.fromkeys(part.label for part in every))
    for pattern in only:
        if not fnmatch.filter(tasks, pattern):
            raise StudyError(f"--only '{pattern}': fits no task of the suite; it has {', '.join(tasks)}")
    chosen = [one for one in tasks if not only or any(fnmatch.fnmatchcase(one, pattern) for pattern in only)]
    every = [part for part in every if part.label in chosen]
    players: dict[str, Mapping[str, Any]] = {}
    rest = [one for one in tasks if one not in chosen]
    left_out = [f"the tasks {', '.join(rest)}, which --only does not name"] if rest else []
    for scenario in dict.fromkeys(part.plays for part in every):
        why = ""
        for one in given:
            try:
                make_player(scenario, full_name(scenario, one.name), one.options)
            except LlmCoopError as error:
                # That a rule is another scenario's needs no words.
                why = f": {error}" if parse(one.name)[0] or one.name in find_scenario(scenario).policies else why
            else:
                players[scenario] = one.entry
                break
        if scenario not in players:
            left_out.append(f"{scenario}, which nobody who was given can play{why}")
    able = [part for part in every if part.plays in players]
    if not able:
        raise _nothing(given, left_out)
    found = _suite(able, players, held_out, size, left_out)
    conditions = {one.name: one for one in found.study.conditions}
    unable: set[tuple[str, str]] = set()
    for part in able:
        if part.number > 1 or part.key in unable:
            continue
        try:
            for arm in part.arms:
                _begin(conditions[part.condition(arm)])
        except LlmCoopError as error:
            unable.add(part.key)
            who = players[part.plays]["name"]
            left_out.append(f"{part.scenario}, the task '{part.task.name}', which {who} refuses: {error}")
    played = [one for one in able if one.key not in unable]
    if not played:
        raise _nothing(given, left_out)
    return _suite(played, players, held_out, size, left_out) if unable else found


def _nothing(given: Sequence[GivenPlayer], left_out: Sequence[str]) -> StudyError:
    """That nobody can play anything."""
    rules = {name for scenario in all_scorecard_tasks() for name in find_scenario(scenario).policies}
    why = next((one for one in left_out if ": " in one), suggestion(given[0].name, sorted(rules)))
    return StudyError(f"policy '{', '.join(one.name for one in given)}': plays nothing of the suite; {why}")


def _suite(
    played: Sequence[Part], players: Mapping[str, Mapping[str, Any]], held_out: int, size: str, left_out: Sequence[str]
) -> Suite:
    entries = [plain(entry) for part in played for entry in part.entries(players[part.plays])]
    about = f"The scorecard's suite: version {VERSION}, {size}, held-out seed {held_out}."
    text = yaml.safe_dump(
        {"name": NAME, "description": about, "seed": 0, "conditions": entries}, sort_keys=False, allow_unicode=True
    )
    study = parse_study(text, "the suite")
    return Suite(
        study=study, parts=tuple(played), players=players, held_out=held_out, size=size, left_out=tuple(left_out)
    )


def _begin(condition: Condition) -> None:
    """Let the rules and learners of a condition begin an episode: what was learned may belong to other settings."""
    for player in condition.players:
        if not asks_a_model(player.policy):
            check_can_begin(condition, player)


def preregistered(suite: Suite, analysis: str) -> dict[str, Any]:
    """What is written down before anybody is asked: suite, parameters, players, seeds, and the code that will analyse.

    Args:
        suite: the suite.
        analysis: a hash of that code.
    """
    told = {
        "suite": NAME,
        "version": VERSION,
        "sha256": suite_hash(),
        "size": suite.size,
        "held_out": suite.held_out,
        "players": {name: dict(one) for name, one in suite.players.items()},
        "tasks": [list(key) for key in dict.fromkeys(part.key for part in suite.parts)],
        "left_out": list(suite.left_out),
        "study": suite.study.digest,
        "analysis": analysis,
    }
    return {**told, "preregistration": digest_of(told)}


def suite_of(told: Mapping[str, Any]) -> Suite:
    """The suite that was written down.

    Raises:
        RunError: it is another version's.
    """
    if (told["version"], told["sha256"]) != (VERSION, suite_hash()):
        raise RunError(
            f"it was played with version {told['version']} of the suite (hash {told['sha256'][:16]}), this program has "
            f"version {VERSION} (hash {suite_hash()[:16]}); use the version of llm-coop-envs that played it"
        )
    keys = [tuple(key) for key in told["tasks"]]
    played = [part for part in parts(told["held_out"], told["size"]) if part.key in keys]
    return _suite(played, told["players"], told["held_out"], told["size"], told["left_out"])
