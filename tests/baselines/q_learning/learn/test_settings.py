import dataclasses
import json

import numpy as np
import pytest

from llm_coop_envs.baselines.q_learning.learn import settings as module
from llm_coop_envs.baselines.q_learning.learn.sessions import run_docked_session
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.errors import SettingsError


def market(**given):
    return BertrandSettings.build("calvano", **given)


def test_the_defaults_are_the_representative_experiment():
    settings = QLearningSettings()
    assert (settings.alpha, settings.beta, settings.delta, settings.memory) == (0.15, 4e-6, 0.95, 1)
    assert (settings.window, settings.max_periods) == (100_000, 1_250_000_000)
    assert (settings.firms, settings.states, settings.market.grid_points) == (2, 225, 15)
    assert settings.cooling == pytest.approx(0.999961, abs=1e-6)
    assert settings.temperature == 1000.0
    assert settings.initial_range == (0.0, 10.0)
    assert settings.initial_value == 5.0
    assert settings.market.benchmark_decimals == 5


WRONG = [
    ("firms", {"market": market(firms=5)}, "2 to 4 firms"),
    ("prices", {"market": market(prices="continuous")}, "needs a grid"),
    ("grid_points", {"market": market(grid_points=1001)}, "at most 1000"),
    ("market", {"market": "calvano"}, "BertrandSettings"),
    ("market.moves", {"market": market(moves="alternating")}, "learn.sequential"),
    ("memory", {"memory": 3}, "between 0 and 2"),
    ("alpha", {"alpha": 0.0}, "above 0 and at most 1"),
    ("alpha", {"alpha": 1.01}, "above 0 and at most 1"),
    ("alpha", {"alpha": (0.1, 0.2, 0.3)}, "3 values for 2 firms"),
    ("alpha", {"alpha": (0.1, "x")}, "one per firm"),
    ("beta", {"beta": 0.0}, "above 0 and at most 1"),
    ("beta", {"beta": 1.1}, "above 0 and at most 1"),
    ("beta", {"beta": float("nan")}, "must be a number"),
    ("delta", {"delta": 1.0}, "at least 0 and below 1"),
    ("delta", {"delta": -0.1}, "at least 0 and below 1"),
    ("delta", {"delta": True}, "must be a number"),
    ("initial", {"initial": "zero"}, "must be one of uniform"),
    ("initial_points", {"initial_points": (2,)}, "two price indices, 0 to 14"),
    ("initial_points", {"initial_points": (2, 15)}, "two price indices, 0 to 14"),
    ("initial_points", {"initial_points": (True, 3)}, "two price indices"),
    ("initial_range", {"initial_range": (3.0, 1.0)}, "lower number first"),
    ("initial_range", {"initial_range": 3.0}, "two numbers"),
    ("initial_range", {"initial_range": (0.0, float("inf"))}, "two numbers"),
    ("initial_value", {"initial_value": "5"}, "finite number"),
    ("exploration", {"exploration": "greedy"}, "must be one of epsilon"),
    ("temperature", {"temperature": 0.0}, "above 0"),
    ("cooling", {"cooling": 1.0}, "below 1"),
    ("cooling", {"cooling": 0.0}, "above 0"),
    ("updates", {"updates": "both"}, "must be one of"),
    ("ties", {"ties": "first"}, "must be one of lowest, random"),
    ("window", {"window": 0}, "1 or more"),
    ("max_periods", {"max_periods": 0}, "between 1 and"),
    ("max_periods", {"max_periods": 10**15 + 1}, "between 1 and 1000000000000000"),
    ("memory_limit", {"memory_limit": 0.0}, "above 0"),
    ("price_range", {"price_range": (2.0, 1.0)}, "lower number first"),
    ("price_range", {"price_range": (1.0, 1.0)}, "lower number first"),
    ("price_range", {"price_range": (-1.0, 2.0)}, "below a price of 0"),
    ("price_range", {"price_range": (1.5, 2.0)}, "misses firm 0's Nash price 1.47293; widen it"),
    ("price_range", {"price_range": (1.0, 1.9)}, "misses firm 0's joint-profit price 1.92498; widen it"),
]


@pytest.mark.parametrize(("field", "given", "words"), WRONG)
def test_impossible_settings_are_refused_in_one_sentence(field, given, words):
    with pytest.raises(SettingsError, match=words) as caught:
        QLearningSettings(**given)
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


