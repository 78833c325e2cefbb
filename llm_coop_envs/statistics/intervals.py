"""Intervals of means over few episodes, within what a measure can be.

With five or fifteen episodes of skewed values, Student's interval ends too early on the side of the tail, and beyond
what a measure can be on the other: a share at 1.1, a count at -3. Here it is computed on a transformed scale, by the
delta method: the logarithm of the distance from the bound where a measure has one bound, the logit where it has two.
Without bounds it is Student's own. `docs/statistics.md` compares it with others by simulation, and says why this one.

Student's quantile is computed here, without SciPy: SciPy is an optional dependency, and its quantiles differ from these
in the last digits, which the data files of reports print.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.util.extras import need

#: The nominal coverage of intervals.
LEVEL = 0.95
#: Fewer episodes than these are drawn one by one, without a band, and their interval holds the middle half of them.
FEW = 10
#: How many times further than Student's interval one may reach.
FURTHEST = 2.0
_LARGEST_EXPONENT = 500.0
_WIDEST, _POINTS, _HALVINGS = 40.0, 801, 40
Floats = NDArray[np.float64]


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


@dataclass(frozen=True, kw_only=True)
class Range:
    """What a measure can be.

    Attributes:
        low: its smallest possible value; `None` for no bound.
        high: its largest possible value; `None` for no bound.
        integer: whether an episode's value is a whole number.
        exact: whether it is a yes or no, whose share over episodes has an exact interval.
    """

    low: float | None = None
    high: float | None = None
    integer: bool = False
    exact: bool = False

    def holds(self, value: float) -> bool:
        """Whether a value is possible, but for rounding of the last digits."""
        slack = 1e-9 * max(1.0, abs(value))
        low, high = (end if bound is None else bound for end, bound in ((-math.inf, self.low), (math.inf, self.high)))
        is_whole = not self.integer or float(value).is_integer()
        return is_whole and low - slack <= value <= high + slack

    def axis(self, values: Sequence[float], margin: float = 0.05) -> tuple[float, float]:
        """The ends of an axis that shows some values.

        Equal values have no distance that could set its scale. Their axis is what the measure can be, as far as it has
        bounds: shares that are all 1 lie at the end of 0 to 1, not in the middle of .95 to 1.05.

        Args:
            values: what is shown, one or more.
            margin: the room beside them, as a share of their distance.
        """
        low, high = min(values), max(values)
        if math.isclose(low, high, rel_tol=1e-9, abs_tol=1e-12):
            around = 0.5 * abs(low) or 0.5
            low = low - around if self.low is None else min(low, self.low)
            high = high + around if self.high is None else max(high, self.high)
        room = margin * (high - low)
        return low - room, high + room

    def scale(self, factor: float) -> Range:
        """The range of a measure that is shown in another unit, such as shares in per cent."""
        return Range(
            low=None if self.low is None else factor * self.low,
            high=None if self.high is None else factor * self.high,
            integer=self.integer and factor == 1.0,
        )


ANYTHING = Range()
FROM_0 = Range(low=0.0)
FROM_1 = Range(low=1.0)
COUNT = Range(low=0.0, integer=True)
COUNT_FROM_1 = Range(low=1.0, integer=True)
SHARE = Range(low=0.0, high=1.0)
YES_OR_NO = Range(low=0.0, high=1.0, integer=True, exact=True)


def mean_interval(
    values: Sequence[float | None],
    within: Range = ANYTHING,
    *,
    weights: Sequence[float] | None = None,
    level: float = LEVEL,
) -> Interval | None:
    """Mean of one number per episode, with its interval.

    Args:
        values: one number per episode; `None` and NaN are episodes without one, and are left out. Where all are `bool`
            and count the same, the interval is the exact one of a rate.
        within: what the measure can be; the interval never leaves it.
        weights: the weight of each episode; equal by default.
        level: the interval's nominal coverage, in (0, 1).

    Returns:
        The interval, or `None` without any value.
    """
    present = [k for k, value in enumerate(values) if value is not None and not math.isnan(value)]
    if not present:
        return None
    sample = [values[k] for k in present]
    if weights is None and all(isinstance(value, bool) for value in sample):
        within = YES_OR_NO
    counted_weights = None if weights is None else np.array([weights[k] for k in present], dtype=float)
    mean, low, high = (
        float(row[0])
        for row in mean_intervals(np.array(sample, dtype=float)[:, None], within, level=level, weights=counted_weights)
    )
    if len(sample) < 2:
        return Interval(mean=mean, low=None, high=None, n=1)
    return Interval(mean=mean, low=low, high=high, n=len(sample))


def mean_intervals(
    episodes: Floats, within: Range = ANYTHING, *, level: float = LEVEL, weights: Floats | None = None
) -> Floats:
    """Means of columns, each with its own interval, as for curves.

    Args:
        episodes: array (episodes, points) without missing values, at least one episode.
        within: what the measure can be; no interval leaves it.
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
    # The mean of a cluster of yes and no is a share like any other.
    if within.exact and weights is None and np.isin(episodes, (0.0, 1.0)).all():
        counts = episodes.sum(axis=0).astype(int).tolist()
        return np.stack([mean, *np.array([exact_interval(count, n, level) for count in counts]).T])
    # A weighted mean is a ratio; its linearisation gives what each episode adds to its error.
    deviations = (episodes - mean) * (1.0 if weights is None else (weights / weights.mean())[:, None])
    error = np.sqrt((deviations**2).sum(axis=0) / (n - 1) / n)
    error[error < 1e-12 * np.abs(episodes).max(axis=0)] = 0.0  # equal values, but for rounding in their sum
    low, high = transformed_ends(mean, student_quantile((1 + level) / 2, n - 1) * error, within)
    if n < FEW and weights is None:
        # Of two modes with four episodes each, Student's interval holds none: it reaches to the middle half of them.
        ordered = np.sort(episodes, axis=0)
        left_out = (n - 1) // 4
        low = np.where(error > 0, np.minimum(low, ordered[left_out]), low)
        high = np.where(error > 0, np.maximum(high, ordered[n - 1 - left_out]), high)
    return np.stack([mean, np.minimum(low, mean), np.maximum(high, mean)])


