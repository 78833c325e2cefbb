"""Settings: every published number, and every refusal."""

import json

import pytest

from llm_coop_envs.bertrand.demand import LinearMarket, LogitMarket
from llm_coop_envs.bertrand.rules import Band, price_grid
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.errors import SettingsError

build = BertrandSettings.build

DEFAULTS = {
    "talk": True,
    "talk_until": None,
    "talk_mode": "sequential",
    "message_length": 1000,
    "wording": "en-a",
    "firms": 2,
    "cost": 1.0,
    "quality": 2.0,
    "demand": "logit",
    "outside": 0.0,
    "mu": 0.25,
    "scale": 1.0,
    "beta": 1.0,
    "d": 0.5,
    "price_unit": 1.0,
    "prices": "continuous",
    "grid_points": 15,
    "grid_margin": 0.1,
    "benchmark_decimals": None,
    "initial_prices": None,
    "force_first_price": False,
    "price_floor": 0.0,
    "price_cap": None,
    "truncate_profit": False,
    "clamp_demand": False,
    "reward": "profit",
    "history_window": 20,
    "bin_size": 20,
    "bins": 20,
    "statistics": "every_round",
    "planning_period": 20,
    "exchanges": 3,
    "opener": "shuffled",
    "rounds": 1200,
    "collusion_window": 200,
    "collusion_tolerance": 0.1,
    "collusion_margin": "above_nash",
}
TEAM_UP = {
    "cost": 2.0,
    "initial_prices": 2.0,
    "force_first_price": True,
    "price_floor": "cost",
    "price_cap": 14.0,
}
FISH = {
    "scale": 100.0,
    "history_window": 100,
    "bins": 0,
    "rounds": 300,
    "collusion_window": 0,
    "talk": False,
}
LINEAR = {
    **TEAM_UP,
    "demand": "linear",
    "quality": 14.0,
    "beta": 0.00666666666666,
    "d": 0.00333333333333,
    "truncate_profit": True,
    "statistics": "planning_rounds",
}
PRESETS = {
    None: {},
    "calvano": {
        "prices": "grid",
        "benchmark_decimals": 5,
        "initial_prices": "random",
        "collusion_window": 0,
        "talk": False,
    },
    "team_up": {
        **TEAM_UP,
        "quality": 7.154190188735030,
        "mu": 2.477706336831434,
        "scale": 2102.091125663222,
    },
    "team_up_linear": LINEAR,
    "team_up_talk_stopped": {**LINEAR, "talk_until": 400, "collusion_window": 0, "rounds": 600},
    "fish": FISH,
    "fish_1": FISH,
    "fish_3_2": {**FISH, "price_unit": 3.2},
    "fish_10": {**FISH, "price_unit": 10.0},
    "fish_monopoly": {**FISH, "firms": 1},
    "klein": {
        **{"demand": "linear", "quality": 1.0, "cost": 0.0, "beta": 1.0, "d": 1.0, "clamp_demand": True},
        **{"prices": "grid", "grid_points": 7, "grid_span": "floor_to_cap", "initial_prices": "random"},
        **{"moves": "alternating", "history_window": 1, "bins": 0, "collusion_window": 0, "talk": False},
    },
}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_what_was_published(preset):
    assert build(preset).to_json() == {**DEFAULTS, **PRESETS[preset]}


def test_there_are_no_other_presets():
    assert set(BertrandSettings.presets) == set(PRESETS) - {None}


@pytest.mark.parametrize("preset", PRESETS)
def test_settings_survive_json(preset):
    settings = build(preset)
    assert build(None, **json.loads(json.dumps(settings.to_json()))) == settings


def test_given_fields_win_over_the_preset():
    settings = build("fish", price_unit=3.2, cost=[1, 0.5])
    assert settings == build("fish_3_2", cost=(1.0, 0.5))


