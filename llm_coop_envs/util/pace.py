"""How long work still takes, by how fast the last stretch of it went."""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

SURE_SECONDS = 5.0  # before they have passed, nothing is said
_STRETCH = 1 / 4  # of the time so far says how fast work goes now
_LEAST_STRETCH = 60.0  # seconds, so that a provider's bursts within a minute even out
_MOST_POINTS = 256
_BLOCKS = 8
_MANY = 64  # that wait for each place
_FASTEST = 0.3  # of the usual time; no margin of error goes below


@dataclass(frozen=True, kw_only=True)
class Remaining:
    """How long work still takes.

    Attributes:
        seconds: the estimate.
        low: the lower end of its range.
        high: the upper end of its range.
    """

    seconds: float
    low: float
    high: float

    def __str__(self) -> str:
        """The estimate in words, such as `about 12 min left (10 min to 16 min)`."""
        low, high = format_rough(self.low), format_rough(self.high)
        spread = f" ({low} to {high})" if low != high else ""
        return f"about {format_rough(self.seconds)} left{spread}"

    def scaled(self, factor: float) -> Remaining:
        """The same for a multiple of the work."""
        return Remaining(seconds=self.seconds * factor, low=self.low * factor, high=self.high * factor)


def format_rough(seconds: float) -> str:
    """Seconds as one unit with two digits at most, such as `40 s`, `12 min` or `1.5 h`."""
    if seconds < 100:
        return f"{math.ceil(seconds / 5) * 5} s" if seconds > 10 else f"{math.ceil(seconds)} s"
    if seconds < 100 * 60:
        return f"{round(seconds / 60)} min"
    hours = seconds / 3600
    return f"{hours:.1f} h" if hours < 10 else f"{round(hours)} h"


