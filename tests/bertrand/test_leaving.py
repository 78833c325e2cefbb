"""Firms that leave the market from a round on."""

import json

import numpy as np
import pytest

from llm_coop_envs import bertrand_v0
from llm_coop_envs.bertrand.faces import after_forcing
from llm_coop_envs.bertrand.faces.after import Deviations
from llm_coop_envs.bertrand.faces.page_scene import PAGE
from llm_coop_envs.bertrand.metrics import episode_metrics, round_rows
from llm_coop_envs.bertrand.price_measures import price_spread
from llm_coop_envs.bertrand.rules import profit_gain
from llm_coop_envs.bertrand.scripted import POLICIES
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies import play
from llm_coop_envs.policies.kinds import make
from llm_coop_envs.wrappers import SingleAgentView

MARKETS = {
    "logit": {"cost": (1.0, 1.2, 1.1), "quality": (2.0, 2.1, 2.3)},
    "linear": {"demand": "linear", "cost": (1.0, 1.2, 1.1), "quality": (4.0, 4.1, 4.3), "beta": 1.0, "d": 0.4},
    "grid": {"preset": "calvano", "firms": 3},
}


def departures(*leaving):
    return [{"from_round": first, "players": players, "settings": {"present": False}} for first, players in leaving]


def of_type(events, kind):
    return [event for event in events if event["type"] == kind]


def play_game(policy="bertrand/uniform", **settings):
    env = bertrand_v0.parallel_env(**{"firms": 3, "rounds": 8, "record": True, "collusion_window": 0} | settings)
    return env, play(env, make(policy), seed=3)


@pytest.mark.parametrize("market", MARKETS.values(), ids=MARKETS)
@pytest.mark.parametrize("reward", ["profit", "normalised"])
def test_a_market_of_three_that_loses_one_is_the_market_of_the_other_two(market, reward):
    env, _ = play_game(**market, reward=reward, changes=departures((4, "firm_1")))
    fields = dict(market)
    for name in ("cost", "quality"):
        if name in fields:
            fields[name] = (fields[name][0], fields[name][2])
    two = BertrandSettings.build(fields.pop("preset", None), **{**fields, "firms": 2, "talk": False})
    (departure,) = of_type(env.events, "left")
    assert (departure["round"], departure["agents"]) == (4, ["firm_1"])
    assert [departure["nash"][0], departure["nash"][2]] == pytest.approx(two.equilibria.nash)
    assert departure["nash"][1] is None
    for event in of_type(env.events, "round"):
        if event["round"] < 4:
            assert None not in event["prices"]
            continue
        assert event["prices"][1] is event["demand"][1] is event["profits"][1] is None
        prices, demand, profits = ([event[name][i] for i in (0, 2)] for name in ("prices", "demand", "profits"))
        assert demand == pytest.approx(two.market.demand(prices), rel=1e-12)
        assert profits == pytest.approx(two.market.profits(prices), rel=1e-12)
    rows = round_rows(env.events)
    last = of_type(env.events, "round")[-1]
    assert rows[-1]["profit_gain"] == pytest.approx(
        float(profit_gain([last["profits"][i] for i in (0, 2)], two.equilibria))
    )
    assert rows[-1]["price_1"] is None


def test_whoever_leaves_is_done_and_the_others_go_on():
    env = bertrand_v0.parallel_env(firms=3, rounds=4, talk=False, changes=departures((3, "firm_0")))
    _, infos = env.reset(seed=0)
    for number in (1, 2):
        observations, rewards, terminations, _truncations, infos = env.step(
            {agent: {"choice": np.array([1.5])} for agent in env.agents}
        )
        assert terminations == {"firm_0": number == 2, "firm_1": False, "firm_2": False}
        assert rewards["firm_0"] > 0
    assert env.agents == ["firm_1", "firm_2"]
    assert infos["firm_1"]["slots"].rivals == infos["firm_1"]["slots"].seen == ("firm_2",)
    assert [row.rival_prices for row in infos["firm_1"]["slots"].history] == [(1.5,), (1.5,)]
    assert "firm_0 has left for good" in observations["firm_1"]["text"]
    assert "price of firm_0" not in observations["firm_1"]["text"]
    names = env.feature_names
    seen = dict(zip(names, observations["firm_1"]["observation"].tolist(), strict=True))
    assert (seen["rival_price_1"], seen["rival_present_1"], seen["rival_present_2"]) == (0.0, 0.0, 1.0)
    observations, rewards, *_ = env.step({"firm_1": {"choice": np.array([1.5])}, "firm_2": {"choice": np.array([1.5])}})
    assert set(rewards) == {"firm_1", "firm_2"}
    assert all(env.observation_space(agent).contains(view) for agent, view in observations.items())


