"""Whole numbers in proportion to shares."""

from __future__ import annotations

import math
from collections.abc import Sequence


def divide(total: int, shares: Sequence[float]) -> list[int]:
    """Integers that add up to `total`, in proportion to `shares`, by largest remainders; earlier ones win ties.

    Args:
        total: 0 or more.
        shares: at least one, none negative, not all 0.
    """
    # Rounded, so that 0.3 * 100 is 30 and not a hair less, and ties are ties.
    exact = [round(total * share / math.fsum(shares), 9) for share in shares]
    counts = [int(number) for number in exact]
    by_remainder = sorted(range(len(shares)), key=lambda k: counts[k] - exact[k])
    for k in by_remainder[: total - sum(counts)]:
        counts[k] += 1
    return counts
