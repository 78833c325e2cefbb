"""Missing episodes of a run, and how long they will take."""

from __future__ import annotations

import math
from collections.abc import Sequence

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.registry import scenarios
from llm_coop_envs.errors import RunError, StudyError
from llm_coop_envs.runs.failures import Task
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.tables import read_episode
from llm_coop_envs.runs.watcher import Watcher
from llm_coop_envs.runs.workers import Finished
from llm_coop_envs.studies.study_file import EVERY_EPISODE
from llm_coop_envs.util.checks import suggestion

SURE_SECONDS = 5.0  # before they have passed, nothing is said about the rest


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
    """Whether an episode is among the finished ones, and its file can be read."""
    if (condition, seed) not in finished:
        return False
    try:
        run.read_events(condition, seed)
    except RunError:
        return False
    return True


class Progress:
    """Counts finished episodes, and tells the watcher how long the others will take."""

    def __init__(self, run: Run, tasks: Sequence[Task], workers: int, watcher: Watcher) -> None:
        self.played = 0
        self._run = run
        self._workers = workers
        self._watcher = watcher
        self._measures = _Measures(run)
        self._with_models = any(condition.asks_a_model for condition in run.conditions)
        self._left = [0] * len(run.conditions)
        for index, _ in tasks:
            self._left[index] += 1
        self._spent: list[list[float]] = [[] for _ in run.conditions]

    def record_finished(self, done: Finished) -> None:
        """Count an episode that was written.

        Raises:
            StudyError: the study asks for a measure that no episode has.
        """
        index, seed = done.task
        self._left[index] -= 1
        self._spent[index].append(done.seconds)
        remaining = None
        if not self._with_models:  # the time of answers cannot be estimated from other episodes
            remaining = estimate_seconds(self._left, self._spent) / min(self._workers, max(1, sum(self._left)))
        self._watcher.episode(self._run.conditions[index].name, seed, done.seconds, remaining)
        self.played += 1
        self._run.change(finished=self._run.manifest["finished"] + 1)
        self._measures.check(done.task)

    def record_failed(self, task: Task) -> None:
        """Expect no more time for an episode that failed."""
        self._left[task[0]] -= 1


def estimate_seconds(episodes_left: Sequence[int], spent: Sequence[Sequence[float]]) -> float:
    """Seconds of work that remain: each condition at its own mean, unknown ones at the mean of all.

    Args:
        episodes_left: episodes to play, by condition.
        spent: seconds of each episode that was played, by condition.
    """
    all_seconds = [seconds for condition_seconds in spent for seconds in condition_seconds]
    overall = math.fsum(all_seconds) / len(all_seconds) if all_seconds else 0.0
    means = [math.fsum(seconds) / len(seconds) if seconds else overall for seconds in spent]
    return math.fsum(count * mean for count, mean in zip(episodes_left, means, strict=True))


class TimeLeft:
    """Estimates how long episodes that are played side by side still take, from the shares that have been played.

    Args:
        episodes: the number of episodes to play.

    Attributes:
        shares: the share of each episode's rounds that has been played, in [0, 1].
    """

    def __init__(self, episodes: int) -> None:
        self.shares: dict[Task, float] = {}
        self._episodes = episodes
        self._since: dict[Task, tuple[float, float]] = {}

    def follow(self, task: Task, env: ScenarioEnv) -> None:
        """Note an episode's share; one without a setting `rounds` counts only when it is finished."""
        rounds = getattr(env.settings, "rounds", None)
        self.shares[task] = 0.0 if rounds is None else min(1.0, max(0, env.round - 1) / rounds)

    def seconds_left(self, now: float, *, begun: bool) -> float | None:
        """Seconds that remain if episodes last all their rounds; `None` as long as that is not known.

        The larger of two bounds: the slowest episode under way at its own pace, and all episodes at the common pace.

        Args:
            now: seconds on any clock.
            begun: whether models are being asked; shares that a journal answers at once say nothing about the pace.
        """
        for task, share in self.shares.items():
            if task not in self._since or not begun:
                self._since[task] = now, share
        start = min((since for since, _ in self._since.values()), default=now)
        gained = {task: share - self._since[task][1] for task, share in self.shares.items()}
        if now - start < SURE_SECONDS or not math.fsum(gained.values()):
            return None
        bounds = [(now - start) * (self._episodes - math.fsum(self.shares.values())) / math.fsum(gained.values())]
        bounds += [
            (now - self._since[task][0]) * (1 - self.shares[task]) / gain for task, gain in gained.items() if gain
        ]
        return max(bounds)


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
