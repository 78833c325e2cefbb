"""The first random numbers of many NumPy generators at once, bit for bit as each of them alone draws them.

`numpy.random.default_rng(seed)` takes 20 microseconds to make, which is longer than a short game. Here the same
arithmetic runs on arrays: NumPy's `SeedSequence` (O'Neill's seed_seq_fe) and PCG64 (O'Neill 2014), whose output is part
of NumPy's promise of compatibility. How a `Generator` makes numbers of that output is not. So the first generator of
each call is asked too, and all of them if it draws otherwise.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.util.draws import side_generator

Words = NDArray[np.uint32]
Longs = NDArray[np.uint64]
Drawn = TypeVar("Drawn", bound=NDArray[Any])

_POOL = 4
_INIT_A, _MULT_A, _INIT_B, _MULT_B = 0x43B0D7E5, 0x931E8875, 0x8B51F9DD, 0x58F38DED
_MIX_L, _MIX_R = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)
_HALF = np.uint32(16)
#: PCG64's, its high and its low half.
MULTIPLIER = np.uint64(2549297995355413924), np.uint64(4865540595714422341)
_LOW, _32, _63 = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(63)


def episode_seeds(seed: int, copies: NDArray[np.intp], episodes: NDArray[np.int64]) -> Longs:
    """`util.draws.episode_seed` of many copies and their episodes, each below 2**32."""
    words = [np.full(len(copies), (seed >> 32 * k) & 0xFFFFFFFF, dtype=np.uint32) for k in range(_words_of(seed))]
    words += [np.zeros(len(copies), dtype=np.uint32)] * (_POOL - len(words))
    return _state(_pool([*words, copies.astype(np.uint32), episodes.astype(np.uint32)]), 1)[0]


def first_integers(seeds: Longs, below: int, count: int) -> NDArray[np.int64]:
    """`default_rng(seed).integers(below, size=count)` for each seed, (seeds, count); `below` is at most 2**32 - 1."""
    longs = _outputs(seeds, -(-count // 2))
    words = np.stack([half for long in longs for half in (long & _LOW, long >> _32)][:count], axis=1)
    product = words * np.uint64(below)
    drawn: NDArray[np.int64] = (product >> _32).astype(np.int64)
    # Where the remainder is this small NumPy may draw again (Lemire 2019): one number in 280 million for 15 prices.
    for row in np.flatnonzero(((product & _LOW) < below).any(axis=1)).tolist():
        drawn[row] = np.random.default_rng(int(seeds[row])).integers(below, size=count)
    return _as_alone(drawn, seeds, lambda generator: generator.integers(below, size=count))


def first_uniforms(seeds: Longs, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """`default_rng(seed).uniform(low, high)` for each seed, (seeds, numbers)."""
    shares = np.stack([(long >> np.uint64(11)) * 2.0**-53 for long in _outputs(seeds, len(low))], axis=1)
    drawn: NDArray[np.float64] = low + (high - low) * shares
    return _as_alone(drawn, seeds, lambda generator: generator.uniform(low, high))


def _as_alone(drawn: Drawn, seeds: Longs, draw: Callable[[np.random.Generator], Any]) -> Drawn:
    """What was drawn, or what each generator draws alone where this NumPy's generators draw otherwise."""
    for row, seed in enumerate(seeds.tolist()):
        alone = draw(np.random.default_rng(seed))
        if row == 0 and np.array_equal(drawn[row], alone):
            break
        drawn[row] = alone
    return drawn


def generator_states(seeds: Longs) -> Longs:
    """The states of `default_rng(seed)` for each seed, (seeds, 4): state and increment, each its high and low half."""
    zeros = np.zeros(len(seeds), dtype=np.uint32)
    return _seeded([(seeds & _LOW).astype(np.uint32), (seeds >> _32).astype(np.uint32), zeros, zeros])


