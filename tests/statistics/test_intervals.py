import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from llm_coop_envs.statistics.intervals import hall_reach, mean_interval, mean_intervals, student_cdf, student_quantile

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
def test_interval_holds_the_mean_and_all_of_students(values):
    found = mean_interval(values)
    spread, n = np.std(values, ddof=1), len(values)
    slack = 1e-9 * max(1.0, *(abs(v) for v in values))
    half = student_quantile(0.975, n - 1) * spread / math.sqrt(n)
    assert found.n == n
    assert found.mean == pytest.approx(math.fsum(values) / n, abs=slack)
    assert found.low <= found.mean - half + slack
    assert found.high >= found.mean + half - slack


@given(st.lists(numbers, min_size=2, max_size=12), st.floats(-100, 100), st.floats(0.01, 100))
@example([0.0, 0.0, 8.9e-114], 0.0, 1.0)
@settings(max_examples=60)
def test_interval_moves_and_stretches_with_the_values(values, shift, scale):
    plain = mean_interval(values)
    moved = mean_interval([scale * v + shift for v in values])
    slack = 1e-4 * max(1.0, *(abs(scale * v) for v in values))
    for name in ("mean", "low", "high"):
        assert getattr(moved, name) == pytest.approx(scale * getattr(plain, name) + shift, abs=slack)


def test_hall_as_written_in_the_paper():
    """Its ends are where the transformed statistic is a quantile of Student's t: the cubic, not its inverse."""
    values = np.random.default_rng(2).exponential(size=9)
    n, off = len(values), values - values.mean()
    error = off.std(ddof=1) / math.sqrt(n)
    skewness = (off**3).sum() * n / ((n - 1) * (n - 2)) / off.std(ddof=1) ** 3
    reach = student_quantile(0.975, n - 1)
    below, above = hall_reach(off[:, None], np.array([error]), reach)[:, 0]
    for t, reached in ((below, reach), (-above, -reach)):
        a = skewness / math.sqrt(n)
        assert t + a * t**2 / 3 + a**2 * t**3 / 27 + a / 6 == pytest.approx(reached)
    assert above > reach > below


def test_symmetric_values_have_students_interval():
    found = mean_interval([-2.0, -1.0, 0.0, 1.0, 2.0])
    half = 2.776445 * math.sqrt(2.5 / 5)
    assert (found.low, found.high) == (pytest.approx(-half, abs=1e-4), pytest.approx(half, abs=1e-4))


@given(numbers, st.integers(2, 30))
def test_equal_values_have_a_point_for_an_interval(value, n):
    found = mean_interval([value] * n)
    assert found.low == found.mean == found.high == pytest.approx(value)


def test_yes_and_no_have_the_exact_interval():
    """5 of 5: the chance of it is 2.5 % at a rate of .025^(1/5); as printed in tables of Clopper and Pearson."""
    assert mean_interval([True] * 5).low == pytest.approx(0.025**0.2)
    found = mean_interval([True, None, False, True, True, True])
    assert (found.mean, found.n) == (0.8, 5)
    assert (found.low, found.high) == (pytest.approx(0.2836, abs=1e-4), pytest.approx(0.9949, abs=1e-4))
    assert mean_interval([1.0] * 5).low == 1.0  # a number that is 1 each time is not a yes


def test_one_value_has_no_interval_and_none_has_nothing():
    one = mean_interval([3.5])
    assert (one.mean, one.low, one.high, one.n) == (3.5, None, None, 1)
    assert mean_interval([]) is None
    assert mean_interval([None, math.nan]) is None


def test_missing_values_are_not_counted():
    assert mean_interval([1.0, None, 3.0, math.nan]) == mean_interval([1.0, 3.0])


def test_weights_count_as_often_as_they_say():
    """Three deviations of one episode and one of another: the mean of all four."""
    found = mean_interval([1.0, None, 3.0], weights=[3, 7, 1])
    assert (found.mean, found.n) == (1.5, 2)
    values = [1.0, 4.0, 2.0, 8.0]
    assert mean_interval(values, weights=[2.0] * 4) == mean_interval(values)
    # Nearly all of the weight on one value leaves nearly nothing to chance.
    heavy = mean_interval([1.0, 2.0, 3.0], weights=[1e9, 1.0, 1.0])
    assert [heavy.mean, heavy.low, heavy.high] == pytest.approx([1.0] * 3, abs=1e-6)


@given(st.integers(2, 8), st.integers(1, 5), st.integers(0, 1000))
@settings(max_examples=30)
def test_curves_agree_with_single_points(n, points, seed):
    episodes = np.random.default_rng(seed).normal(size=(n, points))
    curves = mean_intervals(episodes)
    for k in range(points):
        single = mean_interval(episodes[:, k].tolist())
        assert curves[:, k].tolist() == pytest.approx([single.mean, single.low, single.high])


def test_level_decides_the_width():
    values = list(range(20))
    narrow, wide = (mean_interval(values, level=level) for level in (0.5, 0.99))
    assert wide.low < narrow.low < narrow.high < wide.high