def test_talk_leaves_it_out_and_a_last_firm_has_nobody_to_talk_to():
    env, _ = play_game("bertrand/price_matching", rounds=6, changes=departures((3, "firm_1"), (5, "firm_2")))
    speakers = {number: set() for number in range(1, 7)}
    for event in of_type(env.events, "message"):
        speakers[event["round"]].add(event["agent"])
    assert speakers == {
        **{key: {"firm_0", "firm_1", "firm_2"} for key in (1, 2)},
        **{key: {"firm_0", "firm_2"} for key in (3, 4)},
        **{key: set() for key in (5, 6)},
    }
    alone = BertrandSettings(firms=1, talk=False).equilibria
    assert of_type(env.events, "left")[-1]["nash"] == [alone.nash[0], None, None]
    assert not any(event["together"] for event in of_type(env.events, "round")[4:])


def test_until_then_all_is_as_if_nobody_left():
    env, _ = play_game(changes=departures((5, "firm_2")))
    usual, _ = play_game()
    early = [[event for event in game.events if 0 < event["round"] < 5] for game in (env, usual)]
    assert early[0] == early[1]
    never, _ = play_game(changes=departures((99, "firm_2")))
    assert [event for event in never.events if event["type"] != "start"] == [
        e for e in usual.events if e["type"] != "start"
    ]


def test_turns_go_on_among_those_who_are_left():
    env, _ = play_game(moves="alternating", initial_prices=1.5, talk=False, changes=departures((5, "firm_1")))
    assert [event["agent"] for event in of_type(env.events, "choice")] == [
        f"firm_{i}" for i in (0, 1, 2, 0, 2, 0, 2, 0)
    ]


def test_a_regulator_goes_on_with_those_who_are_left():
    regulator = {"powers": ["veto"], "on": ["choices"], "orders": ["cap 1.6"], "reward": "welfare"}
    env = bertrand_v0.parallel_env(
        firms=3,
        rounds=4,
        talk=False,
        prices="grid",
        regulator=regulator,
        record=True,
        changes=departures((3, "firm_0")),
    )
    env.reset(seed=0)
    while env.agents:  # it stops what all want, and orders the cap: all ask the Nash price, or the cap
        welfare = env.step({agent: {"choice": 1 if agent == "regulator_0" else 8} for agent in env.agents})[1]
    two = BertrandSettings(firms=2, talk=False, prices="grid")
    prices = of_type(env.events, "round")[-1]["prices"]
    assert prices[0] is None
    near = [abs(price - two.equilibria.nash[0]) for price in prices[1:]]
    assert max(near) <= two.grid_step * (two.equilibria.joint[0] - two.equilibria.nash[0])
    surplus = two.market.consumer_surplus(prices[1:], two.market.demand(prices[1:]))
    assert welfare["regulator_0"] == pytest.approx(surplus)


@pytest.mark.parametrize("name", sorted(POLICIES))
@pytest.mark.parametrize("prices", ["continuous", "grid"])
def test_every_policy_plays_on(name, prices):
    env, _ = play_game(f"bertrand/{name}", prices=prices, changes=departures((3, "firm_0"), (6, "firm_2")))
    assert len(of_type(env.events, "round")) == 8
    assert not any(event["flags"] for event in of_type(env.events, "choice"))
    if name == "best_reply":  # it knows that it has the market to itself
        joint = BertrandSettings(firms=1, talk=False).equilibria.joint[0]
        off = abs(of_type(env.events, "round")[-1]["prices"][1] - joint)
        assert off < (1e-6 if prices == "continuous" else 0.03)


def test_an_episode_goes_on_from_a_snapshot_in_every_market():
    settings = {
        "firms": 3,
        "rounds": 7,
        "talk": False,
        "record": True,
        "changes": departures((3, "firm_1"), (5, "firm_0")),
    }
    env, other = (bertrand_v0.parallel_env(**settings) for _ in range(2))
    env.reset(seed=4)
    while env.agents:
        state = json.loads(json.dumps(env.get_state(), allow_nan=False))
        other.reset(seed=9)
        other.set_state(state)
        assert other.agents == env.agents
        assert [view["text"] for view in other.look()[0].values()] == [view["text"] for view in env.look()[0].values()]
        actions = {agent: {"choice": np.array([1.4 + 0.1 * env.round])} for agent in env.agents}
        step, again = env.step(actions), other.step(actions)
        assert step[1:4] == again[1:4]
        assert env.state().tolist() == other.state().tolist()


