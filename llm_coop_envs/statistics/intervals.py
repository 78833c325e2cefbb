"""Intervals of means over few episodes.

With five or fifteen episodes of skewed values, Student's interval ends too early on the side of the tail: for five
exponential draws it covers 88 %. Hall's transformation (1992, "On the removal of skewness by transformation", Journal
of the Royal Statistical Society B 54(1)) moves both ends towards the tail. The interval here reaches as far as the
further of the two on each side. From five draws on it covers 93 to 97 % of normal, exponential and clustered ones.
`docs/statistics.md` has the simulation, and the cases that are covered less well.

Student's quantile is computed here, without SciPy: SciPy is an optional dependency, and its quantiles differ from these
in the last digits, which the data files of reports print.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.util.extras import need

#: The nominal coverage of intervals.
LEVEL = 0.95


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A mean over episodes with its interval.

    Attributes:
        mean: the mean of the values.
        low: the interval's lower end; `None` with fewer than two values.
        high: the interval's upper end; `None` with fewer than two values.
        n: the number of values, without missing ones.
    """

    mean: float
    low: float | None
    high: float | None
    n: int

    def clip(self, minimum: float | None, maximum: float | None) -> Interval:
        """Cut the interval off at the smallest and largest possible value; `None` stands for no bound."""
        low, high = (
            None
            if end is None
            else float(np.clip(end, minimum, maximum))
            if (minimum, maximum) != (None, None)
            else end
            for end in (self.low, self.high)
        )
        return replace(self, low=low, high=high)


def mean_interval(
    values: Sequence[float | None], *, weights: Sequence[float] | None = None, level: float = LEVEL
) -> Interval | None:
    """Mean of one number per episode, with its interval.

    Args:
        values: one number per episode; `None` and NaN are episodes without one, and are left out. Where all are `bool`
            and count the same, the interval is the exact one of a rate.
        weights: the weight of each episode; equal by default.
        level: the interval's nominal coverage, in (0, 1).

    Returns:
        The interval, or `None` without any value.
    """
    present = [k for k, value in enumerate(values) if value is not None and not math.isnan(value)]
    if not present:
        return None
    sample = [values[k] for k in present]
    counted_weights = None if weights is None else np.array([weights[k] for k in present], dtype=float)
    mean, low, high = (
        float(row[0]) for row in mean_intervals(np.array(sample, dtype=float)[:, None], level, counted_weights)
    )
    if len(sample) < 2:
        return Interval(mean=mean, low=None, high=None, n=1)
    if counted_weights is None and all(isinstance(value, bool) for value in sample):
        low, high = exact_interval(sample.count(True), len(sample), level)
    return Interval(mean=mean, low=low, high=high, n=len(sample))


def mean_intervals(
    episodes: NDArray[np.float64], level: float = LEVEL, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Means of columns, each with its own interval, as for curves.

    Args:
        episodes: array (episodes, points) without missing values, at least one episode.
        level: nominal coverage of each point's interval, in (0, 1).
        weights: (episodes,) the weight of each; equal by default.

    Returns:
        Array (3, points): mean, lower end, upper end. With one episode the ends equal the mean: there is no interval,
        and callers must not draw one.
    """
    n = len(episodes)
    mean = np.average(episodes, axis=0, weights=weights)
    if n < 2:
        return np.stack([mean, mean, mean])
    # A weighted mean is a ratio; its linearisation gives what each episode adds to its error.
    deviations = (episodes - mean) * (1.0 if weights is None else (weights / weights.mean())[:, None])
    error = np.sqrt((deviations**2).sum(axis=0) / (n - 1) / n)
    error[error < 1e-12 * np.abs(episodes).max(axis=0)] = 0.0  # equal values, but for rounding in their sum
    reach = student_quantile((1 + level) / 2, n - 1)
    below, above = np.maximum(reach, hall_reach(deviations, error, reach)) if n > 2 else (reach, reach)
    return np.stack([mean, mean - below * error, mean + above * error])


def hall_reach(deviations: NDArray[np.float64], error: NDArray[np.float64], reach: float) -> NDArray[np.float64]:
    """Distance from the mean to the lower and upper end of Hall's (1992) interval.

    Args:
        deviations: (episodes, points) deviations from the mean, of three or more episodes.
        error: (points,) standard errors of the mean.
        reach: the distance without skewness, in standard errors.

    Returns:
        (2, points), in standard errors.
    """
    n = len(deviations)
    # In standard errors first: the third power of a tiny number would be 0.
    skewness = ((deviations / np.where(error > 0, error, np.inf)) ** 3).sum(axis=0) / ((n - 1) * (n - 2) * n)
    slope = np.where(np.abs(skewness) < 1e-6, 1e-6, skewness)  # near 0 the formula divides 0 by 0; its limit is `reach`
    return np.stack([sign * 3 / slope * (np.cbrt(1 + slope * (sign * reach - slope / 6)) - 1) for sign in (1, -1)])


def exact_interval(successes: int, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """The exact interval of a rate (Clopper and Pearson 1934)."""
    special = need("scipy.special", "the exact interval of a rate", "study")
    tail = (1 - level) / 2
    low = special.betaincinv(successes, trials - successes + 1, tail) if successes else 0.0
    high = special.betaincinv(successes + 1, trials - successes, 1 - tail) if successes < trials else 1.0
    return float(low), float(high)


@functools.cache
def student_quantile(probability: float, df: int) -> float:
    """The quantile of Student's t distribution for a probability in [0.5, 1) and 1 or more degrees of freedom."""
    low, high = 0.0, 1.0
    while student_cdf(high, df) < probability:
        high *= 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if student_cdf(middle, df) < probability else (low, middle)
    return middle


def student_cdf(t: float, df: int) -> float:
    """The distribution function of Student's t, for t >= 0.

    The closed series for integer degrees of freedom (Abramowitz and Stegun 1964, 26.7.3 and 26.7.4).
    """
    angle = math.atan(t / math.sqrt(df))
    cosine = math.cos(angle) ** 2
    total, term = 0.0, 1.0
    for k in range((df - 1) // 2 if df % 2 else df // 2):
        total += term
        term *= cosine * ((2 * k + 2) / (2 * k + 3) if df % 2 else (2 * k + 1) / (2 * k + 2))
    if df % 2:
        probability = 0.5 + (angle + math.sin(angle) * math.cos(angle) * total) / math.pi
    else:
        probability = 0.5 + math.sin(angle) * total / 2
    return min(probability, 1.0)
