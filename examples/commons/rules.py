"""The rules, as in GovSim (Piatti et al. 2024): a pool from which all take at once, and what is left doubles."""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum

import numpy as np


def ration(wanted: Sequence[int], pool: int, rng: np.random.Generator) -> list[int]:
    """What each gets: what it wants, or if all want more than there is, units one by one, drawn among who still wants.

    Args:
        wanted: whole units.
        pool: the units there are.
        rng: draws who gets the next unit.
    """
    if sum(wanted) <= pool:
        return list(wanted)
    got = np.zeros(len(wanted), dtype=np.int64)
    for _ in range(pool):
        got[rng.choice(np.flatnonzero(got < wanted))] += 1
    return [int(units) for units in got]


def share_out(wanted: Sequence[int], pool: int) -> list[int]:
    """What each gets if scarce units are shared in proportion; those that cannot be split stay."""
    total = sum(wanted)
    return list(wanted) if total <= pool else [units * pool // total for units in wanted]


def threshold(pool: int, players: int) -> int:
    """The most that each can take such that the pool is as large again next month."""
    return pool // 2 // players


def gini(amounts: Sequence[float]) -> float:
    """How unequal amounts are: 0 if all are the same, near 1 if one has everything."""
    total = fsum(amounts)
    ranked = enumerate(sorted(amounts), start=1)
    count = len(amounts)
    return fsum((2 * rank - count - 1) * amount for rank, amount in ranked) / (count * total) if total else 0.0
