"""Power of the permutation test of pairs: how likely so many pairs find an effect, and how many are needed.

The test is the one that comparisons use, not Student's, which finds more in few pairs: with six, an effect of d_z = 1.5
is found by Student's test in 84 % of samples, by the permutation test in 66 %, as only six differences with the same
sign reach p = .03.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from llm_coop_envs.statistics.comparison import ALPHA, fewest_pairs
from llm_coop_envs.util.extras import need

#: How many samples are simulated for each number of pairs; the standard error is below 0.8 points.
SIMULATED = 4_000
#: The most pairs whose power is simulated. From 12 on the power of both tests differs by less than that error.
MOST_SIMULATED = 12
_AT_ONCE = 4_000_000


def pairs_needed(effect: float, power: float, alpha: float = ALPHA, limit: int = 1_000_000) -> int | None:
    """Number of pairs with which the permutation test finds an effect with a given probability.

    Args:
        effect: mean over standard deviation of the differences (d_z).
        power: the probability, in (0, 1).
        alpha: the two-sided level.
        limit: the largest number that is tried.

    Returns:
        The number, at least `fewest_pairs()`; `None` if it is above the limit.
    """
    low, high = fewest_pairs(alpha=alpha) - 1, limit + 1
    while high - low > 1:
        middle = min((low + high) // 2, 2 * low)
        low, high = (low, middle) if _students_power(effect, middle, alpha) >= power else (middle, high)
    # No test of the same level finds more in normal differences than Student's, so that its number is the least.
    while high <= MOST_SIMULATED and power_of(effect, high, alpha) < power:
        high += 1
    return high if high <= limit else None


def power_of(effect: float, pairs: int, alpha: float = ALPHA) -> float:
    """The probability that the two-sided permutation test of so many pairs finds an effect d_z in normal differences.

    Up to 12 pairs it is simulated, always with the same numbers. With more pairs it is that of Student's test, from
    which the permutation test's then differs by less than the simulation's error.
    """
    if pairs > MOST_SIMULATED:
        return _students_power(effect, pairs, alpha)
    return _simulated_power(abs(effect), pairs, alpha)


@functools.lru_cache(maxsize=1024)
def _simulated_power(effect: float, pairs: int, alpha: float) -> float:
    rng = np.random.default_rng(np.random.SeedSequence([0x907E2, pairs]))
    samples = (rng.standard_normal((SIMULATED, pairs)) + effect).astype(np.float32)
    signs = _signs(pairs)
    found = 0
    step = max(1, _AT_ONCE // len(signs))
    for first in range(0, SIMULATED, step):
        chunk = samples[first : first + step]
        bound = np.abs(chunk.sum(axis=1)) - 1e-5 * np.abs(chunk).sum(axis=1)
        as_far = (np.abs(chunk @ signs.T) >= bound[:, None]).sum(axis=1)
        found += int((as_far <= alpha * len(signs)).sum())
    return found / SIMULATED


def _signs(pairs: int) -> Any:
    """(2 ** (pairs - 1), pairs) every way to turn pairs round, but for those that turn all of another way."""
    ways = np.arange(2 ** (pairs - 1))[:, None] >> np.arange(pairs)
    return (1 - 2 * (ways & 1)).astype(np.float32)


def _students_power(effect: float, pairs: int, alpha: float) -> float:
    """The probability that Student's two-sided test finds an effect d_z, by the noncentral t distribution."""
    special = need("scipy.special", "the power of a test", "study")
    bound = float(special.stdtrit(pairs - 1, 1 - alpha / 2))
    shift = abs(effect) * float(np.sqrt(pairs))
    # Far out in the other tail the function gives no number; there is nothing left there.
    missed, opposite = (float(np.nan_to_num(special.nctdtr(pairs - 1, shift, at))) for at in (bound, -bound))
    return 1.0 - missed + opposite