def side_states(states: Longs, purpose: int) -> Longs:
    """The states of `util.draws.side_generator` for one purpose, beside generators in these states; see above."""
    halves = [half for low in (1, 0, 3, 2) for half in (states[:, low] & _LOW, states[:, low] >> _32)]
    entropy = [half.astype(np.uint32) for half in halves]
    sides = _seeded([*entropy, np.full(len(states), purpose, dtype=np.uint32)])
    # Numbers whose first word is zero are shorter: one in two billion generators is made by itself.
    for row in np.flatnonzero((entropy[3] == 0) | (entropy[7] == 0)).tolist():
        high, low, odd_high, odd_low = states[row].tolist()
        state = side_generator((high << 64 | low, odd_high << 64 | odd_low), purpose).bit_generator.state["state"]
        parts = [(number >> shift) % 2**64 for number in (state["state"], state["inc"]) for shift in (64, 0)]
        sides[row] = np.array(parts, dtype=np.uint64)
    return sides


def _words_of(number: int) -> int:
    return max(1, -(-number.bit_length() // 32))


def _constants(first: int, multiplier: int) -> Iterator[tuple[np.uint32, np.uint32]]:
    """The hash's constant at each use, before and after it is multiplied."""
    while True:
        following = first * multiplier & 0xFFFFFFFF
        yield np.uint32(first), np.uint32(following)
        first = following


def _hashed(words: Words, constants: Iterator[tuple[np.uint32, np.uint32]]) -> Words:
    before, after = next(constants)
    mixed: Words = (words ^ before) * after
    mixed ^= mixed >> _HALF
    return mixed


def _pool(words: Sequence[Words]) -> list[Words]:
    """The pools of many seed sequences, from the words of their entropy."""

    def mix(one: Words, other: Words) -> Words:
        mixed: Words = _MIX_L * one - _MIX_R * other
        mixed ^= mixed >> _HALF
        return mixed

    constants = _constants(_INIT_A, _MULT_A)
    pool = [_hashed(word, constants) for word in words[:_POOL]]
    for source, target in itertools.permutations(range(_POOL), 2):
        pool[target] = mix(pool[target], _hashed(pool[source], constants))
    for word in words[_POOL:]:
        pool = [mix(part, _hashed(word, constants)) for part in pool]
    return pool


def _state(pool: list[Words], count: int) -> list[Longs]:
    """`generate_state(count, numpy.uint64)` of many pools."""
    constants = _constants(_INIT_B, _MULT_B)
    words = [_hashed(part, constants).astype(np.uint64) for part in itertools.islice(itertools.cycle(pool), 2 * count)]
    return [low | (high << _32) for low, high in zip(words[::2], words[1::2], strict=True)]


def _seeded(entropy: Sequence[Words]) -> Longs:
    """The states of PCG64 generators that are seeded with these words; see `generator_states`."""
    start_high, start_low, odd_high, odd_low = _state(_pool(entropy), 4)
    one = np.uint64(1)
    step = (odd_high << one) | (odd_low >> _63), (odd_low << one) | one
    # From state 0 the first step gives the increment alone.
    return np.stack([*_advance(_sum(step, (start_high, start_low)), step), *step], axis=1)


def _outputs(seeds: Longs, count: int) -> list[Longs]:
    """The first 64-bit numbers of the PCG64 generators with these seeds."""
    high, low, odd_high, odd_low = generator_states(seeds).T
    state, step = (high, low), (odd_high, odd_low)
    longs = []
    for _ in range(count):
        state = _advance(state, step)
        mixed, turn = state[0] ^ state[1], state[0] >> np.uint64(58)
        longs.append((mixed >> turn) | (mixed << (-turn & _63)))
    return longs


Wide = tuple[Longs, Longs]
"""Numbers of 128 bits: their high and low halves."""


def _sum(one: Wide, other: Wide) -> Wide:
    low = one[1] + other[1]
    return one[0] + other[0] + (low < one[1]), low


def _advance(state: Wide, step: Wide) -> Wide:
    """One step of the congruential generator: state x multiplier + step."""
    (high, low), (multiplier_high, multiplier_low) = state, MULTIPLIER
    a, b, c, d = low >> _32, low & _LOW, multiplier_low >> _32, multiplier_low & _LOW
    middle = (b * d >> _32) + (a * d & _LOW) + (b * c & _LOW)
    carried = a * c + (a * d >> _32) + (b * c >> _32) + (middle >> _32)
    return _sum((carried + high * multiplier_low + low * multiplier_high, low * multiplier_low), step)
