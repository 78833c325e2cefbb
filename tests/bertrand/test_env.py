"""The environment: rounds, talk, choices, rewards, ends."""

import numpy as np
import pytest
from gymnasium import spaces
from silent_markets import FIRMS, make, priced, rounds, silent

from llm_coop_envs.bertrand.rules import nearest, profit_table

# Rounds.


def test_a_round_settles_prices_demand_and_profits():
    env = silent()
    env.reset(seed=0)
    _, rewards, *_ = priced(env, 6.5, 8)
    event = rounds(env)[0]
    assert event["round"] == 1
    assert event["prices"] == [6.5, 8.0]
    assert event["demand"] == pytest.approx([900, 450])
    assert event["profits"] == [4050.0, 2700.0]
    assert rewards == {"firm_0": 4050.0, "firm_1": 2700.0}
    assert env.round == 2


def test_firms_take_turns_and_the_other_prices_stand():
    env = silent(moves="alternating", initial_prices=[7.0, 9.0], firms=2)
    env.reset(seed=0)
    _, rewards, *_ = priced(env, 6.5, 8)
    assert env.on_turn.tolist() == [1]
    assert rewards["firm_1"] > 0  # it sells at the price that stands
    priced(env, 5, 8)
    env.step({"firm_0": {"choice": 7.5}})
    env.step({})
    assert [event["prices"] for event in rounds(env)] == [[6.5, 9.0], [6.5, 8.0], [7.5, 8.0], [7.5, 2.0]]
    chosen = [(event["round"], event["agent"]) for event in env.events if event["type"] == "choice"]
    assert chosen == [(1, "firm_0"), (2, "firm_1"), (3, "firm_0"), (4, "firm_1")]
    assert [event["flags"] for event in env.events if event["type"] == "choice"][-1] == ["missing_action"]


def test_three_firms_take_turns_on_a_grid_and_go_on_from_a_snapshot():
    settings = {"preset": "calvano", "firms": 3, "moves": "alternating", "rounds": 9, "record": True}
    env = make(**settings)
    env.reset(seed=3)
    stood = env.events[0]["initial_prices"]
    env.step({"firm_0": {"choice": 0}})
    env.step({"firm_1": {"choice": 14}})
    grids = env.settings.grids
    assert [event["prices"] for event in rounds(env)] == [
        [grids[0][0], stood[1], stood[2]],
        [grids[0][0], grids[1][14], stood[2]],
    ]
    other = make(**settings)
    other.reset(seed=0)
    other.set_state(env.get_state())
    for game in (env, other):
        while game.agents:
            game.step({name: {"choice": 4} for name in game.agents})
    assert rounds(env)[2:] == rounds(other)
    assert rounds(env)[-1]["prices"] == [grid[4] for grid in grids]


def test_at_once_leaves_no_trace_of_the_other_clock():
    env = silent()
    env.reset(seed=0)
    assert "moves" not in env.events[0]["settings"]


def test_rewards_do_not_add_up_over_rounds():
    env = silent()
    env.reset(seed=0)
    for _ in range(3):
        _, rewards, *_ = priced(env, 8, 8)
        assert rewards == {"firm_0": 3600.0, "firm_1": 3600.0}


def test_normalised_rewards_are_zero_at_nash_and_one_at_joint_profit():
    env = make(preset="team_up", talk=False, force_first_price=False, reward="normalised")
    env.reset(seed=0)
    assert list(priced(env, *env.equilibria.nash)[1].values()) == pytest.approx([0, 0])
    assert list(priced(env, *env.equilibria.joint)[1].values()) == pytest.approx([1, 1])


def test_the_first_price_is_forced():
    env = make(preset="team_up_linear", talk=False, record=True)
    _, infos = env.reset(seed=0)
    assert infos["firm_1"]["slots"].fixed_price == 2.0
    _, rewards, _, _, infos = priced(env, 7, 8)
    assert rewards == {"firm_0": 0.0, "firm_1": 0.0}
    assert infos["firm_1"]["slots"].fixed_price is None
    priced(env, 7, 8)
    assert [(event["prices"], event["forced"]) for event in rounds(env)] == [([2, 2], True), ([7, 8], False)]


def test_forced_prices_are_lifted_to_cost():
    env = make(preset="team_up_linear", talk=False, record=True, initial_prices=(1.5, 3.0))
    env.reset(seed=0)
    priced(env, 9, 9)
    assert rounds(env)[0]["prices"] == [2.0, 3.0]


