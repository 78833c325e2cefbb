"""The suite: everything that the scorecard plays, drawn from the scenarios' tasks with a public and a held-out seed.

Both halves are drawn by the same functions. The public half is the same for everybody. The held-out seed follows from a
commitment and a public beacon (`commitment.py`), or the tester draws it, and the scorecard says which. It is recorded,
so that `llm-coop verify` can draw the same parameters again.
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

NAME, VERSION = "scorecard", 4
PUBLIC, HELD_OUT = "public", "held_out"
PUBLIC_SEED = 2402_12327
QUIZ, RULES = "quiz", "rules"
SEED_LIMIT = 2**31


@dataclass(frozen=True, kw_only=True)
class Size:
    """How much is played.

    Attributes:
        public: the sets of parameters of each task in the public half, which only show whether it was known before.
        held_out: the sets in the held-out half, on which scores rest.
        seeds: the seeds of each set.
    """

    public: int
    held_out: int
    seeds: int

    def sets(self, half: str) -> int:
        """Return the number of sets in a half."""
        return self.public if half == PUBLIC else self.held_out


FULL, QUICK = "full", "quick"
SIZES: Mapping[str, Size] = {
    FULL: Size(public=10, held_out=50, seeds=1),
    QUICK: Size(public=2, held_out=2, seeds=1),
}


@dataclass(frozen=True, kw_only=True)
class Part:
    """A task with one set of parameters.

    Attributes:
        scenario: the scenario that its scores are about.
        plays: the scenario that is played: the same, or the quiz.
        task: the task.
        half: `PUBLIC` or `HELD_OUT`.
        number: of the set, from 1.
        settings: the drawn settings.
        seeds: the environment's seeds.
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
        """The task's arms, for the drawn settings."""
        return self.task.arms(self.settings)

    @property
    def key(self) -> tuple[str, str]:
        """The scenario and the task's name."""
        return self.scenario, self.task.name

    @property
    def label(self) -> str:
        """The scenario and the task's name in one word, such as `"kbc-alone"`."""
        return "-".join(self.key)

    @property
    def name(self) -> str:
        """The first part of its conditions' names, such as `"kbc-alone-public1"`."""
        return f"{self.label}-{self.half}{self.number}"

    def condition(self, arm: str) -> str:
        """Return the name of an arm's condition."""
        return f"{self.name}-{arm}" if arm else self.name

    def entries(self, player: Mapping[str, Any] | str) -> Iterator[dict[str, Any]]:
        """Yield its conditions, as in a study file.

        Arms share their seed, and so the game's own draws, but no random numbers of the players: what chance does to a
        choice differs between arms, as it does for a language model, and random play shows how much that is.

        Args:
            player: the player that is tested, as in a study file.
        """
        arms = self.arms
        for name, arm in arms.items():
            seats = {
                pattern: _seated(player, arm, len(arms)) if occupant == TESTED else occupant
                for pattern, occupant in arm.seats.items()
            }
            yield {
                "name": self.condition(name),
                "scenario": self.plays,
                "settings": {**self.settings, **arm.settings},
                "policies": seats,
                "seeds": list(self.seeds),
                **({"changes": [dict(change) for change in arm.changes]} if arm.changes else {}),
            }


def _seated(player: Mapping[str, Any] | str, arm: Arm, arms: int) -> Any:
    """Return the tested player of an arm. Models are asked at temperature 0 if arms are compared, to exclude chance."""
    if isinstance(player, str) or not asks_a_model(player["name"]):
        return player
    options = {**({"pack": arm.pack} if arm.pack else {}), **({"temperature": 0.0} if arms > 1 else {})}
    return {**player, "options": {**player["options"], **options}}


def _right_share(played: Played) -> float | None:
    correct = [event["correct"] for event in played[""] if event["type"] == "round"]
    return float(np.mean(correct)) if correct else None


