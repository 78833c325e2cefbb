"""Random numbers beside an episode's own generator: they follow from its seed, and leave what it draws as it is."""

from __future__ import annotations

import numpy as np

#: What they are for; numbers for different purposes are independent.
CONFLICTS, OPTIONS, MESSAGES, NOISE = 1, 2, 3, 4

Key = tuple[int, int]


def key_of(rng: np.random.Generator) -> Key:
    """What a PCG64 generator's state says, taken without drawing from it."""
    state = rng.bit_generator.state["state"]
    return state["state"], state["inc"]


def side_generator(key: Key, *purpose: int) -> np.random.Generator:
    """A generator for one purpose, or for one place in it: the same whenever it is asked for."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence([*key, *purpose])))
