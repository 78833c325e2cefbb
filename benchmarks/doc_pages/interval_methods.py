"""Intervals of means at few episodes: how the one that reports print does against others, by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.statistics.intervals import LEVEL, Range, mean_intervals, student_quantile

Floats = NDArray[np.float64]
Ends = tuple[Floats, Floats]
RESAMPLES = 499
#: Experiments that are resampled at once.
_PART = 500
#: How far the values of neighbouring rounds lie apart, in standard deviations of the values.
_NEIGHBOURS = 0.05


def _printed(values: Floats, within: Range) -> Ends:
    _, low, high = mean_intervals(values, within)
    return low, high


def _student(values: Floats, within: Range) -> Ends:
    mean, error = _mean_and_error(values)
    reach = student_quantile((1 + LEVEL) / 2, len(values) - 1) * error
    return mean - reach, mean + reach


def _hall(values: Floats, within: Range) -> Ends:
    """On each side the further of Student's interval and Hall's (1992), which moves towards a tail."""
    n, (mean, error) = len(values), _mean_and_error(values)
    reach = student_quantile((1 + LEVEL) / 2, n - 1)
    third = (((values - mean) / np.where(error > 0, error, np.inf)) ** 3).sum(axis=0) / ((n - 1) * (n - 2) * n)
    slope = np.where(np.abs(third) < 1e-6, 1e-6, third)  # near 0 the formula divides 0 by 0; its limit is `reach`
    below, above = (sign * 3 / slope * (np.cbrt(1 + slope * (sign * reach - slope / 6)) - 1) for sign in (1, -1))
    return mean - np.maximum(reach, below) * error, mean + np.maximum(reach, above) * error


def _bootstrap_t(values: Floats, within: Range) -> Ends:
    """Quantiles of the mean in standard errors over resamples (Efron 1982); the same resamples for all experiments."""
    n, (mean, error) = len(values), _mean_and_error(values)
    drawn = np.random.default_rng(n).integers(n, size=(RESAMPLES, n))
    ends = []
    for first in range(0, values.shape[1], _PART):
        part = slice(first, first + _PART)
        means, errors = _mean_and_error(values[drawn, part].swapaxes(0, 1))
        # A resample of one value over and over has no error: further out than any other.
        t = np.divide(means - mean[part], errors, out=1e3 * np.sign(means - mean[part]), where=errors > 1e-9)
        ends.append(np.quantile(t, ((1 + LEVEL) / 2, (1 - LEVEL) / 2), axis=0))
    upper, lower = np.concatenate(ends, axis=1)
    return mean - upper * error, mean - lower * error


PRINTED = "**as printed**"
METHODS: Mapping[str, Callable[[Floats, Range], Ends]] = {
    "Student's": _student,
    "Hall's or Student's": _hall,
    "bootstrap-t": _bootstrap_t,
    PRINTED: _printed,
}


def compare_methods(values: Floats, noise: Floats, truth: float, within: Range) -> dict[str, dict[str, float]]:
    """Compare all methods on the same experiments.

    Args:
        values: (episodes, experiments) what is measured.
        noise: as many standard normal draws, which make of each experiment one of a neighbouring round.
        truth: the mean that the values are drawn around.
        within: what the measure can be; the ends of all methods are cut off there.

    Returns:
        By method: `coverage` of the truth; the median `width` over that of Student's interval; the shares of
        experiments in which the interval leaves the range before it is cut (`outside`) and holds fewer than half of
        the values (`empty`); and `jump`, what the upper end moves by against the mean from one round to the next in one
        case of a hundred, over the distance that Student's reaches.
    """
    low, high = (end if bound is None else bound for end, bound in ((-np.inf, within.low), (np.inf, within.high)))
    mean, error = _mean_and_error(values)
    reach = student_quantile((1 + LEVEL) / 2, len(values) - 1) * np.maximum(error, 1e-12)
    neighbours = np.clip(values + _NEIGHBOURS * values.std() * noise, low, high)
    found: dict[str, dict[str, float]] = {}
    widths: dict[str, float] = {}
    for name, method in METHODS.items():
        raw, later = method(values, within), method(neighbours, within)
        below, above = np.clip(raw, low, high)
        is_outside = (raw[0] < low - 1e-9) | (raw[1] > high + 1e-9)
        held = ((values >= below - 1e-9) & (values <= above + 1e-9)).mean(axis=0)
        moved = np.clip(later[1], low, high) - neighbours.mean(axis=0) - (above - mean)
        widths[name] = float(np.median(above - below))
        found[name] = {
            "coverage": float(np.mean((below <= truth + 1e-12) & (above >= truth - 1e-12))),
            "width": widths[name] / widths["Student's"],
            "outside": float(np.mean(is_outside)),
            "empty": float(np.mean(held < 0.5)),
            "jump": float(np.quantile(np.abs(moved) / reach, 0.99)),
        }
    return found


def _mean_and_error(values: Floats) -> tuple[Floats, Floats]:
    return values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(len(values))
