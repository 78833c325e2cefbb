"""What players, learners and onlookers are shown, and snapshots of it all."""

import json

import numpy as np
import pytest
from silent_markets import make, priced, rounds, silent

# What is seen.


def test_features():
    env = silent(firms=3, cost=2.0)
    observations, _ = env.reset(seed=0)
    assert env.feature_names == ("prices_known", "own_price", "rival_price_1", "rival_price_2", "own_profit")
    assert observations["firm_0"]["observation"].tolist() == [-1, 0, 0, 0, 0]
    observations, *_ = priced(env, 5, 6, 7)
    nash, joint = env.equilibria.nash[0], env.equilibria.joint[0]
    p = [(price - nash) / (joint - nash) for price in (5, 6, 7)]
    profits = rounds(env)[0]["profits"]
    gap = env.equilibria.joint_profit[0] - env.equilibria.nash_profit[0]
    gains = [(x - env.equilibria.nash_profit[0]) / gap for x in profits]
    for firm, order in (("firm_0", (0, 1, 2)), ("firm_1", (1, 0, 2)), ("firm_2", (2, 0, 1))):
        row = observations[firm]["observation"]
        assert row.dtype == np.float32
        assert row.tolist() == pytest.approx([1, *(p[k] for k in order), gains[order[0]]], rel=1e-5)


def test_the_state():
    env = silent(rounds=10, collusion_window=4)
    env.reset(seed=0)
    state = env.state()
    assert state.tolist() == [1, 1, 1, 1, 1, 0, 0, -1, 0, 0, 0, 0]
    priced(env, 7, 7)
    assert env.state()[5:].tolist() == pytest.approx([0.1, 0.25, 1, 0.5, 0.5, 0.75, 0.75])
    assert env.state_space.contains(env.state())


@pytest.mark.parametrize(
    "settings",
    [
        {"preset": "team_up_linear"},
        {"preset": "team_up"},
        {"preset": "calvano"},
        pytest.param({"cost": (0.2, 1.5)}, marks=pytest.mark.filterwarnings("ignore:firm_1 earns")),
        {"firms": 1},
        {"firms": 1, "prices": "grid"},
        {"demand": "linear", "firms": 4, "clamp_demand": True},
        {"demand": "linear", "d": 1.0},
    ],
)
def test_extreme_prices_stay_inside_the_spaces(settings):
    env = make(**{"talk": False, "collusion_window": 0, "force_first_price": False, **settings})
    observations, _ = env.reset(seed=0)
    ends = (0, 14) if env.settings.prices == "grid" else (-1e9, 1e9)
    n = env.n_players
    for code in range(2**n):
        observations, *_ = priced(env, *(ends[code >> k & 1] for k in range(n)))
        for agent in env.agents:
            box = env.observation_space(agent)["observation"]
            assert box.contains(observations[agent]["observation"])
            assert np.isfinite([box.low, box.high]).all()
        assert env.state_space.contains(env.state())


def test_slots_tell_the_own_business_and_the_others_prices():
    env = silent(cost=(2.0, 3.0), price_floor=1.0)
    env.reset(seed=0)
    _, _, _, _, infos = priced(env, 6.5, 8)
    mine, other = infos["firm_0"]["slots"], infos["firm_1"]["slots"]
    sold, earned = rounds(env)[0]["demand"], rounds(env)[0]["profits"]
    assert mine.history == ((1, 6.5, sold[0], earned[0], (8.0,)),)
    assert other.history == ((1, 8.0, sold[1], earned[1], (6.5,)),)
    assert (mine.cost, other.cost) == (2.0, 3.0)
    assert (mine.floor, mine.cap, mine.choices) == (1.0, 14.0, ())
    assert mine.rivals == ("firm_1",)
    assert mine.whole_profits is True
    text = repr(mine)
    assert str(sold[1]) not in text
    assert str(earned[1]) not in text


def test_slots_of_a_grid_list_the_choices():
    _, infos = make(preset="calvano").reset(seed=0)
    slots = infos["firm_0"]["slots"]
    grid = make(preset="calvano").settings.grids[0]
    assert slots.choices == tuple(enumerate(grid))
    assert (slots.floor, slots.cap) == (grid[0], grid[-1])


