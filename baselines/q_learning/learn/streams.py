"""Random numbers for the compiled learner: a fast stream, and the stream of Calvano et al. (2020).

Both are turned, a block of periods ahead, into `picks`: the price index that a firm explores in a period, or `points`
(the number of prices) if it does not explore. The learner uses picks only, so its code is the same for both streams.

The fast stream is xoshiro256++ (Blackman and Vigna 2021) in `LANES` generators that take turns. A word of 64 bits
serves two firms: firm 0 (2, ...) takes the upper, firm 1 (3, ...) the lower 32 bits. With h a half word and eps the
firm's exploration rate, x = (h + 1/2) / 2^32 is uniform, and floor(x * points / eps) is a uniform price if it is below
`points`, which happens with probability eps; else the firm does not explore. One division per block prepares this for
all periods.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.baselines.q_learning.learn.compiled import compiled, part
from llm_coop_envs.baselines.q_learning.learn.vectors import LANES, address, draw, get_whole, put_whole

BLOCK = 1024
"""The number of periods whose random numbers are drawn at once; a multiple of `LANES`."""

RAN2_WORDS = 35
"""The size of RAN2's state: idum, idum2, iy, and the shuffle table of 32 numbers."""

Words = NDArray[np.uint64]
Longs = NDArray[np.int64]
Halves = NDArray[np.uint32]
Floats = NDArray[np.float64]

_HALF = 2.0**-32
_STEP = np.uint64(0x9E3779B97F4A7C15)
_MASK = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)

# L'Ecuyer's two generators and the table, as in Numerical Recipes (Fortran 77), section 7.1, `ran2`.
_M1, _M2 = 2147483563, 2147483399
_A1, _A2 = 40014, 40692
_Q1, _Q2 = 53668, 52774
_R1, _R2 = 12211, 3791
_TABLE = 32
_WARM_UP = 8
_DIVISOR = 1 + (_M1 - 1) // _TABLE
_LARGEST = 1.0 - 1.2e-7


@compiled
def fill(state: Words, raw: Words) -> None:
    """Fill `raw`, whose size is a multiple of `LANES`, with words."""
    generators = address(state)
    out = address(raw)
    for j in range(0, raw.size, LANES):
        draw(generators, out, j)


@compiled
def half_word(raw: Words, index: int, firm: int) -> Any:
    """A firm's half of word `index` + firm // 2: the upper half for even firms, the lower half for odd ones."""
    word = raw[index + firm // 2]
    return np.float64(np.int64(word >> _SHIFT)) if firm % 2 == 0 else np.float64(np.int64(word & _MASK))


@compiled
def explore(raw: Words, picks: Longs, points: int, scale: Floats, growth: Floats) -> None:
    """Turn words into picks.

    Args:
        raw: (BLOCK * ceil(firms / 2)) words.
        picks: (firms, BLOCK) receives the picks.
        points: number of prices.
        scale: (firms,) points / eps / 2^32 in the block's first period.
        growth: (firms, BLOCK + 1) the factor by which this has grown in period j of the block, exp(beta j).
    """
    firms = len(picks)
    words_per_period = (firms + 1) // 2
    for i in range(firms):
        for j in range(picks.shape[1]):
            scaled = (half_word(raw, j * words_per_period, i) + 0.5) * (scale[i] * growth[i, j])
            picks[i, j] = np.int64(min(scaled, points))


@compiled
def uniforms(raw: Words, numbers: Floats) -> None:
    """Turn words into numbers in (0, 1), (BLOCK, firms)."""
    firms = numbers.shape[1]
    words_per_period = (firms + 1) // 2
    for j in range(len(numbers)):
        for i in range(firms):
            numbers[j, i] = (half_word(raw, j * words_per_period, i) + 0.5) * _HALF


@compiled
def ran2_seed(state: Longs, seed: int) -> None:
    """Initialise the state as a call of RAN2 with the negative seed -`seed` does."""
    first = max(seed, 1)
    state[1] = first
    for j in range(_TABLE + _WARM_UP - 1, -1, -1):
        k = first // _Q1
        first = _A1 * (first - k * _Q1) - k * _R1
        if first < 0:
            first += _M1
        if j < _TABLE:
            state[3 + j] = first
    state[0] = first
    state[2] = state[3]


@part
def ran2(state: int) -> Any:
    """Draw a number in (0, 1) with RAN2 (Press et al., Numerical Recipes; L'Ecuyer with Bays-Durham shuffle).

    Args:
        state: the address of the state, (RAN2_WORDS,) numbers.
    """
    first = get_whole(state, 0)
    k = first // _Q1
    first = _A1 * (first - k * _Q1) - k * _R1
    if first < 0:
        first += _M1
    put_whole(state, 0, first)
    second = get_whole(state, 1)
    k = second // _Q2
    second = _A2 * (second - k * _Q2) - k * _R2
    if second < 0:
        second += _M2
    put_whole(state, 1, second)
    j = 3 + get_whole(state, 2) // _DIVISOR
    value = get_whole(state, j) - second
    put_whole(state, j, first)
    if value < 1:
        value += _M1 - 1
    put_whole(state, 2, value)
    return min(value * (1.0 / _M1), _LARGEST)


@compiled
def ran2_next(state: Longs) -> Any:
    """Draw a number with RAN2, whose state is an array (RAN2_WORDS,)."""
    return ran2(address(state))


@compiled
def ran2_explore(state: Longs, picks: Longs, points: int, eps: Floats, decay: Floats) -> None:
    """Draw picks as the authors' code does: in each period first which firms explore, then a price for every firm.

    Args:
        state: (RAN2_WORDS,) the state of RAN2.
        picks: (firms, BLOCK) receives the picks.
        points: number of prices.
        eps: (firms,) exploration rates in the block's first period; changed in place to those of the next block.
        decay: (firms,) factor on them per period.
    """
    firms = len(picks)
    stream = address(state)
    for j in range(picks.shape[1]):
        for i in range(firms):
            picks[i, j] = points if ran2(stream) > eps[i] else 0
            eps[i] *= decay[i]
        for i in range(firms):
            price = np.int64(points * ran2(stream))
            if picks[i, j] == 0:
                picks[i, j] = price


@compiled
def ran2_uniforms(state: Longs, numbers: Floats) -> None:
    """Draw numbers (BLOCK, firms) as the authors' code does: two rows per period, of which only the first is used."""
    firms = numbers.shape[1]
    stream = address(state)
    for j in range(len(numbers)):
        for i in range(firms):
            numbers[j, i] = ran2(stream)
        for _ in range(firms):
            ran2(stream)


@part
def mix_bits(z: int) -> Any:
    """Turn a state of SplitMix64 into a number in [0, 1)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(np.int64(z >> np.uint64(11))) * 2.0**-53


@part
def split_mix(state: int) -> Any:
    """Draw a number in [0, 1) from the small stream that breaks ties (SplitMix64; Steele, Lea and Flood 2014).

    Args:
        state: the address of the state, one number.
    """
    z = np.uint64(get_whole(state, 0)) + _STEP
    put_whole(state, 0, np.int64(z))
    return mix_bits(z)


@compiled
def draw_markets(luck: Longs, out: Longs, markets: int, size: int) -> None:
    """Draw the market of each period, as `split_mix` would one by one; `out` receives where its profits begin.

    The profits of one market are `size` numbers.
    """
    first = np.uint64(luck[0])
    for j in range(len(out)):
        out[j] = np.int64(markets * mix_bits(first + np.uint64(j + 1) * _STEP)) * size
    luck[0] = np.int64(first + np.uint64(len(out)) * _STEP)
