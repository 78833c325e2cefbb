import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs.baselines.q_learning.learn import duopoly, kernel, streams
from llm_coop_envs.baselines.q_learning.learn.vectors import LANES, address, half_address

words = st.integers(0, 2**64 - 1)


def ran2(seed, count):
    state = np.zeros(streams.RAN2_WORDS, dtype=np.int64)
    streams.ran2_seed(state, seed)
    return [streams.ran2_next(state) for _ in range(count)]


def test_ran2_begins_as_the_published_routine():
    assert ran2(1, 2) == [0.2853808990946861, 0.2533581892659171]
    assert ran2(7, 1) == [0.45206034994923033]
    assert ran2(0, 5) == ran2(1, 5)


def test_ran2_stays_below_one():
    state = np.full(streams.RAN2_WORDS, 2147483562, dtype=np.int64)
    state[1] = 1
    assert 0.0 < streams.ran2_next(state) <= 1.0 - 1.2e-7


def test_the_fast_stream_is_xoshiro256_plus_plus():
    # The first outputs of the authors' reference code from the state (1, 2, 3, 4).
    state = np.repeat(np.array([[1], [2], [3], [4]], dtype=np.uint64), LANES, axis=1)
    raw = np.zeros(5 * LANES, dtype=np.uint64)
    streams.fill(state, raw)
    expected = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205]
    assert raw.tolist() == [word for word in expected for _ in range(LANES)]


def test_ties_are_broken_by_split_mix():
    state = np.array([1234567], dtype=np.int64)
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [streams.split_mix(address_of(state)) for _ in expected] == [(z >> 11) / 2**53 for z in expected]


def address_of(array):
    return array.ctypes.data


@given(st.lists(words, min_size=8, max_size=8), st.integers(2, 40), st.floats(1e-12, 1.0), st.floats(0.0, 0.01))
def test_a_firm_explores_at_its_rate_and_uniformly(raw, points, eps, beta):
    firms = 4
    raw = np.array(raw, dtype=np.uint64)
    picks = np.zeros((firms, 4), dtype=np.int64)
    growth = np.exp(np.outer(np.full(firms, beta), np.arange(5)))
    streams.explore(raw, picks, points, np.full(firms, points / eps * 2.0**-32), growth)
    for j in range(4):
        for i in range(firms):
            word = int(raw[2 * j + i // 2])
            half = word >> 32 if i % 2 == 0 else word & 0xFFFFFFFF
            share = (half + 0.5) / 2**32 / (eps * np.exp(-beta * j))
            # floor(share * points) if the firm explores; rounding may decide at the borders.
            assert picks[i, j] == pytest.approx(min(share * points, points), abs=1.0 + 1e-9)
            assert picks[i, j] <= min(share * points, points) + 1e-9


@given(
    st.lists(words, min_size=8, max_size=8),
    st.integers(2, 16),
    st.tuples(st.floats(1e-12, 1.0), st.floats(1e-12, 1.0)),
    st.integers(0, 255),
)
def test_masks_say_what_picks_say(raw, points, eps, greedy):
    raw = np.array(raw, dtype=np.uint64)
    scale = np.array([points / e * 2.0**-32 for e in eps])
    growth = np.exp(np.outer([1e-3, 1e-5], np.arange(len(raw) + 1)))
    picks = np.zeros((2, len(raw)), dtype=np.int64)
    keep, explored = np.zeros(len(raw), dtype=np.int64), np.zeros(len(raw), dtype=np.int64)
    streams.explore(raw, picks, points, scale, growth)
    duopoly.masks(raw, keep, explored, points, scale[0], scale[1], growth)
    general = np.zeros((2, len(raw) + 1), dtype=np.int64)
    kernel.masks(picks, points, 4, *general)
    own = [greedy >> 4, greedy & 15]
    for j in range(len(raw)):
        asked = [own[i] if picks[i, j] == points else picks[i, j] for i in range(2)]
        assert (greedy & keep[j]) | explored[j] == 16 * asked[0] + asked[1]
        assert (greedy & general[0, j]) | general[1, j] == 16 * asked[0] + asked[1]


def test_exploration_rates_come_out():
    state = np.random.SeedSequence(3).generate_state(32, np.uint64).reshape(4, 8)
    raw, picks = np.zeros(2 * streams.BLOCK, dtype=np.uint64), np.zeros((3, streams.BLOCK), dtype=np.int64)
    eps = np.array([0.8, 0.3, 0.05])
    growth = np.ones((3, streams.BLOCK + 1))
    seen = []
    for _ in range(200):
        streams.fill(state, raw)
        streams.explore(raw, picks, 15, 15 / eps * 2.0**-32, growth)
        seen.append(picks.T.copy())
    seen = np.concatenate(seen)
    count = len(seen)
    for i, rate in enumerate(eps):
        counts = np.bincount(seen[:, i], minlength=16)
        expected = np.array([rate / 15] * 15 + [1 - rate]) * count
        assert ((counts - expected) ** 2 / expected).sum() < 50  # chi-square, 15 degrees: p = 1e-5
    for i, j in ((0, 1), (1, 2), (0, 2)):
        both = ((seen[:, i] < 15) & (seen[:, j] < 15)).mean()
        assert both == pytest.approx(eps[i] * eps[j], abs=5 * np.sqrt(eps[i] * eps[j] / count))


def test_an_array_without_an_address_is_refused():
    from llm_coop_envs.baselines.q_learning.learn.compiled import compiled

    @compiled
    def where(array):
        return address(array)

    array = np.zeros(6)
    assert where(array) == array.ctypes.data
    for wrong in (array[::2], np.zeros(3, dtype=np.int32)):
        with pytest.raises(Exception, match="contiguous array of 8-byte numbers"):
            where(wrong)

    @compiled
    def where_half(array):
        return half_address(array)

    halves = np.zeros(6, dtype=np.uint32)
    assert where_half(halves) == halves.ctypes.data
    with pytest.raises(Exception, match="contiguous array of 4-byte numbers"):
        where_half(array)
