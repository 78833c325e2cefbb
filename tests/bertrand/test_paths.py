"""Cycles in paths of prices, and what they are worth."""

import numpy as np
import pytest

from llm_coop_envs.bertrand.paths import cycle_class, cycle_gain, discounted, path_cycle, same_cycle
from llm_coop_envs.bertrand.settings import BertrandSettings

EQUILIBRIA = BertrandSettings.build("calvano").equilibria
NASH, JOINT = EQUILIBRIA.nash[0], EQUILIBRIA.joint[0]


def path_at(*rows):
    """Prices at these places on the scale from Nash (0) to joint profit (1), and profits to tell rounds apart."""
    positions = np.array(rows, dtype=float)
    return NASH + positions * (JOINT - NASH), 10.0 * positions[:, ::-1]


def test_a_path_ends_in_the_shortest_cycle_that_it_repeats():
    prices, profits = path_at((0.0, 0.2), (1.0, 1.0), (0.5, 0.6), (0.7, 0.7), (0.5, 0.6), (0.7, 0.7))
    cycle = path_cycle(prices, profits, EQUILIBRIA)
    assert (cycle.begins, cycle.length, cycle.kind) == (2, 2, "2")
    assert cycle.prices.tolist() == prices[2:4].tolist()
    assert cycle.profits.tolist() == profits[2:4].tolist()


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        ([(0.5, 0.5)] * 2, "1-symmetric"),
        ([(0.5, 0.4)] * 2, "1-asymmetric"),
        ([(0.5, 0.5), (0.4, 0.4)] * 2, "2"),
        ([(0.5, 0.5), (0.4, 0.4), (0.3, 0.3)] * 2, "3+"),
    ],
)
def test_the_classes_of_table_i(rows, kind):
    cycle = path_cycle(*path_at(*rows), EQUILIBRIA)
    assert (cycle.begins, cycle.kind) == (0, kind)


def test_what_does_not_repeat_itself_has_no_cycle():
    assert path_cycle(*path_at((0.1, 0.1), (0.2, 0.2), (0.3, 0.3), (0.4, 0.4)), EQUILIBRIA) is None
    assert path_cycle(np.zeros((0, 2)), np.zeros((0, 2)), EQUILIBRIA) is None


def test_prices_within_the_tolerance_are_equal():
    rows = path_at((0.5, 0.5), (0.51, 0.49), (0.5, 0.5))
    assert path_cycle(*rows, EQUILIBRIA) is None
    assert path_cycle(*rows, EQUILIBRIA, tolerance=0.02).kind == "1-symmetric"
    assert cycle_class([(0.5, 0.52)], 0.03) == "1-symmetric"


def test_a_slow_drift_is_no_constant_price():
    """From Nash to joint profit in 50 rounds: each price is like the one before it, the last is not like the first."""
    drift = path_at(*np.repeat(np.linspace(0, 1, 50)[:, None], 2, axis=1))
    assert path_cycle(*drift, EQUILIBRIA, tolerance=0.05) is None
    settled = path_at(*np.repeat([*np.linspace(0, 1, 50), *[1.0] * 50], 2).reshape(-1, 2))
    assert path_cycle(*settled, EQUILIBRIA, tolerance=0.05).begins == 47
    noise = 0.5 + np.random.default_rng(0).uniform(-0.02, 0.02, (120, 2))
    cycle = path_cycle(*path_at(*noise), EQUILIBRIA, tolerance=0.05)
    assert (cycle.begins, cycle.kind) == (0, "1-symmetric")
    assert path_cycle(*path_at(*noise), EQUILIBRIA, tolerance=0.01) is None


def test_cycles_are_the_same_wherever_they_begin():
    cycle = path_cycle(*path_at(*[(0.1, 0.1), (0.2, 0.2), (0.3, 0.3)] * 2), EQUILIBRIA)
    turned = path_cycle(*path_at(*[(0.3, 0.3), (0.1, 0.1), (0.2, 0.2)] * 2), EQUILIBRIA)
    backwards = path_cycle(*path_at(*[(0.3, 0.3), (0.2, 0.2), (0.1, 0.1)] * 2), EQUILIBRIA)
    shorter = path_cycle(*path_at(*[(0.1, 0.1)] * 2), EQUILIBRIA)
    assert same_cycle(cycle, turned, EQUILIBRIA)
    assert not same_cycle(cycle, backwards, EQUILIBRIA)
    assert not same_cycle(cycle, shorter, EQUILIBRIA)


def test_gain_of_a_cycle():
    prices = np.array([[JOINT, JOINT], [NASH, NASH]] * 2)
    profits = np.array([EQUILIBRIA.joint_profit, EQUILIBRIA.nash_profit] * 2)
    assert cycle_gain(path_cycle(prices, profits, EQUILIBRIA), EQUILIBRIA) == pytest.approx(0.5)


def test_a_cycle_is_worth_what_it_pays_for_ever():
    prices, profits = path_at((0.0, 0.9), (0.1, 0.8), (0.5, 0.6), (0.7, 0.7), (0.5, 0.6), (0.7, 0.7))
    endless = discounted(profits, 0.9, path_cycle(prices, profits, EQUILIBRIA))
    long = np.concatenate([profits, *[profits[2:4]] * 400])
    assert endless == pytest.approx(discounted(long, 0.9, None))
    assert discounted(profits[:2], 0.9, None) == pytest.approx(profits[0] + 0.9 * profits[1])
    assert discounted(profits, 0.0, None).tolist() == profits[0].tolist()
