"""Random numbers beside an episode's own generator: they follow from its seed, and leave what it draws as it is."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

#: What they are for; numbers for different purposes are independent.
CONFLICTS, OPTIONS, MESSAGES, NOISE, CROWD, NATURE = 1, 2, 3, 4, 5, 6

Key = tuple[int, int]


def key_of(rng: np.random.Generator) -> Key:
    """What a PCG64 generator's state says, taken without drawing from it."""
    state = rng.bit_generator.state["state"]
    return state["state"], state["inc"]


def episode_seed(seed: int, copy: int, episode: int) -> int:
    """Derive the environment's seed of one episode of one copy, 64 bits."""
    return int(np.random.SeedSequence(seed, spawn_key=(copy, episode)).generate_state(1, np.uint64)[0])


def side_generator(key: Key, *purpose: int) -> np.random.Generator:
    """A generator for one purpose, or for one place in it: the same whenever it is asked for."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([*key, *purpose])))


def nature_generator(key: Key, round_number: int, purpose: str) -> np.random.Generator:
    """A generator for what nature draws for one purpose in one round.

    It hangs on the episode's seed, the round and the purpose alone, not on what was said, chosen or drawn before: the
    weather of round 3 is the same with talk and without.
    """
    number = int.from_bytes(hashlib.sha256(purpose.encode()).digest()[:8], "big")
    return side_generator(key, NATURE, round_number, number)


def seeds_of(key: Key, who: NDArray[np.intp], *purpose: int) -> NDArray[np.uint64]:
    """A seed for each player: the same in whatever company it is asked for (SplitMix64, Steele et al. 2014)."""
    start = np.random.SeedSequence([*key, *purpose]).generate_state(1, np.uint64)
    mixed = start + (who.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    seeds: NDArray[np.uint64] = mixed ^ (mixed >> np.uint64(31))
    return seeds
