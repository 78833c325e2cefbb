import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_coop_envs.core import statistics
from llm_coop_envs.core.statistics import bootstrap_mean, bootstrap_means, student_cdf, student_quantile

numbers = st.floats(-1e6, 1e6)

# Two-sided 95 % quantiles as printed in statistical tables (Abramowitz and Stegun 1964, table 26.10).
TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 9: 2.262, 14: 2.145, 30: 2.042, 120: 1.980}


@pytest.mark.parametrize(("df", "printed"), TABLE.items())
def test_student_quantiles_as_in_the_tables(df, printed):
    assert student_quantile(0.975, df) == pytest.approx(printed, abs=6e-4)


@given(st.floats(0, 50), st.integers(1, 60))
def test_quantile_inverts_the_distribution(t, df):
    probability = student_cdf(t, df)
    assert 0.5 <= probability <= 1
    if probability < 1 - 1e-9:
        assert student_cdf(student_quantile(probability, df), df) == pytest.approx(probability, abs=1e-12)


@given(st.lists(numbers, min_size=2, max_size=20))
@settings(max_examples=60)
def test_interval_holds_the_mean_and_stays_among_the_values(values):
    found = bootstrap_mean(values, resamples=200)
    slack = 1e-9 * max(1.0, *(abs(v) for v in values))
    assert found.n == len(values)
    assert found.mean == pytest.approx(math.fsum(values) / len(values), abs=slack)
    assert min(values) - slack <= found.low <= found.mean <= found.high <= max(values) + slack


@given(st.lists(numbers, min_size=2, max_size=12), st.floats(-100, 100), st.floats(0.01, 100))
@settings(max_examples=60)
def test_interval_moves_and_stretches_with_the_values(values, shift, scale):
    plain = bootstrap_mean(values, resamples=200)
    moved = bootstrap_mean([scale * v + shift for v in values], resamples=200)
    slack = 1e-6 * max(1.0, *(abs(scale * v) for v in values))
    for name in ("mean", "low", "high"):
        assert getattr(moved, name) == pytest.approx(scale * getattr(plain, name) + shift, abs=slack)


@given(st.lists(numbers, min_size=2, max_size=10), st.integers(0, 2**32))
@settings(max_examples=30)
def test_same_seed_same_interval(values, seed):
    assert bootstrap_mean(values, resamples=100, seed=seed) == bootstrap_mean(values, resamples=100, seed=seed)


@given(st.lists(numbers, min_size=3, max_size=12, unique=True))
@settings(max_examples=40)
def test_expanding_never_narrows(values):
    wide = bootstrap_mean(values, resamples=300)
    plain = bootstrap_mean(values, resamples=300, expand=False)
    assert wide.low <= plain.low
    assert wide.high >= plain.high


@given(numbers, st.integers(2, 30))
def test_equal_values_have_a_point_for_an_interval(value, n):
    found = bootstrap_mean([value] * n, resamples=50)
    assert found.low == pytest.approx(value)
    assert found.high == pytest.approx(value)


def test_one_value_has_no_interval_and_none_has_nothing():
    one = bootstrap_mean([3.5])
    assert (one.mean, one.low, one.high, one.n) == (3.5, None, None, 1)
    assert bootstrap_mean([]) is None
    assert bootstrap_mean([None, math.nan]) is None


def test_missing_values_are_not_counted():
    assert bootstrap_mean([1.0, None, 3.0, math.nan], seed=2) == bootstrap_mean([1.0, 3.0], seed=2)


def test_weights_count_as_often_as_they_say():
    """Three deviations of one episode and one of another: the mean of all four."""
    found = bootstrap_mean([1.0, None, 3.0], weights=[3, 7, 1])
    assert (found.mean, found.n) == (1.5, 2)
    assert 1.0 <= found.low <= 1.5 <= found.high <= 3.0
    values = [1.0, 4.0, 2.0, 8.0]
    assert bootstrap_mean(values, weights=[2.0] * 4, seed=3) == bootstrap_mean(values, seed=3)
    # Nearly all of the weight on one value leaves nearly nothing to chance, unless it is not drawn.
    assert bootstrap_mean([1.0, 2.0, 3.0], weights=[1e9, 1.0, 1.0]).mean == pytest.approx(1.0)


def test_coverage_is_near_what_it_says():
    rng = np.random.default_rng(7)
    covered = {True: 0, False: 0}
    repeats = 400
    for i in range(repeats):
        values = rng.normal(size=5).tolist()
        for expand in covered:
            found = bootstrap_mean(values, resamples=1000, expand=expand, seed=i)
            covered[expand] += found.low <= 0 <= found.high
    assert covered[True] / repeats > 0.90
    assert covered[False] / repeats < 0.88


@given(st.integers(2, 8), st.integers(1, 5), st.integers(0, 1000))
@settings(max_examples=30)
def test_curves_agree_with_single_points(n, points, seed):
    episodes = np.random.default_rng(seed).normal(size=(n, points))
    curves = bootstrap_means(episodes, resamples=200)
    for k in range(points):
        single = bootstrap_mean(episodes[:, k].tolist(), resamples=200)
        assert curves[:, k].tolist() == pytest.approx([single.mean, single.low, single.high])


def test_many_episodes_are_taken_in_parts(monkeypatch):
    values = np.random.default_rng(0).normal(size=(50, 2))
    whole = bootstrap_means(values, resamples=300)
    monkeypatch.setattr(statistics, "_WEIGHTS_AT_ONCE", 50 * 7)
    np.testing.assert_allclose(bootstrap_means(values, resamples=300), whole)


def test_level_decides_the_width():
    values = list(range(20))
    narrow, wide = (bootstrap_mean(values, level=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high


@pytest.mark.parametrize("weights", [None, np.linspace(1, 3, statistics.MANY)])
def test_many_values_are_not_resampled_and_it_cannot_be_seen(monkeypatch, weights):
    """The ends move by less than a tenth of the standard error, skewed values and weights included."""
    values = np.random.default_rng(1).exponential(size=(statistics.MANY, 3))
    direct = bootstrap_means(values, weights=weights)
    with monkeypatch.context() as patch:
        patch.setattr(np.random, "default_rng", None)
        assert bootstrap_means(values, weights=weights) == pytest.approx(direct)
    monkeypatch.setattr(statistics, "MANY", 10**9)
    resampled = bootstrap_means(values, weights=weights)
    assert direct == pytest.approx(resampled, abs=0.1 * values.std() / math.sqrt(len(values)))
