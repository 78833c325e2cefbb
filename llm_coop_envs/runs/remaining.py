"""Missing episodes of a run, and how long they will take."""

from __future__ import annotations

import time
from collections.abc import Sequence

from llm_coop_envs.core.registry import scenarios
from llm_coop_envs.errors import RunError, StudyError
from llm_coop_envs.runs.failures import Task
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.tables import read_episode
from llm_coop_envs.runs.time_left import UnseenTimeLeft
from llm_coop_envs.runs.watcher import Watcher
from llm_coop_envs.runs.workers import Finished
from llm_coop_envs.storage.files import OversizedFile
from llm_coop_envs.studies.study_file import EVERY_EPISODE
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.pace import Remaining


def missing_episodes(run: Run) -> list[Task]:
    """The episodes to play; damaged files count as missing.

    Conditions take turns, in the study's order, and those of a pair follow each other with the same seed: wherever a
    run ends, what it has can be compared.
    """
    finished = run.finished()
    first_of: dict[str, int] = {}
    for index, condition in enumerate(run.conditions):
        first_of.setdefault(condition.streams, index)
    in_turn = sorted(enumerate(run.conditions), key=lambda one: first_of[one[1].streams])
    tasks: list[Task] = []
    for i in range(max(len(c.seeds) for c in run.conditions)):
        for index, condition in in_turn:
            if i < len(condition.seeds) and not is_usable(run, condition.name, condition.seeds[i], finished):
                tasks.append((index, condition.seeds[i]))
    return tasks


def is_usable(run: Run, condition: str, seed: int, finished: set[tuple[str, int]]) -> bool:
    """Whether an episode is among the finished ones, and its file can be read, or could be where there is memory."""
    if (condition, seed) not in finished:
        return False
    try:
        run.read_events(condition, seed)
    except OversizedFile:
        return True
    except RunError:
        return False
    return True


class Progress:
    """Counts finished episodes, and tells the watcher how long the others will take."""

    def __init__(self, run: Run, tasks: Sequence[Task], workers: int, watcher: Watcher) -> None:
        self.played = 0
        self._run = run
        self._watcher = watcher
        self._measures = _Measures(run)
        self._with_models = any(condition.asks_a_model for condition in run.conditions)
        indices = [index for index, _ in tasks]
        self._time = UnseenTimeLeft([indices.count(index) for index in range(len(run.conditions))], workers)
        self._time.begin(time.monotonic())

    def record_finished(self, done: Finished) -> Remaining | None:
        """Count an episode that was written; returns how long the others take, if that is known.

        Raises:
            StudyError: the study asks for a measure that no episode has.
        """
        index, seed = done.task
        remaining = self._time.finish(index, done.seconds, time.monotonic())
        if self._with_models:  # the time of answers cannot be estimated from other episodes
            remaining = None
        self._watcher.episode(self._run.conditions[index].name, seed, done.seconds, remaining)
        self.played += 1
        self._run.change(finished=self._run.manifest["finished"] + 1)
        self._measures.check(done.task)
        return remaining

    def record_failed(self, task: Task) -> None:
        """Expect no more time for an episode that failed."""
        self._time.drop(task[0])


def count_of(number: int, noun: str) -> str:
    """A number with its noun, such as `1 episode` or `2 episodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def format_clock(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    minutes, seconds_part = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds_part:02}" if hours else f"{minutes}:{seconds_part:02}"


class _Measures:
    """Checks after each scenario's first episode whether the measures that a study asks for exist."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._known: set[str] = {*EVERY_EPISODE}
        self._unseen = {c.scenario for c in run.conditions} if run.manifest["measures"] else set()

    def check(self, task: Task) -> None:
        condition = self._run.conditions[task[0]]
        if condition.scenario not in self._unseen:
            return
        self._known |= read_episode(self._run, condition, task[1]).metrics.keys()
        self._unseen.remove(condition.scenario)
        if self._unseen:
            return
        for name in self._run.manifest["measures"]:
            # --only, or a branch that begins too late for them, may leave out the conditions of other scenarios.
            if name not in self._known and not any(scenario.measured.define(name) for scenario in scenarios().values()):
                raise StudyError(f"measures: nothing is called '{name}'; {suggestion(name, self._known)}")
