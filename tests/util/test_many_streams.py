"""Many generators at once draw what NumPy's draw one by one."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_coop_envs.util.draws import episode_seed
from llm_coop_envs.util.many_streams import episode_seeds, first_integers, first_uniforms

tried = settings(max_examples=25, deadline=None, database=None)
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
