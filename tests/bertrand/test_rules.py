"""Equilibria, grids, outcomes, gains and the band."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llm_coop_envs.bertrand import rules
from llm_coop_envs.bertrand.demand import LinearMarket, LogitMarket
from llm_coop_envs.bertrand.rules import (
    Band,
    find_equilibria,
    nearest,
    normalised_profits,
    outcome,
    positions,
    price_grid,
    profit_gain,
    profit_table,
    round_positions,
)
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.errors import SettingsError

CALVANO = BertrandSettings.build("calvano")
UNEQUAL = LogitMarket(cost=(1.0, 0.5), quality=(2.0, 2.0), outside=0.0, mu=0.25, scale=1.0)


def test_calvanos_inputs():
    """Prices rounded to 5 decimals, and the profits at them."""
    assert CALVANO.equilibria.nash == (1.47293, 1.47293)
    assert CALVANO.equilibria.joint == (1.92498, 1.92498)
    assert CALVANO.equilibria.nash_profit == pytest.approx([0.222928] * 2, abs=1e-6)
    assert CALVANO.equilibria.joint_profit == pytest.approx([0.337490] * 2, abs=1e-6)


def test_benchmarks_are_exact_without_decimals():
    equilibria = find_equilibria(CALVANO.market)
    assert equilibria.nash[0] == pytest.approx(1.4729266600306, abs=1e-12)
    assert equilibria.nash_profit == pytest.approx([p - 1 - 0.25 for p in equilibria.nash], abs=1e-12)


def test_benchmark_profits_are_not_truncated():
    assert BertrandSettings.build("team_up_linear", cost=2.3).equilibria.nash_profit[0] % 1 != 0


def test_independent_goods_leave_nothing_to_measure():
    market = LinearMarket(cost=(2.0, 2.0), quality=(14.0, 14.0), beta=1.0, d=0.0)
    with pytest.raises(SettingsError, match="firm 0's joint-profit price 8 is not above its Nash price 8"):
        find_equilibria(market)


def test_calvanos_grid():
    grid = CALVANO.grids[0]
    assert len(grid) == 15
    assert grid[0] == 1.47293 - 0.1 * (1.92498 - 1.47293) == pytest.approx(1.427725, abs=1e-9)
    assert grid[-1] == 1.92498 + 0.1 * (1.92498 - 1.47293) == pytest.approx(1.970185, abs=1e-9)
    assert np.diff(grid) == pytest.approx([0.0387472] * 14, abs=1e-6)
    assert grid[4] == pytest.approx(1.5827, abs=5e-5)


def test_a_grid_is_filled_by_repeated_addition_and_closed_directly():
    grid = price_grid(1.47293, 1.92498, 15, 0.1)
    step = (grid[-1] - grid[0]) / 14
    total = grid[0]
    for price in grid[1:-1]:
        total += step
        assert price == total
    assert grid[-1] == 1.92498 + 0.1 * (1.92498 - 1.47293)
    assert grid != tuple(np.linspace(grid[0], grid[-1], 15).tolist())


@given(st.floats(0.5, 5), st.floats(0.1, 5), st.integers(2, 200), st.floats(0, 1))
def test_grids_ascend_and_cover_both_prices(nash, gap, points, xi):
    grid = price_grid(nash, nash + gap, points, xi)
    assert len(grid) == points
    assert list(grid) == sorted(set(grid))
    assert grid[0] <= nash
    assert grid[-1] >= nash + gap


def test_nearest_takes_the_lower_of_two():
    assert [nearest((1.0, 2.0, 3.0), p) for p in (-5, 1.4, 1.5, 1.6, 9)] == [0, 0, 0, 1, 2]


@pytest.mark.parametrize(
    ("index", "gain"),
    [(2, -0.024), (3, 0.117), (5, 0.378), (8, 0.707), (9, 0.794), (10, 0.868), (11, 0.926), (12, 0.969), (13, 0.993)],
)
def test_the_gain_of_equal_grid_prices(index, gain):
    """Calvano et al. 2020: Delta of the symmetric grid prices, numbered from 1."""
    price = CALVANO.grids[0][index - 1]
    assert profit_gain(CALVANO.market.profits((price, price)), CALVANO.equilibria) == pytest.approx(gain, abs=6e-4)


def test_the_gain_of_all_grid_prices_at_once():
    demand, profits = profit_table(CALVANO.market, CALVANO.grids)
    assert demand.shape == profits.shape == (15, 15, 2)
    gains = profit_gain(profits, CALVANO.equilibria)
    assert gains.shape == (15, 15)
    assert gains[13, 13] == pytest.approx(0.9997, abs=5e-5)
    assert gains[14, 14] == pytest.approx(0.987, abs=5e-4)
    assert np.allclose(gains, gains.T)


def test_the_table_is_the_market_at_every_cell():
    grids = ((1.2, 1.5), (1.0, 1.3))
    demand, profits = profit_table(UNEQUAL, grids)
    for i, j in itertools.product(range(2), repeat=2):
        prices = (grids[0][i], grids[1][j])
        assert demand[i, j].tolist() == UNEQUAL.demand(prices)
        assert profits[i, j].tolist() == UNEQUAL.profits(prices)


def test_gains_are_zero_at_nash_and_one_at_joint_profit():
    for market in (CALVANO.market, UNEQUAL):
        equilibria = find_equilibria(market)
        assert profit_gain(equilibria.nash_profit, equilibria) == pytest.approx(0)
        assert profit_gain(equilibria.joint_profit, equilibria) == pytest.approx(1)
        assert normalised_profits(equilibria.nash_profit, equilibria) == pytest.approx([0, 0])
        assert normalised_profits(equilibria.joint_profit, equilibria).mean() == pytest.approx(1)
    equilibria = find_equilibria(CALVANO.market)
    assert normalised_profits(equilibria.joint_profit, equilibria) == pytest.approx([1, 1])


@pytest.mark.parametrize(("price", "gain"), [(7, 0.75), (7.5, 0.9375), (2, -8)])
def test_the_gain_in_the_published_linear_market(price, gain):
    settings = BertrandSettings.build("team_up_linear")
    assert profit_gain(settings.market.profits((price, price)), settings.equilibria) == pytest.approx(gain, abs=1e-6)


def test_positions_and_places_agree():
    equilibria = find_equilibria(UNEQUAL)
    rows = [(1.5, 1.2), (2.0, 1.9), (0.0, 5.0)]
    assert positions(rows, equilibria).tolist() == [round_positions(row, equilibria) for row in rows]
    assert round_positions(equilibria.nash, equilibria) == [0, 0]
    assert round_positions(equilibria.joint, equilibria) == [1, 1]


@pytest.mark.parametrize(
    ("where", "is_together"),
    [
        ((0.0, 0.0), True),
        ((1.0, 1.0), True),
        ((0.5, 0.6), True),
        ((0.6, 0.5), True),
        ((0.5, 0.61), False),
        ((0.95, 1.01), False),
        ((-0.01, 0.05), False),
        ((0.5, 0.55, 0.6), True),
        ((0.5, 0.55, 0.65), False),
    ],
)
def test_prices_held_together(where, is_together):
    assert Band(tolerance=0.1).holds(where) is is_together


def test_the_band_forgives_rounding_only():
    band = Band(low=0.2, high=0.8, tolerance=0.1)
    assert rules.ROUNDING == 1e-6
    assert band.holds((0.2 - 0.9e-6, 0.3 - 0.1e-6))
    assert band.holds((0.8 + 0.9e-6,))
    assert not band.holds((0.2 - 1.1e-6,))
    assert not band.holds((0.8 + 1.1e-6,))
    assert not band.holds((0.5, 0.6 + 1.1e-6))


def test_the_band_starts_at_nash_and_ends_at_joint_profit():
    assert Band(tolerance=0.1) == Band(low=0.0, high=1.0, tolerance=0.1)


def test_an_outcome_is_what_the_parts_say():
    equilibria = find_equilibria(UNEQUAL)
    band = Band(tolerance=0.1)
    prices = (1.6, 1.4)
    result = outcome(UNEQUAL, equilibria, band, prices)
    assert result.prices == prices
    assert list(result.demand) == UNEQUAL.demand(prices)
    assert list(result.profits) == UNEQUAL.profits(prices)
    assert list(result.positions) == round_positions(prices, equilibria)
    assert list(result.gains) == pytest.approx(normalised_profits(result.profits, equilibria).tolist())
    assert result.together is band.holds(result.positions)