def test_prior_prices_are_known_and_not_settled():
    env = silent(initial_prices=(3.0, 4.0))
    observations, infos = env.reset(seed=0)
    assert infos["firm_1"]["slots"].prior == (4.0, 3.0)
    assert infos["firm_1"]["slots"].history == ()
    assert observations["firm_1"]["observation"][:3].tolist() == pytest.approx([1, -1, -1.5])
    _, _, _, _, infos = priced(env, 5, 6)
    assert infos["firm_1"]["slots"].prior == ()
    assert len(rounds(env)) == 1


def test_random_prior_prices_are_drawn_from_the_whole_grid():
    env = make(preset="calvano")
    drawn = set()
    for seed in range(400):
        _, infos = env.reset(seed=seed)
        drawn.add(infos["firm_0"]["slots"].prior)
    grid = env.settings.grids[0]
    assert {p[0] for p in drawn} == {p[1] for p in drawn} == set(grid)
    assert len(drawn) > 150


def test_random_continuous_prior_prices_lie_in_each_firms_range():
    env = make(initial_prices="random", price_floor="cost", cost=(1.0, 2.0), quality=(2.0, 3.0))
    for seed in range(50):
        _, infos = env.reset(seed=seed)
        first, second = infos["firm_0"]["slots"].prior
        assert 1 <= first <= env.settings.cap
        assert 2 <= second <= env.settings.cap


# Talk.


def speakers(env):
    return [env.possible_agents[i] for i in env.on_turn.tolist()]


def test_talk_is_three_exchanges_in_one_order_then_all_price():
    env = make()
    env.reset(seed=3)
    order = []
    while env.phase == "talk":
        order += speakers(env)
        env.step({a: {"message": "x"} for a in env.agents})
    assert len(order) == 6
    assert order == order[:2] * 3
    assert set(order[:2]) == set(FIRMS)
    assert env.round == 1
    assert speakers(env) == FIRMS


def list_openers(**settings):
    env = make(collusion_window=0, **settings)
    env.reset(seed=0)
    names = []
    while len(names) < 30:
        if env.phase == "talk" and len(env.conversation.messages) == 0:
            names.append(speakers(env)[0])
        env.step({a: {"message": "x", "choice": 1.5} for a in env.agents})
    return names


def test_the_opener_is_drawn_each_round_or_fixed():
    assert set(list_openers()) == set(FIRMS)
    assert set(list_openers(opener="fixed")) == {"firm_0"}


def test_with_more_firms_everybody_speaks_once_in_each_exchange():
    env = make(firms=4, exchanges=2)
    env.reset(seed=0)
    order = []
    while env.phase == "talk":
        order += speakers(env)
        env.step({a: {"message": "x"} for a in env.agents})
    assert sorted(order[:4]) == sorted(order[4:]) == env.possible_agents
    assert order[:4] == order[4:]


def test_a_speaker_hears_this_round_only():
    env = make(exchanges=1, opener="fixed")
    env.reset(seed=0)
    env.step({"firm_0": {"message": "one"}})
    observations, infos = env.look()
    assert observations["firm_1"]["messages"] == ({"speaker": 0, "text": "one"},)
    assert [(m.speaker, m.text, m.own) for m in infos["firm_0"]["slots"].said] == [("firm_0", "one", True)]
    env.step({"firm_1": {"message": "two"}})
    (
        observations,
        infos,
    ) = env.look()
    assert [m.text for m in infos["firm_0"]["slots"].said] == ["one", "two"]
    observations, _, _, _, infos = priced(env, 1.5, 1.5)
    assert infos["firm_0"]["slots"].said == ()
    assert observations["firm_1"]["messages"] == ()


def test_exchanges_are_counted():
    env = make()
    _, infos = env.reset(seed=0)
    seen = []
    while env.phase == "talk":
        seen.append((infos["firm_0"]["slots"].exchange, infos["firm_1"]["slots"].exchanges))
        _, _, _, _, infos = env.step({a: {"message": ""} for a in env.agents})
    assert seen == [(1, 3), (1, 3), (2, 3), (2, 3), (3, 3), (3, 3)]
    assert infos["firm_0"]["slots"].exchange == 0


def test_talk_steps_pay_nothing():
    env = make()
    env.reset(seed=0)
    assert env.step({a: {"message": "x"} for a in env.agents})[1] == {"firm_0": 0.0, "firm_1": 0.0}