def _rules(scenario: str) -> Task:
    """Return the task of answering questions about a scenario."""
    return Task(
        name=RULES,
        settings=lambda rng: {"about": scenario},
        scores={UNDERSTANDING: _right_share},
        about={UNDERSTANDING: "Share of right answers to questions about the rules and a situation that is shown."},
        best={UNDERSTANDING: 1.0},
    )


def all_scorecard_tasks() -> dict[str, ScorecardTasks]:
    """Return the tasks of all scenarios that bring some, by the scenario's name."""
    tasks = {name: find_scorecard_tasks(name) for name in scenarios()}
    return {name: scenario_tasks for name, scenario_tasks in tasks.items() if scenario_tasks is not None}


def scorecard_task_files() -> list[Path]:
    """Return the files that define the scenarios' tasks."""
    return [Path(inspect.getfile(tasks.questions)) for tasks in all_scorecard_tasks().values()]


def parts(held_out: int, size: str) -> list[Part]:
    """Draw all parts of the suite.

    Args:
        held_out: the seed of the held-out half.
        size: a name of `SIZES`.
    """
    drawn = []
    for scenario, brought in all_scorecard_tasks().items():
        for task in (_rules(scenario), *brought.tasks):
            for half, seed in ((PUBLIC, PUBLIC_SEED), (HELD_OUT, held_out)):
                for number in range(1, SIZES[size].sets(half) + 1):
                    key = f"{half}/{scenario}/{task.name}/{number}"
                    key_words = np.frombuffer(hashlib.sha256(key.encode()).digest()[:16], dtype="<u4").tolist()
                    rng = np.random.default_rng([seed, *key_words])
                    settings = task.settings(rng)
                    drawn.append(
                        Part(
                            scenario=scenario,
                            plays=QUIZ if task.name == RULES else scenario,
                            task=task,
                            half=half,
                            number=number,
                            settings=settings,
                            seeds=tuple(rng.integers(SEED_LIMIT, size=SIZES[size].seeds).tolist()),
                        )
                    )
    return drawn


def suite_hash() -> str:
    """Return a hash of everything that the suite asks: conditions, with held-out seed 0, and questions with answers."""
    return _hash_of(tuple(all_scorecard_tasks()))


@functools.cache
def _hash_of(scenarios: tuple[str, ...]) -> str:
    every = parts(0, FULL)
    questions = [
        [item.asked, f"{item.right:.6g}", f"{item.tolerance:.3g}"]  # the last digits may differ between machines
        for part in every
        if part.plays == QUIZ
        for seed in part.seeds
        for item in all_scorecard_tasks()[part.scenario].drawn_questions(seed)
    ]
    conditions = [plain(entry) for part in every for entry in part.entries(TESTED)]
    return digest_of({"version": VERSION, "conditions": conditions, "questions": questions})


