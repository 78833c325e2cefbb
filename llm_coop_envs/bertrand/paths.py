"""Limit cycles of price paths, and returns to them after a deviation: functions on arrays of rounds.

Deterministic rules with a short memory end in a cycle: they repeat the same rounds for ever. Models, and learners that
still explore, need not; then nothing is claimed about the time after the last round that was played.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llm_coop_envs.bertrand.rules import Equilibria, Floats, positions, profit_gain

EXACT = 1e-9
"""Two prices this close, as a share of the distance from Nash to joint profit, differ by rounding alone."""

SETTLED = 50
"""An inexact cycle must be repeated over so many rounds at the end of a path, or over half of a shorter path."""

CYCLE_CLASSES = ("1-symmetric", "1-asymmetric", "2", "3+")
"""The columns of Table I of Calvano et al. 2020."""

NO_CYCLE = "none"
"""The class of a path that does not repeat itself within what was played."""


@dataclass(frozen=True, eq=False)
class PathCycle:
    """The rounds that a path repeats at its end.

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
    prices: ArrayLike, profits: ArrayLike, equilibria: Equilibria, *, tolerance: float = EXACT
) -> PathCycle | None:
    """Find the cycle in which a path ends.

    Args:
        prices: (rounds, firms).
        profits: (rounds, firms).
        equilibria: those of the market.
        tolerance: how far two prices may lie apart and still count as equal, as a share of the distance from Nash to
            joint profit; for players that are not exact. Every round is compared with the last time the cycle was
            played, over the last `SETTLED` rounds or half of the path at least, so that a slow drift is no cycle.

    Returns:
        The shortest cycle that was played twice at the end; `None` if the end of the path does not repeat itself.
    """
    where = positions(prices, equilibria)
    rounds = len(where)
    shortest_span = 0 if tolerance <= EXACT else min(SETTLED, rounds // 2)
    for length in range(1, rounds // 2 + 1):
        last = where[rounds - length + (np.arange(rounds) - rounds) % length]
        unequal = np.flatnonzero(np.any(np.abs(where - last) > tolerance, axis=1))
        begins = int(unequal[-1]) + 1 if len(unequal) else 0
        if rounds - begins >= max(2 * length, shortest_span):
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
        where: (length, firms) positions of its prices (`rules.positions`).
        tolerance: up to which distance two firms' prices are the same.
    """
    rows = np.asarray(where)
    if len(rows) == 1:
        return CYCLE_CLASSES[0] if np.ptp(rows[0]) <= tolerance else CYCLE_CLASSES[1]
    return CYCLE_CLASSES[2] if len(rows) == 2 else CYCLE_CLASSES[3]


def same_cycle(first: PathCycle, second: PathCycle, equilibria: Equilibria, tolerance: float = EXACT) -> bool:
    """Whether two cycles have the same rounds in the same order; (1, 2, 3) and (3, 1, 2) are the same."""
    if first.length != second.length:
        return False
    first_positions, second_positions = positions(first.prices, equilibria), positions(second.prices, equilibria)
    return any(
        bool(np.all(np.abs(first_positions - np.roll(second_positions, k, axis=0)) <= tolerance))
        for k in range(first.length)
    )


def cycle_gain(cycle: PathCycle, equilibria: Equilibria) -> float:
    """The profit gain Delta (Calvano et al. 2020) over a cycle: 0 at Nash, 1 at joint profit."""
    return float(profit_gain(cycle.profits.mean(axis=0), equilibria))


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
