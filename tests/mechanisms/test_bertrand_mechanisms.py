"""Mechanisms around the price of firms: the litmus without a model, and what a market cannot carry."""

import pytest

from dilemma.scenario import SCENARIO as DILEMMA
from llm_coop_envs import bertrand_v0
from llm_coop_envs.bertrand.metrics import episode_metrics
from llm_coop_envs.cli.description import describe
from llm_coop_envs.core import registry
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies import play, scripted

GRID = {"prices": "grid", "talk": False, "rounds": 3}


def last_prices(name="best_responder", **fields):
    env = bertrand_v0.parallel_env(record=True, **{**GRID, **fields})
    play(env, scripted.make(f"bertrand/{name}"), seed=1)
    return [event["prices"] for event in env.events if event["type"] == "round"][-1], env


@pytest.mark.parametrize("firms", [2, 3])
@pytest.mark.parametrize("market", [{}, {"reward": "normalised"}, {"demand": "linear", "quality": 14, "cost": 2}])
def test_best_responders_ask_the_cartel_price_under_the_right_mediator_and_contract_alone(firms, market):
    if "demand" in market:
        market = {**market, "beta": 1 / 150, "d": 1 / 300}
    for kind in ("none", "mediation", "contracting"):
        prices, env = last_prices(firms=firms, mechanism=kind, **market)
        grid, equilibria = env.settings.grids[0], env.equilibria
        target = equilibria.nash[0] if kind == "none" else equilibria.joint[0]
        assert all(abs(price - target) <= grid[1] - grid[0] for price in prices), kind
        assert len(set(prices)) == 1


def test_a_naive_mediator_is_undercut():
    env = bertrand_v0.parallel_env(
        record=True, mechanism={"kind": "mediation", "proposers": "firm_0", "voters": "firm_0"}, **GRID
    )
    players = {"firm_0": "naive_voter", "firm_1": "best_responder"}
    play(env, {firm: scripted.make(f"bertrand/{name}") for firm, name in players.items()}, seed=1)
    low, high = [event["prices"] for event in env.events if event["type"] == "round"][-1][::-1]
    assert low < high


def test_contract_payments_are_rewards_and_profits_stay_those_of_the_market():
    env = bertrand_v0.parallel_env(record=True, mechanism="contracting", **GRID)
    env.reset(seed=1)
    grid = env.settings.grids[0]
    env.step({firm: {"choice": {"below": grid[10], "rate": 0.5}} for firm in env.agents})
    env.step({firm: {"choice": [0]} for firm in env.agents})
    env.step({firm: {"choice": 1} for firm in env.agents})
    _, rewards, *_ = env.step({"firm_0": {"choice": 4}, "firm_1": {"choice": 12}})
    profits = next(event["profits"] for event in env.events if event["type"] == "round")
    paid = 0.5 * (grid[10] - grid[4])
    assert rewards["firm_0"] == pytest.approx(profits[0] - paid)
    assert rewards["firm_1"] == pytest.approx(profits[1] + paid)


def test_terminal_asks_for_a_contract_in_a_line():
    env = bertrand_v0.parallel_env(mechanism="contracting", **GRID)
    env.reset(seed=1)
    question = env.question_for(0)
    assert question.take("1.9; 0.3")["rate"] == 0.3


def test_the_horizon_is_the_mechanisms_and_words_tell_the_chance():
    env = bertrand_v0.parallel_env(mechanism={"kind": "repetition", "rounds": 5}, talk=False)
    observations, _ = env.reset(seed=1)
    assert env.settings.rounds == 5
    assert "another one with a chance of 80 %" in observations["firm_0"]["text"]


def test_measures_of_the_market_are_as_ever():
    _, env = last_prices(mechanism="mediation")
    assert episode_metrics(env.events)["profit_gain"] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"mechanism": "mediation", "prices": "continuous"}, "choices that can be listed"),
        ({"mechanism": "contracting", "cost": [1, 1.2]}, "the same cost and quality"),
        ({"mechanism": "mediation", "moves": "alternating", "initial_prices": 1.5}, "moves: simultaneous"),
        ({"mechanism": "mediation", "force_first_price": True, "initial_prices": 1.5}, "no forced first price"),
        ({"mechanism": "mediation", "firms": 30}, "for 2 to 20 players"),
        ({"group_size": 2, "matching": "random", "firms": 4}, "means nothing in this scenario"),
        ({"mechanism": "reputation"}, "set group_size"),
    ],
)
def test_what_a_market_cannot_carry_is_refused(fields, sentence):
    with pytest.raises(SettingsError, match=sentence):
        bertrand_v0.parallel_env(**{**GRID, **fields})


@pytest.mark.parametrize(
    ("scenario", "named"),
    [("bertrand", {"mechanism"}), ("dilemma", {"mechanism", "group_size", "matching"}), ("kbc", set())],
)
def test_describe_lists_what_a_scenario_carries(scenario, named, monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    registry.register(DILEMMA)
    listed = {setting.name for setting in describe(scenario).settings}
    assert listed & {"mechanism", "group_size", "matching"} == named
