"""What of a run is still to be played, and how long that will take."""

from __future__ import annotations

from collections.abc import Sequence

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.registry import scenarios
from llm_coop_envs.errors import RunError, StudyError
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.tables import read_episode
from llm_coop_envs.runs.watcher import Watcher
from llm_coop_envs.runs.workers import Finished, Task
from llm_coop_envs.studies.study import EVERY_EPISODE
from llm_coop_envs.util.checks import suggestion

SURE_SECONDS = 5.0  # before they have passed, nothing is said about the rest


def missing_episodes(run: Run) -> list[Task]:
    """The episodes to play, conditions taking turns; damaged files count as missing."""
    there = run.finished()
    tasks: list[Task] = []
    for i in range(max(len(c.seeds) for c in run.conditions)):
        for index, condition in enumerate(run.conditions):
            if i < len(condition.seeds) and not usable(run, condition.name, condition.seeds[i], there):
                tasks.append((index, condition.seeds[i]))
    return tasks


def usable(run: Run, condition: str, seed: int, there: set[tuple[str, int]]) -> bool:
    """Whether an episode is among those that are there, and can be read."""
    if (condition, seed) not in there:
        return False
    try:
        run.read_events(condition, seed)
    except RunError:
        return False
    return True


class Remaining:
    """Counts what was played, and says how long the rest will take."""

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

    def done(self, done: Finished) -> None:
        """An episode is there."""
        index, seed = done.task
        self._left[index] -= 1
        self._spent[index].append(done.seconds)
        remaining = None
        if not self._with_models:  # how long answers take is not for us to say
            remaining = estimate(self._left, self._spent) / min(self._workers, max(1, sum(self._left)))
        self._watcher.episode(self._run.conditions[index].name, seed, done.seconds, remaining)
        self.played += 1
        self._run.change(finished=self._run.manifest["finished"] + 1)
        self._measures.check(done.task)


def estimate(left: Sequence[int], spent: Sequence[Sequence[float]]) -> float:
    """Seconds of work that remain: each condition at its own mean, unknown ones at the mean of all.

    Args:
        left: episodes to play, by condition.
        spent: seconds of each episode that was played, by condition.
    """
    known = [seconds for one in spent for seconds in one]
    overall = sum(known) / len(known) if known else 0.0
    means = [sum(one) / len(one) if one else overall for one in spent]
    return sum(count * mean for count, mean in zip(left, means, strict=True))


class TimeLeft:
    """How long episodes side by side still take, when each has played a share of its rounds.

    Args:
        episodes: how many there are to play.

    Attributes:
        shares: what of each episode was played, in [0, 1].
    """

    def __init__(self, episodes: int) -> None:
        self.shares: dict[Task, float] = {}
        self._episodes = episodes
        self._since: dict[Task, tuple[float, float]] = {}

    def follow(self, task: Task, env: ScenarioEnv) -> None:
        """Note how far an episode is; one without a setting `rounds` counts when it is done."""
        rounds = getattr(env.settings, "rounds", None)
        self.shares[task] = 0.0 if rounds is None else min(1.0, max(0, env.round - 1) / rounds)

    def left(self, now: float, *, begun: bool) -> float | None:
        """Seconds that remain if episodes last all their rounds; `None` as long as that cannot be said.

        As long as the slowest episode under way takes at its own pace, or all of them at the pace of all so far.

        Args:
            now: seconds on any clock.
            begun: whether what takes the time has begun; the count starts then.
        """
        for task, share in self.shares.items():
            if task not in self._since or not begun:
                self._since[task] = now, share
        start = min((since for since, _ in self._since.values()), default=now)
        gained = {task: share - self._since[task][1] for task, share in self.shares.items()}
        if now - start < SURE_SECONDS or not sum(gained.values()):
            return None
        found = [(now - start) * (self._episodes - sum(self.shares.values())) / sum(gained.values())]
        found += [
            (now - self._since[task][0]) * (1 - self.shares[task]) / gain for task, gain in gained.items() if gain
        ]
        return max(found)


def count_of(number: int, noun: str) -> str:
    """A number with its noun, such as `1 episode` or `2 episodes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def clock(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _Measures:
    """Finds out early whether the measures that a study asks for exist: after each scenario's first episode."""

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
        # Conditions of other scenarios may have been left out: by --only, or because a branch begins too late for them.
        elsewhere = [one.measured for one in scenarios().values()]
        unknown = [
            name
            for name in self._run.manifest["measures"]
            if name not in self._known and not any(measured.define(name) for measured in elsewhere)
        ]
        if unknown and not self._unseen:
            raise StudyError(f"measures: nothing is called '{unknown[0]}'; {suggestion(unknown[0], self._known)}")
