"""What two arms differ by in one measure: interval, effect size and p value, the unit being the episode.

The interval is Student's t (Welch's for arms that are not paired), the effect size has the interval that follows from
the noncentral t distribution (Steiger and Fouladi 1997), p is that of a permutation test (Fisher 1935), which is exact
as long as the rearrangements can be listed. `docs/statistics.md` says how well they hold.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from llm_coop_envs.statistics.intervals import LEVEL, Interval
from llm_coop_envs.util.extras import need

ALPHA = 0.05
MOST_LISTED = 2**16
DRAWN, DRAWN_OF_MANY, _MANY = 9_999, 1_999, 1_000
_AT_ONCE = 2_000_000


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """A measure in two arms, one value per episode.

    Attributes:
        measure: its name.
        first: its values in the arm that is compared with.
        second: those in the other arm; for the same seeds in the same order if they are paired.
        paired: whether each value of one arm belongs to one of the other.
    """

    measure: str
    first: tuple[float, ...]
    second: tuple[float, ...]
    paired: bool = True

    @property
    def differences(self) -> list[float]:
        """Second minus first, for each pair; none where they differ by rounding only, as sums in another order do."""
        pairs = zip(self.first, self.second, strict=True)
        return [0.0 if math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9) else b - a for a, b in pairs]

    @property
    def episodes(self) -> str:
        """How many there are: `"6"` pairs, or `"5 and 7"`."""
        return str(len(self.first)) if self.paired else f"{len(self.first)} and {len(self.second)}"

    @property
    def testable(self) -> bool:
        """Whether there are two pairs, or two episodes in each arm: without them there is neither interval nor p."""
        return min(len(self.first), len(self.second)) >= 2

    @cached_property
    def interval(self) -> Interval | None:
        """The mean difference with its interval by Student's t, or Welch's; `None` without values."""
        if self.paired:
            return t_interval(self.differences)
        a, b = (np.array(x, dtype=float) for x in (self.first, self.second))
        if not self.first or not self.second:
            return None
        mean, n = float(b.mean() - a.mean()), len(a) + len(b)
        if not self.testable:
            return Interval(mean=mean, low=None, high=None, n=n)
        parts = [x.var(ddof=1) / len(x) for x in (a, b)]
        squares = math.fsum(part**2 / (len(x) - 1) for part, x in zip(parts, (a, b), strict=True))
        freedom = math.fsum(parts) ** 2 / squares if squares > 0 else n - 2
        half = _quantile(freedom) * math.sqrt(math.fsum(parts))
        return Interval(mean=mean, low=mean - half, high=mean + half, n=n)

    @cached_property
    def effect(self) -> Interval | None:
        """The standardised difference with its interval; `None` if values do not vary.

        With pairs it is the mean over the standard deviation of the differences (Cohen's d_z), else Hedges' g: the
        difference of means over the pooled standard deviation, times the correction for small samples (Hedges 1981).
        """
        if not self.testable:
            return None
        n, m = len(self.first), len(self.second)
        size: float
        if self.paired:
            found = np.array(self.differences)
            spread, size, freedom, correction = found.std(ddof=1), n, n - 1, 1.0
            mean = found.mean()
        else:
            a, b = (np.array(x, dtype=float) for x in (self.first, self.second))
            size, freedom = n * m / (n + m), n + m - 2
            spread = math.sqrt(((n - 1) * a.var(ddof=1) + (m - 1) * b.var(ddof=1)) / freedom)
            correction = math.exp(math.lgamma(freedom / 2) - math.lgamma((freedom - 1) / 2)) / math.sqrt(freedom / 2)
            mean = b.mean() - a.mean()
        if not spread > 1e-9 * max(map(abs, (*self.first, *self.second))):
            return None
        value = float(mean / spread)
        special = need("scipy.special", "the interval of an effect size", "study")
        low, high = (
            float(special.nctdtrinc(freedom, at, value * math.sqrt(size))) / math.sqrt(size)
            for at in ((1 + LEVEL) / 2, (1 - LEVEL) / 2)
        )
        return Interval(
            mean=correction * value, low=correction * low, high=correction * high, n=n if self.paired else n + m
        )

    @cached_property
    def p(self) -> float | None:
        """The two-sided p value of the permutation test; `None` with fewer than two pairs, or episodes in an arm.

        Pairs are exchanged within themselves. Episodes that are not paired change arms; their statistic is Welch's t,
        which keeps the level for many episodes also where the arms' spreads differ (Janssen 1997).
        """
        if not self.testable:
            return None
        arms = (self.differences,) if self.paired else (self.first, self.second)
        return float(permutation_p(*(np.array(values, dtype=float) for values in arms)))

    @property
    def smallest_p(self) -> float:
        """The smallest p value that so many episodes can reach; 1 if there is none."""
        if not self.testable:
            return 1.0
        listed = _rearrangements(len(self.first), None if self.paired else len(self.second))
        return 2 / (listed if listed <= MOST_LISTED else 1 + _drawn(len(self.first) + len(self.second)))

    def finding(self, adjusted: float | None) -> str:
        """`"higher"`, `"lower"`, `"same"` in all pairs, `"unclear"`, or `"few"` episodes for p to come below 5 %.

        Args:
            adjusted: p, adjusted for the family it is in.
        """
        if self.testable and self.paired and not any(self.differences):
            return "same"
        if adjusted is None or self.interval is None or self.smallest_p > ALPHA:
            return "few"
        if adjusted > ALPHA:
            return "unclear"
        return "higher" if self.interval.mean > 0 else "lower"


def t_interval(values: Sequence[float]) -> Interval | None:
    """The mean of one number per episode with its interval by Student's t; `None` without values."""
    if not values:
        return None
    found = np.array(values, dtype=float)
    mean = float(found.mean())
    if len(found) < 2:
        return Interval(mean=mean, low=None, high=None, n=1)
    half = _quantile(len(found) - 1) * float(found.std(ddof=1)) / math.sqrt(len(found))
    return Interval(mean=mean, low=mean - half, high=mean + half, n=len(found))


def permutation_p(first: Any, second: Any = None) -> Any:
    """Two-sided p values of permutation tests by `scipy.stats.permutation_test`, along the last axis.

    All rearrangements are listed up to 65,536 of them (16 pairs); of more, 9,999 are drawn, always the same, and 1,999
    where there are over 1,000 episodes.

    Args:
        first: array (..., pairs) of differences, or (..., episodes) of one arm.
        second: the other arm's if they are not paired.
    """
    stats = need("scipy.stats", "a permutation test", "study")
    size = first.shape[-1] + (0 if second is None else second.shape[-1])
    listed = _rearrangements(first.shape[-1], None if second is None else second.shape[-1])
    tests = first.size // first.shape[-1]
    return stats.permutation_test(
        (first,) if second is None else (first, second),
        _mean if second is None else _welch,
        permutation_type="samples" if second is None else "independent",
        vectorized=True,
        n_resamples=MOST_LISTED if listed <= MOST_LISTED else _drawn(size if second is not None else 2 * size),
        batch=max(1, _AT_ONCE // (size * tests)),
        axis=-1,
        rng=np.random.default_rng(0),
    ).pvalue


def holm(values: Sequence[float]) -> list[float]:
    """P values of one family, adjusted so that the chance of any false finding stays below the level (Holm 1979)."""
    adjusted = [0.0] * len(values)
    reached = 0.0
    for rank, place in enumerate(sorted(range(len(values)), key=values.__getitem__)):
        reached = max(reached, min(1.0, (len(values) - rank) * values[place]))
        adjusted[place] = reached
    return adjusted


def fewest_pairs(tests: int = 1, alpha: float = ALPHA) -> int:
    """The fewest pairs with which a permutation test among so many of a family can come below the level."""
    return 1 + math.ceil(math.log2(tests / alpha))


def pairs_needed(effect: float, power: float, alpha: float = ALPHA, most: int = 1_000_000) -> int | None:
    """How many pairs find an effect with a given probability, by the noncentral t distribution.

    Args:
        effect: mean over standard deviation of the differences (d_z).
        power: the probability.
        alpha: the two-sided level.
        most: `None` is returned if more are needed.
    """
    low, high = fewest_pairs(alpha=alpha) - 1, most + 1
    while high - low > 1:
        middle = min((low + high) // 2, 2 * low)
        low, high = (low, middle) if power_of(effect, middle, alpha) >= power else (middle, high)
    return high if high <= most else None


def power_of(effect: float, pairs: int, alpha: float = ALPHA) -> float:
    """The probability that Student's two-sided test of so many pairs finds an effect d_z."""
    special = need("scipy.special", "the power of a test", "study")
    bound = float(special.stdtrit(pairs - 1, 1 - alpha / 2))
    shift = abs(effect) * math.sqrt(pairs)
    # Far out in the other tail the function gives no number; there is nothing left there.
    missed, opposite = (float(np.nan_to_num(special.nctdtr(pairs - 1, shift, at))) for at in (bound, -bound))
    return 1.0 - missed + opposite


def _quantile(freedom: float) -> float:
    special = need("scipy.special", "an interval by Student's t", "study")
    return float(special.stdtrit(freedom, (1 + LEVEL) / 2))


def _rearrangements(n: int, m: int | None) -> float:
    """In how many ways pairs can be turned round, or episodes dealt to two arms."""
    if m is None:
        return 2.0**n if n < 1_000 else math.inf
    return math.comb(n + m, n) if n + m < 1_000 else math.inf


def _drawn(episodes: int) -> int:
    return DRAWN if episodes <= _MANY else DRAWN_OF_MANY


# Both are rounded: rearrangements that differ only in how floating-point sums fell out are ties.


def _mean(differences: Any, axis: int) -> Any:
    return np.round(differences.mean(axis=axis) / (np.abs(differences).max() or 1.0), 12)


def _welch(first: Any, second: Any, axis: int) -> Any:
    # What does not vary within the arms gets a large number, not an infinite one, whose ties could not be told.
    largest = max(np.abs(first).max(), np.abs(second).max())
    error = sum(x.var(axis=axis, ddof=1) / x.shape[axis] for x in (first, second))
    apart = second.mean(axis=axis) - first.mean(axis=axis)
    return np.round(apart / np.sqrt(error + (1e-9 * largest) ** 2 + 1e-300), 9)