def transformed_ends(mean: Floats, reach: Floats, within: Range) -> tuple[Floats, Floats]:
    """Both ends of Student's interval on a scale without bounds, back on the measure's own.

    With a bound at 0, the mean 2 and a reach of 2, Student's interval is 0 to 4, and that of the logarithm 2/e to 2e,
    .74 to 5.4. No end is further from the mean than `FURTHEST` times Student's, which matters below five values.

    Args:
        mean: (points,) means within the range.
        reach: (points,) how far Student's interval reaches to either side; 0 where all values are equal.
        within: what the measure can be.
    """
    low, high = within.low, within.high
    if low is None:
        if high is None:
            return mean - reach, mean + reach
        mirrored = transformed_ends(-mean, reach, Range(low=-high))
        return -mirrored[1], -mirrored[0]
    place = np.maximum(mean - low, 0.0)
    # The derivative of log(place), or of its logit, turns the reach into one on the transformed scale.
    slope = place if high is None else place * np.maximum(high - mean, 0.0) / (high - low)
    changed = np.divide(reach, slope, out=np.zeros_like(reach), where=(reach > 0) & (slope > 0))
    factors = [np.exp(np.clip(sign * changed, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)) for sign in (-1, 1)]
    if high is None:
        ends = [low + place * factor for factor in factors]
    else:
        odds = [place * factor for factor in factors]
        ends = [low + (high - low) * part / (high - mean + part) for part in odds]
    return np.maximum(ends[0], mean - FURTHEST * reach), np.minimum(ends[1], mean + FURTHEST * reach)


def exact_interval(successes: int, trials: int, level: float = LEVEL) -> tuple[float, float]:
    """The exact interval of a rate (Clopper and Pearson 1934)."""
    special = need("scipy.special", "the exact interval of a rate", "study")
    tail = (1 - level) / 2
    low = special.betaincinv(successes, trials - successes + 1, tail) if successes else 0.0
    high = special.betaincinv(successes + 1, trials - successes, 1 - tail) if successes < trials else 1.0
    return float(low), float(high)


def share_interval(scores: Sequence[float], weights: Sequence[float] | None = None, level: float = LEVEL) -> Interval:
    """The mean of scores from 0 to 1 with the interval of Gaffke (2005), which is the exact one if all are 0 or 1.

    Four scores of 1 give .40 to 1, and four of .999 nearly the same: what was not seen may lie anywhere in the range.
    It is wide. It fits a gate such as the scorecard's, where an interval must not be fooled by scores that are alike.

    With scores z_1 to z_n, and one more of 0 (for the lower end) or 1 (for the upper), the ends are quantiles of the
    mean under random weights, which are those of the Bayesian bootstrap.

    Args:
        scores: two or more, in [0, 1].
        weights: the weight of each; equal by default.
        level: the nominal coverage, in (0, 1).
    """
    counts = np.ones(len(scores)) if weights is None else np.asarray(weights, dtype=float)
    counts = np.append(counts * len(scores) / counts.sum(), 1.0)
    values, tail = np.asarray(scores, dtype=float), (1 - level) / 2
    low = _quantile_of_weighted_mean(np.append(values, 0.0), counts, tail)
    high = 1 - _quantile_of_weighted_mean(np.append(1 - values, 0.0), counts, tail)
    mean = float(np.average(values, weights=weights))
    return Interval(mean=mean, low=min(low, mean), high=max(high, mean), n=len(scores))


def _quantile_of_weighted_mean(values: Floats, concentration: Floats, probability: float) -> float:
    """The quantile of a mean of values in [0, 1] whose weights are Dirichlet distributed.

    The mean is at most c where the sum of independent gamma variables, each times its value less c, is at most 0. That
    probability follows from their characteristic function (Gil-Pelaez 1951), here over the logarithm of its argument,
    where the trapezoidal rule is exact to many digits.
    """
    low, high = 0.0, float(values.max())
    exponents = np.linspace(-_WIDEST, _WIDEST, _POINTS)
    argument = np.exp(exponents)[:, None]
    for _ in range(_HALVINGS if high else 0):
        middle = (low + high) / 2
        scaled = (values - middle) / np.abs(values - middle).max() * argument
        size = np.exp(-0.5 * np.log1p(scaled**2) @ concentration)
        integral = float((size * np.sin(np.arctan(scaled) @ concentration)).sum()) * (exponents[1] - exponents[0])
        low, high = (middle, high) if 0.5 - integral / math.pi < probability else (low, middle)
    return (low + high) / 2


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