@pytest.mark.parametrize(
    ("preset", "nash", "joint", "nash_profit", "joint_profit"),
    [
        ("fish_1", 1.4729, 1.9250, 22.29, 33.75),
        ("fish_3_2", 4.7134, 6.1599, 71.34, 108.00),
        ("fish_10", 14.7293, 19.2498, 222.93, 337.49),
    ],
)
def test_the_price_unit_changes_nothing_but_the_unit(preset, nash, joint, nash_profit, joint_profit):
    """Fish et al. 2024, alpha = 1, 3.2, 10."""
    settings = build(preset)
    assert settings.equilibria.nash == pytest.approx([nash] * 2, abs=5.1e-5)
    assert settings.equilibria.joint == pytest.approx([joint] * 2, abs=5.1e-5)
    assert settings.equilibria.nash_profit == pytest.approx([nash_profit] * 2, abs=5.1e-3)
    assert settings.equilibria.joint_profit == pytest.approx([joint_profit] * 2, abs=5.1e-3)
    sold = build("fish_1").market.demand((1.5, 1.7))
    assert settings.market.demand([p * settings.price_unit for p in (1.5, 1.7)]) == pytest.approx(sold, rel=1e-12)


def test_the_price_unit_scales_the_linear_market_too():
    plain, scaled = build("team_up_linear"), build("team_up_linear", price_unit=10.0, price_cap=140.0)
    assert scaled.market.demand((50, 70)) == pytest.approx(plain.market.demand((5, 7)), rel=1e-12)
    assert scaled.equilibria.nash == pytest.approx([60, 60])
    assert scaled.floors == (20.0, 20.0)


def test_the_market_has_the_settings_numbers():
    assert build(
        firms=3, cost=(1, 2, 3), quality=(4, 5, 6), outside=0.5, mu=0.3, scale=9, price_unit=2
    ).market == LogitMarket(cost=(2, 4, 6), quality=(8, 10, 12), outside=1.0, mu=0.6, scale=9, truncate=False)
    assert build(
        demand="linear", quality=10, beta=2, d=1, truncate_profit=True, clamp_demand=True
    ).market == LinearMarket(cost=(1, 1), quality=(10, 10), beta=2, d=1, truncate=True, clamp=True)


def test_floors():
    assert build(cost=(1, 1.2)).floors == (0.0, 0.0)
    assert build(price_floor=0.5).floors == (0.5, 0.5)
    assert build(cost=(1, 1.2), price_floor="cost").floors == (1.0, 1.2)


def test_caps():
    assert build(price_cap=9).cap == 9.0
    assert build().cap == 2.89
    assert build(quality=(2, 2.25)).cap == round(1.5 * max(build(quality=(2, 2.25)).equilibria.joint), 2)
    assert build(price_unit=0.4).cap == 1.15
    assert build(price_unit=0.1).cap == 1.5 * build(price_unit=0.1).equilibria.joint[0]
    assert build(demand="linear", quality=(10, 9), d=0.1).cap == 10
    assert build("team_up").cap == 14


def test_grids_are_each_firms_own():
    settings = build(prices="grid", cost=(1, 0.5), grid_points=7, grid_margin=0.2)
    equilibria = settings.equilibria
    assert settings.grids == tuple(price_grid(equilibria.nash[i], equilibria.joint[i], 7, 0.2) for i in range(2))
    assert settings.grids[0] != settings.grids[1]


def test_a_grid_reaches_from_the_lowest_to_the_highest_price():
    settings = build("klein", grid_points=5)
    assert settings.grids == ((0.0, 0.25, 0.5, 0.75, 1.0),) * 2
    # Joint profit is at 0.5, Nash at 0, and the band reaches half a step beyond.
    assert settings.grid_step == 0.5
    assert settings.band == Band(low=0.35, high=1.25, tolerance=0.1)
    fields = {"prices": "grid", "grid_span": "floor_to_cap", "grid_points": 3}
    assert build(**fields, price_cap=2.0, price_floor="cost", cost=[1, 0.5]).grids == (
        (1.0, 1.5, 2.0),
        (0.5, 1.25, 2.0),
    )
    assert build(**fields, firms=1, talk=False, price_cap=3.0).grids == ((0.0, 1.5, 3.0),)