def test_measures_are_those_of_the_firms_that_were_there():
    env, _ = play_game("bertrand/uniform", rounds=10, changes=departures((6, "firm_2")))
    row = episode_metrics(env.events, last=5)
    rounds = of_type(env.events, "round")
    three, two = (BertrandSettings(firms=count).equilibria for count in (3, 2))
    first = float(profit_gain(np.array([event["profits"] for event in rounds[:5]]).mean(axis=0), three))
    later = float(profit_gain(np.array([event["profits"][:2] for event in rounds[5:]]).mean(axis=0), two))
    assert row["profit_gain"] == pytest.approx((first + later) / 2)
    assert row["profit_gain_last"] == pytest.approx(later)
    assert (row["firms"], row["mean_price_last_2"]) == (2, None)
    assert row["nash_price"] == pytest.approx(two.nash[0])
    prices = [price for event in rounds for price in event["prices"] if price is not None]
    assert row["mean_price"] == pytest.approx(np.mean(prices))
    late = np.array([event["prices"][:2] for event in rounds[5:]])
    assert row["price_spread_last"] == pytest.approx(price_spread(late).mean())
    assert all(value is None or value == value for value in row.values())


def test_pages_and_pictures_show_it_as_gone():
    env, _ = play_game(rounds=5, changes=departures((3, "firm_1")))
    scene = env.scene()
    assert scene.departed == {1}
    assert len(scene.nash) == 2
    assert np.isnan(scene.prices[-1]).tolist() == [False, True, False]
    moving = PAGE.moving(scene)
    assert moving["values"][1] is None
    assert [level["value"] for level in moving["levels"]] == [scene.nash[0], scene.joint[0]]
    assert "levels" not in PAGE.moving(play_game(rounds=2)[0].scene())
    assert (3, "firm_1 left the market") in PAGE.moments(env.events)
    quiet, _ = play_game(rounds=5, changes=departures((3, "firm_1")), record=False)
    assert quiet.scene().departed == {1}
    assert quiet.scene().band == scene.band


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"changes": departures((3, "firm_*"))}, "leaves 0 of 3 from round 3 on; 1 or more must stay"),
        ({"changes": departures((1, "firm_0"))}, "nobody can leave before round 2; begin with fewer instead"),
        (
            {"changes": [{**departures((3, "firm_0"))[0], "until_round": 4}]},
            "does not come back; leave until_round out",
        ),
        (
            {"changes": [*departures((3, "firm_0")), {"from_round": 5, "settings": {"present": True}}]},
            "'firm_0': would come back in round 5",
        ),
        ({"present": False}, "takes everybody out of the game"),
    ],
    ids=["nobody", "at once", "back by a round", "back by a change", "all along"],
)
def test_what_cannot_be_is_refused_in_a_sentence(settings, reason):
    with pytest.raises(SettingsError, match=reason):
        bertrand_v0.parallel_env(firms=3, **settings)


def test_firms_that_leave_a_market_without_nash_prices_are_refused():
    apart = {"demand": "linear", "quality": 4.0, "cost": 1.0, "beta": 1.0, "d": 0.04, "benchmark_decimals": 1}
    bertrand_v0.parallel_env(firms=3, **apart)
    with pytest.raises(SettingsError, match=r"with firm_0, firm_1 alone from round 3 on: .* not above its Nash price"):
        bertrand_v0.parallel_env(firms=3, **apart, changes=departures((3, "firm_2")))


def test_answers_to_deviations_need_two_firms_to_the_end():
    settings = BertrandSettings(firms=3, collusion_window=0, rounds=20, changes=departures((5, "firm_1")))
    assert Deviations(horizon=5).longer(settings) == {"rounds": 30}
    for changes in (departures((5, "firm_1"), (9, "firm_2")), departures((25, "firm_1"))):
        with pytest.raises(SettingsError, match="2 firms or more must be left in the last round"):
            Deviations(horizon=5).longer(BertrandSettings(firms=3, collusion_window=0, rounds=20, changes=changes))


@pytest.mark.parametrize("policy", ["q_learning:calvano"])
def test_what_goes_by_all_prices_refuses_to_play(policy):
    env = bertrand_v0.parallel_env(preset="calvano", rounds=4, changes=departures((3, "firm_1")))
    with pytest.raises(SettingsError, match="let all of them stay"):
        play(env, make(policy), seed=0)


@pytest.mark.parametrize("seat", ["firm_0", "firm_1"])
def test_one_seat_alone_ends_with_its_firm_or_goes_on(seat):
    env = bertrand_v0.parallel_env(firms=3, rounds=4, talk=False, prices="grid", changes=departures((3, seat)))
    view = SingleAgentView(env, "firm_0", make("bertrand/best_reply"), numeric=True)
    view.reset(seed=1)
    ends = []
    while not ends or not any(ends[-1]):
        ends.append(view.step(3)[2:4])
    assert ends[-1] == ((True, False) if seat == "firm_0" else (False, True))
    assert len(ends) == (2 if seat == "firm_0" else 4)


def test_paths_are_of_those_who_are_left():
    env, _ = play_game(changes=departures((4, "firm_1")))
    path = after_forcing.PricePath.from_events(env.events)
    assert (path.prices.shape, path.earlier) == ((5, 2), 3)
    events = of_type(env.events, "round")[:3]
    assert after_forcing.PricePath.from_events(events).prices.shape == (3, 3)