class MeasuredPace:
    """The pace of work of several kinds, whose units may cost differently.

    What a unit of each kind costs is its mean over all the time so far. `slowness` says by what factor units cost more
    in the last stretch than they cost over all, with a range from shorter and longer stretches, from a trend between
    the last two, and from how much eight parts of them differ.

    Args:
        kinds: the number of kinds.
    """

    def __init__(self, kinds: int = 1) -> None:
        self._kinds = kinds
        self._points: list[tuple[float, tuple[float, ...], tuple[float, ...]]] = []
        self._spacing = 0.0

    def record(self, now: float, spent: Sequence[float], gained: Sequence[float]) -> None:
        """Note how far the work is.

        Args:
            now: seconds on a clock that stands still while nothing is done.
            spent: seconds spent on each kind so far; several units at a time each count theirs.
            gained: units of each kind so far.
        """
        point = (now, tuple(spent), tuple(gained))
        if len(self._points) > 1 and now - self._points[-2][0] < self._spacing:
            self._points[-1] = point
            return
        self._points.append(point)
        if len(self._points) > _MOST_POINTS:  # every other one stays
            del self._points[1:-1:2]
            self._spacing = 2 * (now - self._points[0][0]) / _MOST_POINTS

    def costs(self) -> list[float] | None:
        """Seconds that a unit of each kind costs; or the mean of all; `None` if nothing was gained."""
        if not self._points:
            return None
        (_, first_spent, first_gained), (_, spent, gained) = self._points[0], self._points[-1]
        seconds = [b - a for a, b in zip(first_spent, spent, strict=True)]
        units = [b - a for a, b in zip(first_gained, gained, strict=True)]
        if math.fsum(units) <= 0 or math.fsum(seconds) <= 0:
            return None
        mean = math.fsum(seconds) / math.fsum(units)
        return [s / u if u > 0 and s > 0 else mean for s, u in zip(seconds, units, strict=True)]

    def slowness(self) -> Remaining | None:
        """The factor on `costs` of the last stretch, with its range; `None` as long as it is not known."""
        costs = self.costs()
        if costs is None:
            return None
        now, elapsed, stretch = self._last_stretch()
        if elapsed < SURE_SECONDS:
            return None
        factor = self._between(costs, now - stretch, now) or 1.0
        factors = [
            factor,
            1.0,
            self._between(costs, now - stretch / 2, now),
            self._between(costs, now - 2 * stretch, now),
        ]
        earlier = self._between(costs, now - 2 * stretch, now - stretch) if elapsed > 1.5 * stretch else None
        if earlier:  # it goes on to change as it changed
            factors.append(factor * min(2.0, max(0.5, factor / earlier)))
        seen = [one for one in factors if one]
        margin = 2 * self._error(costs, now - min(elapsed, 2 * stretch), now)
        return Remaining(seconds=factor, low=min(seen) * max(_FASTEST, 1 - margin), high=max(seen) * (1 + margin))

    def at_once(self) -> int:
        """How many units were under way at the same time in the last stretch, 1 at least."""
        now, _, stretch = self._last_stretch()
        (since, first_spent, _), (until, spent, _) = self._at(now - stretch), self._points[-1]
        return max(1, round((math.fsum(spent) - math.fsum(first_spent)) / (until - since))) if until > since else 1

    def _last_stretch(self) -> tuple[float, float, float]:
        """The time now, the time that has passed, and how much of it is the last stretch."""
        now = self._points[-1][0]
        elapsed = now - self._points[0][0]
        return now, elapsed, min(elapsed, max(_LEAST_STRETCH, elapsed * _STRETCH))

    def _error(self, costs: Sequence[float], since: float, until: float) -> float:
        """The relative standard error of the factor, from parts of equal length."""
        edges = [since + (until - since) * block / _BLOCKS for block in range(_BLOCKS + 1)]
        factors = [self._between(costs, a, b) for a, b in itertools.pairwise(edges)]
        seen = [factor for factor in factors if factor]
        if len(seen) < 3:
            return 0.5
        return statistics.stdev(seen) / math.sqrt(len(seen)) / statistics.fmean(seen)

    def _between(self, costs: Sequence[float], since: float, until: float) -> float | None:
        """The factor between two times; `None` if nothing was gained."""
        (_, first_spent, first_gained), (_, spent, gained) = self._at(since), self._at(until)
        seconds = math.fsum(spent) - math.fsum(first_spent)
        expected = math.fsum(cost * (b - a) for cost, a, b in zip(costs, first_gained, gained, strict=True))
        return seconds / expected if seconds > 0 and expected > 0 else None

    def _at(self, time: float) -> tuple[float, tuple[float, ...], tuple[float, ...]]:
        """The last point that is not later than a time."""
        return self._points[max(0, bisect.bisect_right(self._points, time, key=lambda point: point[0]) - 1)]


class CountedPace:
    """The pace of equal steps that are done one after the other."""

    def __init__(self) -> None:
        self._pace = MeasuredPace()
        self._begun: tuple[float, int] | None = None

    def remaining(self, now: float, done: int, total: int) -> Remaining | None:
        """Note how many steps are done, and estimate the others; `None` as long as that is not known."""
        self._begun = self._begun or (now, done)
        self._pace.record(now, (now - self._begun[0],), (done - self._begun[1],))
        costs, slowness = self._pace.costs(), self._pace.slowness()
        return None if costs is None or slowness is None else slowness.scaled(costs[0] * (total - done))


def makespan(under_way: Iterable[float], waiting: Iterable[float], places: int) -> tuple[float, float]:
    """Seconds until all is done: if each takes as long as it takes alone, and if those that run share all power.

    Args:
        under_way: seconds that each of those under way still takes.
        waiting: seconds of each of those that wait for a place, in their order.
        places: how many run at the same time.
    """
    free_at, later = list(under_way), list(waiting)
    places = max(1, places, len(free_at))
    together = (math.fsum(free_at) + math.fsum(later)) / min(places, max(1, len(free_at) + len(later)))
    if len(later) > _MANY * places:  # who comes last makes no difference
        return together, together
    free_at += [0.0] * (places - len(free_at))
    heapq.heapify(free_at)
    for seconds in later:
        heapq.heapreplace(free_at, free_at[0] + seconds)
    return max(free_at), together