def test_initial_prices():
    assert build().start is None
    assert build(initial_prices="random").start is None
    assert build(initial_prices=1.5).start == (1.5, 1.5)
    assert build(initial_prices=[1.5, 2]).start == (1.5, 2.0)
    assert build(initial_prices=[0.5, 2], price_floor="cost").start == (1.0, 2.0)
    grid = build("calvano").grids[0]
    assert build("calvano", initial_prices=[0, 1.59]).start == (grid[0], grid[4])


def test_the_band():
    assert build().band == Band(low=0.1, high=1.0, tolerance=0.1)
    assert build(collusion_margin="from_nash").band == Band(low=0.0, high=1.0, tolerance=0.1)
    assert build(collusion_tolerance=0.2, collusion_margin=0.3).band == Band(low=0.3, high=1.0, tolerance=0.2)


def test_the_band_holds_the_grid_prices_nearest_to_both_marks():
    settings = build("calvano", collusion_margin="from_nash")
    half = 1.2 / 14 / 2
    assert settings.band == Band(low=-half, high=1.0 + half, tolerance=0.1)
    nash, joint = settings.equilibria.nash[0], settings.equilibria.joint[0]
    inside = [settings.band.holds(((price - nash) / (joint - nash),)) for price in settings.grids[0]]
    assert inside == [False, *[True] * 13, False]
    assert build("calvano", collusion_margin=0).band == settings.band


