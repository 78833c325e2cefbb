"""Many generators at once draw what NumPy's draw one by one."""

import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_coop_envs.util import many_streams
from llm_coop_envs.util.compiled_stream import draw_below, draw_share, shuffle
from llm_coop_envs.util.compiling import numba
from llm_coop_envs.util.draws import episode_seed, key_of, side_generator
from llm_coop_envs.util.many_streams import (
    episode_seeds,
    first_integers,
    first_uniforms,
    generator_states,
    side_states,
)

tried = settings(max_examples=25, database=None)
seeds_of_64_bits = st.lists(st.integers(0, 2**64 - 1), min_size=1, max_size=8).map(lambda s: np.array(s, np.uint64))


@tried
@given(st.integers(0, 2**200), st.lists(st.tuples(st.integers(0, 2**20), st.integers(0, 2**31)), min_size=1))
def test_seeds_of_episodes(seed, places):
    copies, episodes = np.array(places).T
    ours = episode_seeds(seed, copies, episodes)
    assert ours.tolist() == [episode_seed(seed, copy, episode) for copy, episode in places]


@tried
@given(seeds_of_64_bits, st.integers(2, 2**32 - 1), st.integers(1, 7))
def test_integers(seeds, below, count):
    exact = [np.random.default_rng(seed).integers(below, size=count).tolist() for seed in seeds.tolist()]
    assert first_integers(seeds, below, count).tolist() == exact


@tried
@given(seeds_of_64_bits, st.integers(1, 6))
def test_uniform_numbers(seeds, count):
    low, high = np.linspace(0.1, 0.7, count), np.linspace(1.3, 2.9, count)
    exact = [np.random.default_rng(seed).uniform(low, high).tolist() for seed in seeds.tolist()]
    assert first_uniforms(seeds, low, high).tolist() == exact


def test_generators_that_draw_otherwise_are_asked_one_by_one(monkeypatch):
    seeds = np.arange(5, dtype=np.uint64)

    def generator(seed):
        """The generator of another NumPy, in which whole numbers and uniform ones come from other bits."""
        return types.SimpleNamespace(
            integers=lambda below, size: np.arange(size) + seed, uniform=lambda low, high: (low + high) * (seed + 1)
        )

    monkeypatch.setattr(many_streams.np.random, "default_rng", generator)
    assert first_integers(seeds, 9, 2).tolist() == [[seed, seed + 1] for seed in range(5)]
    assert first_uniforms(seeds, np.zeros(1), np.ones(1)).tolist() == [[seed + 1] for seed in range(5)]


def words_of(rng):
    key = key_of(rng)
    return [number >> shift & 2**64 - 1 for number in key for shift in (64, 0)]


@tried
@given(seeds_of_64_bits)
def test_states(seeds):
    states = generator_states(seeds)
    alone = [np.random.default_rng(seed) for seed in seeds.tolist()]
    assert states.tolist() == [words_of(rng) for rng in alone]
    assert side_states(states, 3).tolist() == [words_of(side_generator(key_of(rng), 3)) for rng in alone]


def test_states_whose_words_are_short():
    states = np.array([[5, 7, 2**63, 1], [2**63, 1, 3, 9], [0, 0, 0, 1]], dtype=np.uint64)
    keys = [(a << 64 | b, c << 64 | d) for a, b, c, d in states.tolist()]
    assert side_states(states, 1).tolist() == [words_of(side_generator(key, 1)) for key in keys]


@pytest.mark.skipif(numba is None, reason="streams are drawn from by the compiler")
@tried
@given(st.integers(0, 2**64 - 1), st.lists(st.tuples(st.sampled_from("isr"), st.integers(2, 200)), max_size=9))
def test_compiled_streams(seed, draws):
    rng = np.random.default_rng(seed)
    stream = np.append(generator_states(np.array([seed], dtype=np.uint64))[0], np.uint64(0))
    for kind, size in draws:
        if kind == "i":
            assert draw_below(stream, size) == rng.integers(size)
            assert draw_below(stream, size * 2**24) == rng.integers(size * 2**24)
        elif kind == "r":
            assert draw_share(stream) == rng.random()
        else:
            exact, ours = np.arange(size), np.arange(size)
            rng.shuffle(exact)
            shuffle(stream, ours, size)
            assert ours.tolist() == exact.tolist()
