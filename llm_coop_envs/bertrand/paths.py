"""Where a path of prices ends, and how it comes back after a deviation: functions on arrays of rounds, from any player.

Rules that remember little and do not draw end in a cycle: the same rounds over and over. Models and learners that still
explore need not; then nothing is claimed about what happens after the last round that was played.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llm_coop_envs.bertrand.rules import Benchmarks, Floats, positions, profit_gain

EXACT = 1e-9
"""Two prices this close, as a share of the distance from Nash to joint profit, are equal but for rounding."""

SETTLED = 50
"""So many rounds at the end of a path, or half of a shorter one, must repeat a cycle that is not repeated exactly."""

CYCLE_CLASSES = ("1-symmetric", "1-asymmetric", "2", "3+")
"""The columns of Table I of Calvano et al. 2020."""

NO_CYCLE = "none"
"""The class of a path that does not repeat itself within what was played."""


@dataclass(frozen=True, eq=False)
class PathCycle:
    """The rounds a path ends up repeating.

    Attributes:
        begins: how many rounds come before it (0: the path repeats itself from its first round on).
        prices: (length, firms), in the order of play, from round `begins` + 1 on.
        profits: (length, firms).
        kind: one of `CYCLE_CLASSES`.
    """

    begins: int
    prices: Floats
    profits: Floats
    kind: str

    @property
    def length(self) -> int:
        """How many rounds until it repeats."""
        return len(self.prices)


def path_cycle(
    prices: ArrayLike, profits: ArrayLike, marks: Benchmarks, *, tolerance: float = EXACT
) -> PathCycle | None:
    """The cycle a path ends in.

    Args:
        prices: (rounds, firms).
        profits: (rounds, firms).
        marks: the market's benchmarks.
        tolerance: how far two prices may lie apart and still count as equal, as a share of the distance from Nash to
            joint profit; for players that are not exact. All rounds are compared with the last time the cycle was
            played, over the last `SETTLED` rounds or half of the path at least: a slow drift is no cycle.

    Returns:
        The shortest one that was played twice at the end, or `None` if the end of the path does not repeat itself.
    """
    where = positions(prices, marks)
    rounds = len(where)
    least = 0 if tolerance <= EXACT else min(SETTLED, rounds // 2)
    for length in range(1, rounds // 2 + 1):
        last = where[rounds - length + (np.arange(rounds) - rounds) % length]
        unequal = np.flatnonzero(np.any(np.abs(where - last) > tolerance, axis=1))
        begins = int(unequal[-1]) + 1 if len(unequal) else 0
        if rounds - begins >= max(2 * length, least):
            chosen = slice(begins, begins + length)
            return PathCycle(
                begins,
                np.asarray(prices, dtype=np.float64)[chosen],
                np.asarray(profits, dtype=np.float64)[chosen],
                cycle_class(where[chosen], tolerance),
            )
    return None


def cycle_class(where: ArrayLike, tolerance: float = EXACT) -> str:
    """The class of a cycle in Table I of Calvano et al. 2020.

    Args:
        where: (length, firms) places of its prices (`rules.positions`).
        tolerance: up to which distance two firms' prices are the same.
    """
    rows = np.asarray(where)
    if len(rows) == 1:
        return CYCLE_CLASSES[0] if np.ptp(rows[0]) <= tolerance else CYCLE_CLASSES[1]
    return CYCLE_CLASSES[2] if len(rows) == 2 else CYCLE_CLASSES[3]


def same_cycle(one: PathCycle, other: PathCycle, marks: Benchmarks, tolerance: float = EXACT) -> bool:
    """Whether two cycles are the same rounds in the same order, wherever they begin."""
    if one.length != other.length:
        return False
    here, there = positions(one.prices, marks), positions(other.prices, marks)
    return any(bool(np.all(np.abs(here - np.roll(there, k, axis=0)) <= tolerance)) for k in range(one.length))


def cycle_gain(cycle: PathCycle, marks: Benchmarks) -> float:
    """The profit gain Delta (Calvano et al. 2020) over a cycle: 0 at Nash, 1 at joint profit."""
    return float(profit_gain(cycle.profits.mean(axis=0), marks))


def discounted(profits: ArrayLike, delta: float, cycle: PathCycle | None) -> Floats:
    """Each firm's discounted profits.

    Args:
        profits: (rounds, firms) from the first round that counts.
        delta: the discount factor per round, in [0, 1).
        cycle: the cycle in which these rounds end, which goes on for ever; `None` counts the given rounds only.

    Returns:
        (firms,).
    """
    earned: NDArray[np.float64] = np.asarray(profits, dtype=np.float64)
    head = earned if cycle is None else earned[: cycle.begins]
    value = (delta ** np.arange(len(head))) @ head
    if cycle is not None:
        once = (delta ** np.arange(cycle.length)) @ cycle.profits
        value = value + delta**cycle.begins * once / (1.0 - delta**cycle.length)
    return np.asarray(value)