@pytest.mark.parametrize("points", [2, 3, 15, 100])
def test_the_prices_of_a_grid_on_either_side_of_nash_are_nash_play(points):
    settings = build("calvano", grid_points=points)
    nash, joint = settings.equilibria.nash[0], settings.equilibria.joint[0]
    where = [(price - nash) / (joint - nash) for price in settings.grids[0]]
    step = where[1] - where[0]
    for position in where:
        assert settings.band.holds((position,)) is (position > 0.1 + step / 2 and position < 1 + step / 2)
    assert not any(settings.band.holds((position,)) for position in where if abs(position) < min(step, 0.1))


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"firm": 2}, "did you mean 'firms'"),
        ({"firms": 0}, "firms=0: must be between 1 and 1000"),
        ({"firms": 1}, "talk=True: a single firm has nobody to talk to"),
        ({"firms": 1001}, "between 1 and 1000"),
        ({"cost": -1.0}, "cost=-1.0: must not be negative"),
        ({"cost": float("nan")}, "cost=nan: must be a finite number"),
        ({"cost": True}, "must be a finite number"),
        ({"cost": (1.0, "x")}, "must be a finite number"),
        ({"cost": (1.0, 1.0, 1.0)}, "has 3 values for 2 firms"),
        ({"quality": (1.0,)}, "has 1 values for 2 firms"),
        ({"demand": "cubic"}, "must be one of logit, linear"),
        ({"outside": float("inf")}, "must be a finite number"),
        ({"mu": 0.0}, "mu=0.0: must be above 0"),
        ({"scale": 0.0}, "must be above 0"),
        ({"price_unit": 0}, "must be above 0"),
        ({"beta": 0.0}, "must be above 0"),
        ({"d": 0.0}, "d=0.0: must be above 0"),
        ({"demand": "linear", "d": 1.1}, "at most 1"),
        ({"prices": "any"}, "must be one of grid, continuous"),
        ({"grid_points": 1}, "between 2 and 100000"),
        ({"grid_points": 100_001}, "between 2 and 100000"),
        ({"grid_margin": -0.1}, "at least 0"),
        ({"benchmark_decimals": -1}, "between 0 and 15"),
        ({"benchmark_decimals": 16}, "between 0 and 15"),
        ({"benchmark_decimals": 0, "mu": 0.05, "quality": 1.4}, "joint-profit price 1 is not above its Nash price 1"),
        ({"force_first_price": 1, "initial_prices": 2.0}, "must be true or false"),
        ({"force_first_price": True}, "needs initial_prices"),
        ({"moves": "alternating"}, "needs initial_prices that are not forced"),
        ({"moves": "alternating", "initial_prices": 2.0, "force_first_price": True}, "prices of firms that are not on"),
        ({"moves": "alternating", "firms": 1, "talk": False, "initial_prices": 1.5}, "nobody to take turns with"),
        ({"truncate_profit": None}, "must be true or false"),
        ({"clamp_demand": "no"}, "must be true or false"),
        ({"clamp_demand": True}, "has no effect on logit demand"),
        ({"reward": "share"}, "must be one of profit, normalised"),
        ({"history_window": -1}, "0 or more"),
        ({"bin_size": 0}, "1 or more"),
        ({"bins": -1}, "0 or more"),
        ({"statistics": "never"}, "must be one of every_round, planning_rounds"),
        ({"planning_period": 0}, "1 or more"),
        ({"exchanges": 0}, "1 or more"),
        ({"opener": "last"}, "must be one of shuffled, fixed"),
        ({"rounds": 0}, "1 or more"),
        ({"collusion_window": -1}, "0 or more"),
        ({"collusion_tolerance": -0.1}, "at least 0"),
        ({"collusion_margin": 1.1}, "at least 0 and at most 1"),
        ({"collusion_margin": -0.1}, "at least 0 and at most 1"),
        ({"collusion_margin": "nash"}, "must be one of above_nash, from_nash"),
        ({"initial_prices": "any"}, "must be 'random'"),
        ({"initial_prices": (1.0,)}, "has 1 values for 2 firms"),
        ({"initial_prices": 3.0}, "must not be above the highest price 2.89"),
        ({"price_floor": "zero"}, "must be a finite number"),
        ({"price_floor": -1.0}, "at least 0"),
        ({"price_cap": 0.0}, "must be above 0"),
        ({"price_cap": 0.9, "price_floor": "cost"}, "0.9 is not above the lowest price 1"),
        ({"price_cap": 1.0, "price_floor": "cost"}, "1 is not above the lowest price 1"),
        ({"prices": "grid", "price_floor": 1.45}, "takes firm 0's grid down to 1.42772, below the lowest price 1.45"),
        ({"price_cap": 9.0, "prices": "grid"}, "has no effect on a grid"),
        ({"prices": "grid", "grid_span": "all"}, "must be one of benchmarks, floor_to_cap"),
        ({"prices": "grid", "grid_span": "floor_to_cap", "price_cap": 0.5, "price_floor": "cost"}, "not above the low"),
        ({"prices": "grid", "grid_margin": 4.0}, "takes firm 0's grid down to -0.335"),
        ({"prices": "grid", "price_floor": "cost", "grid_margin": 2.0}, "below the lowest price 1"),
        ({"demand": "linear", "cost": (0.1, 1.9)}, "firm 1 would sell nothing"),
        ({"demand": "linear", "d": 1.0, "cost": (1.0, 1.1)}, "the goods are the same"),
    ],
)
def test_impossible_settings_are_refused_in_a_sentence(fields, sentence):
    with pytest.raises(SettingsError, match=sentence):
        build(**fields)


@pytest.mark.parametrize(
    "fields",
    [
        {"firms": 1000},
        {"firms": 1, "talk": False},
        {"cost": 0.0},
        {"demand": "linear", "d": 1.0},
        {"grid_points": 2, "prices": "grid"},
        {"initial_prices": 2.89},
        {"price_cap": 1.1, "price_floor": "cost"},
        {"prices": "grid", "price_floor": build(prices="grid").grids[0][0]},
    ],
)
def test_the_edges_of_the_ranges_are_allowed(fields):
    build(**fields)