def shown_bins(**settings):
    env = make(preset="team_up_linear", talk=False, collusion_window=0, **settings)
    _, infos = env.reset(seed=0)
    bins_by_round, planned = {}, []
    for _ in range(65):
        slots = infos["firm_0"]["slots"]
        if slots.bins:
            bins_by_round[slots.round] = len(slots.bins)
        if slots.may_replan:
            planned.append(slots.round)
        _, _, _, _, infos = priced(env, 7, 7)
    return bins_by_round, planned


def test_statistics_on_planning_rounds():
    assert shown_bins() == ({21: 1, 41: 2, 61: 3}, [21, 41, 61])


def test_statistics_every_round():
    bins_by_round, planned = shown_bins(statistics="every_round")
    assert bins_by_round == {number: (number - 1) // 20 for number in range(21, 66)}
    assert planned == [21, 41, 61]


def test_another_planning_period():
    assert shown_bins(planning_period=15) == ({31: 1, 46: 2, 61: 3}, [16, 31, 46, 61])


def test_no_statistics():
    assert shown_bins(bins=0, statistics="every_round")[0] == {}


def test_the_picture():
    env = silent(render_mode="ansi")
    env.reset(seed=0)
    assert "no prices yet" in env.render()
    priced(env, 6.5, 8)
    assert "firm_1" in env.render()
    assert "4050" in env.render()


def test_the_picture_of_prices_nobody_has_sold_at():
    env = silent(render_mode="ansi", initial_prices=(3.0, 4.5))
    env.reset(seed=0)
    assert "4.5" in env.render()
    assert "1250" not in env.render()


def test_the_record():
    env = silent(initial_prices=(3.0, 4.0))
    env.reset(seed=5)
    priced(env, 7, 7)
    start = env.events[0]
    assert start["type"] == "start"
    assert start["nash"] == list(env.equilibria.nash)
    assert start["joint"] == list(env.equilibria.joint)
    assert start["nash_profit"] == list(env.equilibria.nash_profit)
    assert start["joint_profit"] == list(env.equilibria.joint_profit)
    assert start["cost"] == [2.0, 2.0]
    assert start["band"] == [0.1, 1.0, 0.1]
    assert start["initial_prices"] == [3.0, 4.0]
    assert json.loads(json.dumps(env.events)) == env.events


# Snapshots.

CASES = [
    {},
    {"preset": "team_up_linear"},
    {"preset": "calvano"},
    {"preset": "calvano", "talk": True, "history_window": 3, "bin_size": 2, "bins": 2},
    {"firms": 3, "initial_prices": "random", "talk_mode": "simultaneous"},
    {"initial_prices": "random", "force_first_price": True, "collusion_window": 3},
]


def going_on(env, rng, steps):
    trace = []
    for _ in range(steps):
        if not env.agents:
            break
        actions = {a: {"choice": env.action_space(a)["choice"].sample(), "message": "x"} for a in env.agents}
        if env.settings.prices == "continuous":
            actions = {a: {"choice": float(rng.uniform(1.4, 2.0)), "message": "x"} for a in env.agents}
        observations, rewards, *_, infos = env.step(actions)
        trace.append(
            (
                {a: (o["text"], o["observation"].tolist()) for a, o in observations.items()},
                rewards,
                {a: i["slots"] for a, i in infos.items()},
                env.state().tolist(),
            )
        )
    return trace


@pytest.mark.parametrize("steps", [0, 1, 7, 60])
@pytest.mark.parametrize("settings", CASES)
def test_a_restored_environment_goes_on_the_same(settings, steps):
    env, again = make(**settings), make(**settings)
    env.reset(seed=4)
    for agent in env.possible_agents:
        env.action_space(agent).seed(1)
    going_on(env, np.random.default_rng(0), steps)
    state = json.loads(json.dumps(env.get_state()))
    again.set_state(state)
    for game in (env, again):
        for agent in game.possible_agents:
            game.action_space(agent).seed(2)
    assert going_on(env, np.random.default_rng(1), 40) == going_on(again, np.random.default_rng(1), 40)
    assert again.get_state() == env.get_state()