# Choices.


@pytest.mark.parametrize(
    ("asked_price", "settled", "flag"),
    [
        (7.25, 7.25, ()),
        (2.0, 2.0, ()),
        (14.0, 14.0, ()),
        (1.99, 2.0, ("illegal_choice",)),
        (-3.0, 2.0, ("illegal_choice",)),
        (14.01, 14.0, ("illegal_choice",)),
        (1e300, 14.0, ("illegal_choice",)),
        (float("nan"), 2.0, ("illegal_choice",)),
        (float("inf"), 2.0, ("illegal_choice",)),
        (float("-inf"), 2.0, ("illegal_choice",)),
        ("seven", 2.0, ("illegal_choice",)),
        (None, 2.0, ("illegal_choice",)),
        (np.array([7.5]), 7.5, ()),
        (np.array([7.5, 8.0]), 2.0, ("illegal_choice",)),
    ],
)
def test_bad_prices_are_replaced_and_flagged(asked_price, settled, flag):
    env = silent()
    env.reset(seed=0)
    _, _, _, _, infos = priced(env, asked_price, 6)
    assert rounds(env)[0]["prices"] == [settled, 6.0]
    assert infos["firm_0"]["flags"] == flag
    assert infos["firm_1"]["flags"] == ()
    choice = next(event for event in env.events if event["type"] == "choice")
    assert (choice["choice"], tuple(choice["flags"])) == (settled, flag)


def test_what_is_no_number_becomes_the_own_cost_inside_the_range():
    env = silent(cost=(2.0, 3.0), price_floor=2.5)
    env.reset(seed=0)
    priced(env, float("nan"), float("nan"))
    assert rounds(env)[0]["prices"] == [2.5, 3.0]


def test_a_missing_action_is_flagged_so():
    env = silent()
    env.reset(seed=0)
    _, _, _, _, infos = env.step({"firm_1": {"choice": 6}})
    assert infos["firm_0"]["flags"] == ("missing_action",)
    assert rounds(env)[0]["prices"] == [2.0, 6.0]


@pytest.mark.parametrize("choice", [15, -1, 2.5, "x", None])
def test_bad_indices_become_the_price_nearest_to_cost(choice):
    env = make(preset="calvano", record=True)
    env.reset(seed=0)
    _, _, _, _, infos = priced(env, choice, 7)
    grid = env.settings.grids[0]
    assert infos["firm_0"]["flags"] == ("illegal_choice",)
    assert rounds(env)[0]["prices"] == [grid[0], grid[7]]


def test_the_stand_in_on_a_grid_is_each_firms_own():
    with pytest.warns(UserWarning, match="firm_0 earns 0.00491 at the joint-profit prices and 0.04455 at the Nash"):
        env = make(prices="grid", talk=False, record=True, cost=(1.4, 0.0), grid_margin=0.5)
    env.reset(seed=0)
    env.step({})
    grids = env.settings.grids
    expected = [nearest(grids[0], 1.4), nearest(grids[1], 0.0)]
    assert expected[0] > 0
    assert rounds(env)[0]["prices"] == [grids[0][expected[0]], grids[1][expected[1]]]


def test_choice_spaces():
    assert make(preset="calvano").action_space("firm_0")["choice"] == spaces.Discrete(15)
    box = make(preset="team_up").action_space("firm_0")["choice"]
    assert box == spaces.Box(2.0, 14.0, (1,), np.float64)
    assert make(cost=(1.0, 0.8), price_floor="cost").action_space("firm_1")["choice"].low == 0.8


def test_every_grid_cell_pays_what_the_rules_say():
    """The environment's memory of settled rounds is the table of the rules, bit for bit."""
    env = make(preset="calvano", grid_points=5)
    env.reset(seed=0)
    _, profits = profit_table(env.market, env.settings.grids)
    for _ in range(2):
        for i in range(5):
            for j in range(5):
                assert list(priced(env, i, j)[1].values()) == profits[i, j].tolist()


def test_memory_of_settled_rounds_is_bounded(monkeypatch):
    monkeypatch.setattr("llm_coop_envs.bertrand.settlement._REMEMBERED", 3)
    env = make(preset="calvano")
    env.reset(seed=0)
    for k in range(10):
        priced(env, k, k)
    assert len(env._settlement._remembered) == 3