def test_the_borders_are_possible():
    QLearningSettings(alpha=1.0, beta=1.0, delta=0.0, window=1, max_periods=10**15)
    QLearningSettings(market=market(firms=4, grid_points=3), memory=2)
    QLearningSettings(market=market(grid_points=1000), memory=0)
    QLearningSettings(price_range=(1.47293, 1.92498))


def test_a_table_that_does_not_fit_is_refused_with_its_size(monkeypatch):
    words = r"memory=2: 4 firms with 15 prices and a memory of 2 have 2,562,890,625 states.* would take 1,260 GiB"
    with pytest.raises(SettingsError, match=words):
        QLearningSettings(market=market(firms=4), memory=2)
    fits = QLearningSettings(market=market(firms=3))
    needed = 3 * 3375 * (15 * 8 + 12) + 3375 * 3 * 8
    assert fits.table_bytes == needed
    monkeypatch.setattr(module, "machine_memory", lambda: int(needed / 0.75) + 1)
    QLearningSettings(market=market(firms=3))
    monkeypatch.setattr(module, "machine_memory", lambda: int(needed / 0.75) - 2)
    with pytest.raises(SettingsError, match="raise memory_limit"):
        QLearningSettings(market=market(firms=3))
    QLearningSettings(market=market(firms=3), memory_limit=1.0)
    with pytest.raises(SettingsError, match="raise memory_limit"):
        QLearningSettings(market=market(firms=3), memory_limit=0.001)


def test_the_size_of_the_machine_is_known_or_assumed(monkeypatch):
    assert module.machine_memory() > 2**28
    monkeypatch.delattr(module.os, "sysconf")
    assert module.machine_memory() == 8 * 2**30


def test_settings_survive_json():
    settings = QLearningSettings(
        market=market(firms=3, cost=(1.0, 0.9, 0.8)), alpha=(0.1, 0.2, 0.3), initial_points=(1, 13), price_range=(1, 3)
    )
    data = json.loads(json.dumps(settings.to_json()))
    assert QLearningSettings.from_json(data) == settings
    assert QLearningSettings.from_json({"market": {"preset": "calvano"}}) == QLearningSettings()
    assert QLearningSettings.from_json({}) == QLearningSettings()
    with pytest.raises(SettingsError, match="is no setting of QLearningSettings; did you mean 'alpha'"):
        QLearningSettings.from_json({"alhpa": 0.1})


def test_a_range_of_prices_replaces_the_grid():
    settings = QLearningSettings(price_range=(0.99, 1.970185))
    grid = settings.grids[1]
    assert (grid[0], grid[-1], len(grid)) == (0.99, 1.970185, 15)
    assert QLearningSettings().grids == QLearningSettings().market.grids
    assert dataclasses.replace(settings, price_range=None).grids[0][0] == pytest.approx(1.427725)


def test_stochastic_demand_is_measured_by_what_is_expected():
    learning = QLearningSettings(shocks=0.25)
    low, middle, high = (one.equilibria for one in learning.markets)
    # As printed in the inputs of the authors' package (A_InputParameters.txt of table_A6).
    assert (low.nash[0], middle.nash[0], high.nash[0]) == (1.48865, 1.47293, 1.44331)
    assert (low.joint[0], middle.joint[0], high.joint[0]) == (2.11343, 1.92498, 1.75)
    grid, gap = learning.grids[0], 2.11343 - 1.44331
    assert (grid[0], grid[-1]) == pytest.approx((1.44331 - 0.1 * gap, 2.11343 + 0.1 * gap))
    game = learning.game()
    assert game.profits == pytest.approx(learning.market_profits(game).mean(axis=0))
    assert game.equilibria.nash_profit[0] == pytest.approx(np.mean([one.nash_profit[0] for one in (low, middle, high)]))
    assert QLearningSettings.from_json(learning.to_json()) == learning
    # Folders of older versions do not name it, and go on.
    assert "shocks" not in QLearningSettings().to_json()
    with pytest.raises(SettingsError, match="needs logit demand"):
        QLearningSettings(market=BertrandSettings.build("team_up_linear", prices="grid", price_cap=None), shocks=0.1)
    with pytest.raises(SettingsError, match="our own random numbers"):
        run_docked_session(learning, 1)
