"""The numbers that newspaper readers named, and two distances to them."""

from __future__ import annotations

import functools
from fractions import Fraction
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.kbc.settings import KBCSettings

NYT_FILE = "nyt_two_thirds_density_digitised.csv"
# Both curves of figure 5 in Wu et al. 2024 are kernel density estimates with a bandwidth of about 1.
BANDWIDTH = 1.0


@functools.cache
def nyt_density() -> NDArray[np.float64]:
    """The numbers of the readers of the New York Times puzzle of 2015, as shares of 0..100.

    Returns:
        (101,) read-only shares that add up to 1; the file beside this module names the source and its errors.
    """
    text = (resources.files("llm_coop_envs.kbc") / "data" / NYT_FILE).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")][1:]
    density = np.zeros(len(lines))
    for number, value in (line.split(",") for line in lines):
        density[int(number)] = float(value)
    density /= density.sum()
    density.flags.writeable = False
    return density


def comparable(settings: KBCSettings) -> bool:
    """Whether a contest is that of the readers: numbers from 0 to 100, two thirds of the mean, no groups."""
    task: Any = (settings.statistic, settings.low, settings.high, settings.ratio, settings.offset, settings.groups)
    return bool(task == ("mean", 0, 100, Fraction(2, 3), 0, None))


def histogram(choices: NDArray[np.float64], bins: int) -> NDArray[np.float64]:
    """The shares of the integers 0..bins-1 among (n,) choices, n >= 1; real ones are rounded, halves up (2.5 to 3)."""
    rounded = np.floor(np.asarray(choices, dtype=np.float64) + 0.5).astype(np.int64)
    shares: NDArray[np.float64] = np.bincount(rounded, minlength=bins) / len(rounded)
    return shares


def wasserstein(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The first Wasserstein distance of two distributions over 0, 1, 2, ..., in numbers.

    This is how far, on average, a number has to move to turn one distribution into the other. It is the main measure,
    because it depends on how far apart numbers are, and hardly on the smoothing of a digitised curve.
    """
    return float(np.abs(np.cumsum(first - second)).sum())


def total_variation(first: NDArray[np.float64], second: NDArray[np.float64]) -> float:
    """The total variation distance, half the sum of absolute differences: the share that has to move, 0 to 1."""
    return float(np.abs(first - second).sum() / 2)


def smoothed(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares smoothed by a Gaussian kernel, cut at both ends and normalised.

    The total variation from a smoothed curve would be large for any set of integers, even for one drawn from it.
    Numbers are therefore smoothed as the curve was before they are compared.
    """
    spread: NDArray[np.float64] = _kernel(len(shares)) @ shares
    spread /= spread.sum()
    return spread


@functools.cache
def _kernel(bins: int) -> NDArray[np.float64]:
    at = np.arange(bins, dtype=np.float64)
    return np.asarray(np.exp(-0.5 * ((at[:, None] - at[None, :]) / BANDWIDTH) ** 2))


def distances(choices: NDArray[np.float64]) -> tuple[float, float]:
    """How far choices are from those of the New York Times readers.

    Args:
        choices: (n,) numbers in [0, 100].

    Returns:
        The Wasserstein distance (numbers), and the total variation after smoothing (0 to 1).
    """
    shares = nyt_density()
    own_shares = histogram(choices, len(shares))
    return wasserstein(own_shares, shares), total_variation(smoothed(own_shares), shares)