@dataclass(frozen=True, kw_only=True)
class Suite:
    """The suite for the players that are tested.

    Attributes:
        study: the study that is played.
        parts: its parts.
        players: the tested players, by the scenario that they play.
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


def make_suite(candidates: Sequence[GivenPlayer], held_out: int, size: str, only: Sequence[str] = ()) -> Suite:
    """Make the suite for the players that are tested.

    Args:
        candidates: The players. Each scenario is played by the first of them that can play it.
        held_out: The seed of the held-out half.
        size: A name of `SIZES`.
        only: Tasks such as `kbc-alone`, or patterns; all by default. The questions about the rules of their scenarios
            are played in any case, as no score counts without them.

    Raises:
        LlmCoopError: No candidate can play any part, or there is no such task.
    """
    every = parts(held_out, size)
    tasks = list(dict.fromkeys(part.label for part in every))
    chosen = _chosen_tasks(tasks, only)
    every = [part for part in every if part.label in chosen]
    not_chosen = [task for task in tasks if task not in chosen]
    left_out = [f"the tasks {', '.join(not_chosen)}, which --only does not name"] if not_chosen else []
    players: dict[str, Mapping[str, Any]] = {}
    for scenario in dict.fromkeys(part.plays for part in every):
        player, reason = _first_able(candidates, scenario)
        if player is None:
            left_out.append(f"{scenario}, which nobody who was given can play{reason}")
        else:
            players[scenario] = player
    playable = [part for part in every if part.plays in players]
    if not playable:
        raise _nothing_to_play(candidates, left_out)
    suite = _suite(playable, players, held_out, size, left_out)
    refused = _refused_tasks(suite)
    if not refused:
        return suite
    left_out += refused.values()
    accepted = [part for part in playable if part.key not in refused]
    if not accepted:
        raise _nothing_to_play(candidates, left_out)
    return _suite(accepted, players, held_out, size, left_out)


def _chosen_tasks(tasks: Sequence[str], only: Sequence[str]) -> list[str]:
    """Return the tasks that fit one of the patterns and the questions about their rules; all tasks without patterns."""
    for pattern in only:
        if not fnmatch.filter(tasks, pattern):
            raise StudyError(f"--only '{pattern}': fits no task of the suite; it has {', '.join(tasks)}")
    fitting = [task for task in tasks if not only or any(fnmatch.fnmatchcase(task, pattern) for pattern in only)]
    questions = {f"{task.rpartition('-')[0]}-{RULES}" for task in fitting}
    return [task for task in tasks if task in fitting or task in questions]


def _first_able(candidates: Sequence[GivenPlayer], scenario: str) -> tuple[Mapping[str, Any] | None, str]:
    """Return the first candidate that can play a scenario, as in a study file; or `None` and the last refusal."""
    reason = ""
    for candidate in candidates:
        try:
            make_player(scenario, full_name(scenario, candidate.name), candidate.options)
        except LlmCoopError as error:
            # No reason for a rule of another scenario: with `--policy level_k` the market simply has no player.
            if parse(candidate.name)[0] or candidate.name in find_scenario(scenario).policies:
                reason = f": {error}"
        else:
            return candidate.entry, ""
    return None, reason


def _refused_tasks(suite: Suite) -> dict[tuple[str, str], str]:
    """Return a sentence on each task that its player refuses to begin, by the task's key.

    A task's first set of parameters stands for all of them.
    """
    conditions = {condition.name: condition for condition in suite.study.conditions}
    refused: dict[tuple[str, str], str] = {}
    for part in suite.parts:
        if part.number > 1 or part.key in refused:
            continue
        try:
            for arm in part.arms:
                _begin(conditions[part.condition(arm)])
        except LlmCoopError as error:
            name = suite.players[part.plays]["name"]
            refused[part.key] = f"{part.scenario}, the task '{part.task.name}', which {name} refuses: {error}"
    return refused


def _nothing_to_play(candidates: Sequence[GivenPlayer], left_out: Sequence[str]) -> StudyError:
    """Make the error that no candidate can play any part."""
    rules = {name for scenario in all_scorecard_tasks() for name in find_scenario(scenario).policies}
    reason = next(
        (sentence for sentence in left_out if ": " in sentence), suggestion(candidates[0].name, sorted(rules))
    )
    names = ", ".join(candidate.name for candidate in candidates)
    return StudyError(f"policy '{names}': plays nothing of the suite; {reason}")


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
    """Let the rules and learners of a condition begin an episode. Learners refuse settings they were not trained in."""
    for player in condition.players:
        if not asks_a_model(player.policy):
            check_can_begin(condition, player)


def suite_of(recorded: Mapping[str, Any]) -> Suite:
    """Make the suite of a preregistration.

    Raises:
        RunError: It is of another version.
    """
    if (recorded["version"], recorded["sha256"]) != (VERSION, suite_hash()):
        raise RunError(
            f"it was played with version {recorded['version']} of the suite (hash {recorded['sha256'][:16]}), "
            f"this program has version {VERSION} (hash {suite_hash()[:16]}); use the version of llm-coop-envs that "
            "played it"
        )
    keys = [tuple(key) for key in recorded["tasks"]]
    played = [part for part in parts(recorded["held_out"], recorded["size"]) if part.key in keys]
    return _suite(
        played,
        recorded["players"],
        recorded["held_out"],
        recorded["size"],
        recorded["left_out"],
    )
