"""What does not change in a contest: bounds of the features, and slots that are the same for all players."""

from __future__ import annotations

import functools
import sys
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.kbc.settings import OPPONENTS, STATISTICS, KBCSettings, tidy

# Winning numbers are announced with 2 decimals in the program of Pan et al. 2024.
DECIMALS = 2
OTHERWISE = "otherwise"
SAID = (*OPPONENTS, OTHERWISE)


def scale_numbers(settings: KBCSettings, numbers: Any) -> Any:
    """Numbers on the scale where `low` is 0 and `high` is 1."""
    return (numbers - settings.low) / float(settings.high - settings.low)


def feature_bounds(
    settings: KBCSettings, n_features: int, n_alone: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lowest and highest value of each feature.

    Args:
        settings: the contest.
        n_features: the number of features.
        n_alone: how many of them exist without groups; the others are scaled group numbers.
    """
    span = float(settings.high - settings.low)
    low, high = np.zeros(n_features), np.ones(n_features)
    # Both are constant. Features are float32, and so must these bounds be for the features to lie inside.
    low[2:4] = high[2:4] = np.array([float(settings.ratio), float(settings.offset) / span], dtype=np.float32)
    # Announced numbers are rounded, which may step over an end: 66.666 is announced as 66.67.
    margin = 10.0**-DECIMALS / span
    ends = [float(settings.ratio * Fraction(end) + settings.offset) for end in (settings.low, settings.high)]
    low[6] = min(0.0, scale_numbers(settings, ends[0]) - margin)
    high[6] = max(0.0, scale_numbers(settings, ends[1]) + margin)
    low[n_alone:], high[n_alone:] = -margin, 1 + margin
    return low, high


def told_names(settings: KBCSettings) -> tuple[str, ...]:
    """The names of the features that say what is told beyond the usual rules; none where nothing is."""
    names = () if settings.statistic == "mean" else tuple(f"statistic_{name}" for name in STATISTICS)
    return names + tuple(f"said_{name}" for name in SAID if any(settings.reach("opponents")))


def told_values(settings: KBCSettings) -> list[float]:
    """Their values for a player for whom these settings are in force: 1 for what holds, else 0."""
    said = settings.opponents if settings.opponents in OPPONENTS or not settings.opponents else OTHERWISE
    values = [] if settings.statistic == "mean" else [float(settings.statistic == name) for name in STATISTICS]
    return [*values, *(float(said == name) for name in SAID)]


@functools.cache
def _as_number(fraction: Fraction) -> float:
    return tidy(float(fraction))


def fixed_slots(settings: KBCSettings) -> dict[str, Any]:
    """The slots that stay the same for all players throughout an episode.

    Equal settings give the same objects: texts are kept by the identity of what they say (`interface.constant_parts`).
    """
    return {
        "low": tidy(settings.low),
        "high": tidy(settings.high),
        "integer": settings.integer,
        **{name: getattr(settings, name) for name in ("winner_rule", "reward_rule", "currency")},
        "ratio": sys.intern(str(settings.ratio)),
        "offset": sys.intern(str(settings.offset)),
        "tolerance": _as_number(settings.tolerance),
        "unit": tidy(settings.unit),
        "repeated": settings.session == "repeated",
        "together": settings.talk_mode == "simultaneous",
        "audience": settings.audience,
        "hearers": 0,
        "announces": False,
        "announcers": 0,
        "statistic": settings.statistic,
        "opponents": settings.opponents,
    }
