"""How long the missing episodes of a run will take."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.runs.failures import Task
from llm_coop_envs.util.pace import MeasuredPace, Remaining, makespan

# An episode's own pace counts as much as its condition's once this share of it has been played.
_OWN_SHARE = 0.25
_EVERY = 0.5  # seconds; episodes may end much more often than anybody looks


class TimeLeft:
    """Estimates how long a session's episodes still take.

    Args:
        tasks: the episodes to play.

    Attributes:
        shares: the share of each episode's rounds that has been played, in [0, 1].
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.shares: dict[Task, float] = {}
        kinds = 1 + max((index for index, _ in tasks), default=0)
        self._waiting = dict.fromkeys(tasks)
        self._pace = MeasuredPace(kinds)
        self._spent, self._gained = [0.0] * kinds, [0.0] * kinds
        self._since: dict[Task, float] = {}  # the share with which an episode was first seen
        self._own: dict[Task, float] = {}  # seconds at the usual pace that it has taken since
        self._clock, self._now = 0.0, 0.0
        self._slowness = 1.0

    def follow(self, task: Task, env: ScenarioEnv) -> None:
        """Note an episode's share; one without a setting `rounds` counts only when it is finished."""
        rounds = getattr(env.settings, "rounds", None)
        self.shares[task] = 0.0 if rounds is None else min(1.0, max(0, env.round - 1) / rounds)

    def finish(self, task: Task, seconds: float) -> None:
        """Note that an episode has been played, and how long that took."""
        self.shares[task] = 1.0
        self._waiting.pop(task, None)
        self._gained[task[0]] += 1.0 - self._since.pop(task, 0.0)
        if self._own.pop(task, None) is None:  # nobody looked while it was played
            self._spent[task[0]] += seconds

    def drop(self, task: Task) -> None:
        """Expect no more time for an episode that failed."""
        self.shares[task] = 1.0
        for noted in (self._waiting, self._since, self._own):
            noted.pop(task, None)

    def look(self, now: float, playing: Collection[Task], *, running: bool = True) -> None:
        """Look at the episodes under way; called at least every few seconds.

        Args:
            now: seconds on any clock.
            playing: the episodes under way.
            running: whether answers come from models: shares that a journal answers at once say nothing about the
                pace, and a pause is no slowness.
        """
        passed = now - self._now if running and self._now else 0.0
        self._now = now
        self._clock += passed
        gained = list(self._gained)
        for task in playing:
            share = self.shares.get(task, 0.0)
            if task not in self._own or not running:
                self._own.setdefault(task, 0.0)
                # What it gained at once, from the journal, is taken as given.
                self._since[task] = share if not self._own[task] else self._since[task]
            else:
                self._own[task] += passed / self._slowness
                self._spent[task[0]] += passed
            gained[task[0]] += share - self._since[task]
        if running:
            self._pace.record(self._clock, self._spent, gained)

    def remaining(self, playing: Collection[Task]) -> Remaining | None:
        """How long the missing episodes take; `None` as long as that is not known.

        Args:
            playing: the episodes under way.
        """
        costs, slowness = self._pace.costs(), self._pace.slowness()
        if costs is None or slowness is None:
            return None
        self._slowness = slowness.seconds
        under_way = [self._rest(task, costs[task[0]]) for task in playing]
        waiting = [costs[index] for index, seed in self._waiting if (index, seed) not in playing]
        return _within(slowness, *makespan(under_way, waiting, self._pace.at_once()))

    def _rest(self, task: Task, cost: float) -> float:
        """Seconds that an episode under way still takes at the usual pace."""
        share = self.shares.get(task, 0.0)
        played = share - self._since.get(task, 0.0)
        whole = (self._own.get(task, 0.0) + _OWN_SHARE * cost) / (played + _OWN_SHARE)
        return (1.0 - share) * whole


class UnseenTimeLeft:
    """The same for episodes that worker processes play, of which is known only when they end.

    Args:
        episodes: the number of episodes of each condition.
        places: how many are played at the same time.
    """

    def __init__(self, episodes: Sequence[int], places: int) -> None:
        self._missing = list(episodes)
        self._places = places
        self._pace = MeasuredPace(len(episodes))
        self._spent, self._gained = [0.0] * len(episodes), [0.0] * len(episodes)
        self._next = 0.0
        self._remaining: Remaining | None = None

    def begin(self, now: float) -> None:
        """Note when the first episodes are begun."""
        self._pace.record(now, self._spent, self._gained)

    def finish(self, index: int, seconds: float, now: float) -> Remaining | None:
        """Note that an episode of a condition has been played, and estimate the others; `None` if that is not known."""
        self._missing[index] -= 1
        self._spent[index] += seconds
        self._gained[index] += 1.0
        self._pace.record(now, self._spent, self._gained)
        if now < self._next:
            return self._remaining
        self._next = now + _EVERY
        self._remaining = self._estimate()
        return self._remaining

    def drop(self, index: int) -> None:
        """Expect no more time for an episode of a condition that failed."""
        self._missing[index] -= 1

    def _estimate(self) -> Remaining | None:
        costs, slowness = self._pace.costs(), self._pace.slowness()
        if costs is None or slowness is None:
            return None
        waiting = [cost for cost, count in zip(costs, self._missing, strict=True) for _ in range(count)]
        places = min(self._places, len(waiting))
        # All but the one that has just ended are under way; their half is a fair guess.
        under_way = [cost / 2 for cost in waiting[: places - 1]] if places > 1 else []
        return _within(slowness, *makespan(under_way, waiting[len(under_way) :], places))


def _within(slowness: Remaining, alone: float, together: float) -> Remaining:
    """The estimate; its range begins where episodes share all power, and ends where each takes its time."""
    return Remaining(
        seconds=slowness.seconds * alone, low=slowness.low * min(alone, together), high=slowness.high * alone
    )
