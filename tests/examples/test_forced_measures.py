"""What examples measure of episodes in which a study forces choices, against a count from their players' seats."""

import math
from collections import Counter, defaultdict
from statistics import fmean, pstdev

import numpy as np
import pytest

import auction.scenario
import commons.scenario
import dilemma.scenario
import fishery.scenario
import market.scenario
from llm_coop_envs.core import registry
from llm_coop_envs.runs.episode import _record_changes
from llm_coop_envs.studies.conditions import PolicyChange
from llm_coop_envs.treatments.changes import Change, fits_any

ROUNDS = 6
CUTS = {
    "plain": ((), 0, 0),
    "cut": (("*_1",), 2, 3),
    "cut_at_first": (("*_0",), 0, 2),
    "all_cut": (("*",), 1, 2),
    "cut_throughout": (("*_1",), 0, 99),
}


class Seen:
    """What was chosen by whom, what it earned, and what everybody saw."""

    def __init__(self):
        self.chosen, self.earned, self.slots = defaultdict(dict), defaultdict(Counter), defaultdict(dict)
        self.cut = defaultdict(set)

    def own(self):
        """The rounds in which nobody was forced."""
        return [number for number in self.earned if not self.cut[number]]


def see(scenario, draw, value, cut, **settings):
    """Play an episode by chance, forced as a study would."""
    env = scenario.environment(record=True, **settings)
    players, first, last = CUTS[cut]
    phase = [phase for phase in env.act_phases if phase != "reflect"][-1]
    change = PolicyChange(
        when=Change(from_round=first, until_round=last, players=players),
        policy="forced",
        options={"choice": value, "phase": phase},
    )
    record = _record_changes([change] if players else [], None)
    rng, seen = np.random.default_rng(7), Seen()
    _, infos = env.reset(seed=5)
    record(env)
    while env.agents:
        number, playing, actions = env.round, env.phase, {}
        for agent in (env.possible_agents[i] for i in env.on_turn):
            is_cut = fits_any(agent, players) and first <= number <= last and playing == phase
            choice = value if is_cut else draw(rng, infos[agent]["slots"])
            actions[agent] = {"choice": choice} if playing in env.act_phases else {"message": ""}
            seen.slots[number].setdefault(agent, infos[agent]["slots"])
            if playing == phase:
                seen.chosen[number][agent] = choice
                seen.cut[number] |= {agent} if is_cut else set()
        _, rewards, _, _, infos = env.step(actions)
        seen.earned[number].update(rewards)
        record(env)
    return seen, scenario.episode_metrics(env.events)


@pytest.mark.parametrize("cut", CUTS)
def test_auctions(cut):
    def draw(rng, slots):
        return int(rng.random() < 0.6) if slots.phase == "enter" else float(rng.uniform(10, 100))

    seen, row = see(auction.scenario.SCENARIO, draw, 55.0, cut, rounds=ROUNDS, bidders=2)
    own = seen.own()
    paid = [max(seen.chosen[number].values(), default=0.0) for number in own]
    worth = [max(slots.value for slots in seen.slots[number].values()) for number in own]
    assert row == pytest.approx(
        {"sold": fmean(price > 0 for price in paid), "revenue_share": math.fsum(paid) / math.fsum(worth)} if own else {}
    )


@pytest.mark.parametrize("cut", CUTS)
def test_markets(cut, monkeypatch):
    monkeypatch.setattr(registry, "_registered", {})
    registry.register(market.scenario.SCENARIO)

    def draw(rng, slots):
        return None if rng.random() < 0.1 else float(rng.choice([20.0, 35.0, 50.0, 65.0]))

    costs, values = (10.0, 20.0, 30.0), (60.0, 70.0, 80.0)
    settings = {"rounds": ROUNDS, "talk": False, "costs": costs, "values": values}
    seen, row = see(market.scenario.SCENARIO, draw, 35.0, cut, **settings)
    if not seen.own():
        assert row == {}
        return
    marks, gains, trades, spreads, asked = [], [], [], [], []
    for number in seen.own():
        named = seen.chosen[number]
        asks = sorted(price for agent, price in named.items() if agent.startswith("seller") and price is not None)
        bids = sorted((p for agent, p in named.items() if agent.startswith("buyer") and p is not None), reverse=True)
        prices = [(ask + bid) / 2 for ask, bid in zip(asks, bids, strict=False) if ask <= bid]
        trades.append(len(prices))
        marks += [fmean(prices) - 45.0] if prices else []
        gains.append(math.fsum(seen.earned[number].values()) / 150.0)
        spreads += [pstdev(asks)] if len(asks) > 1 else []
        asked += [asks.count(ask) > 1 for ask in asks]
    expected = {
        "markup": fmean(marks),
        "level": fmean(marks) / 35.0,
        "efficiency": fmean(gains),
        "trades": fmean(trades),
        "ask_spread": fmean(spreads),
        "same_asks": fmean(asked),
        "cost_spread": pstdev(costs),
        "judged_by_rules": None,
    }
    assert {name: row[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("cut", CUTS)
def test_dilemmas(cut):
    def draw(rng, slots):
        return int(rng.random() < 0.5)

    seen, row = see(dilemma.scenario.SCENARIO, draw, 1, cut, rounds=ROUNDS)
    shares, payoffs = [], []
    for number, chosen in seen.chosen.items():
        own = [agent for agent in chosen if agent not in seen.cut[number]]
        if own:
            shares.append(fmean(chosen[agent] == 0 for agent in own))
            payoffs.append(fmean(seen.earned[number][agent] for agent in own))
    expected = {"cooperative": fmean(shares), "payoff": fmean(payoffs), "gain": fmean(payoffs) - 1.0}
    assert row == pytest.approx(expected)


@pytest.mark.parametrize("cut", CUTS)
def test_commons(cut):
    def draw(rng, slots):
        return "note" if slots.phase == "reflect" else int(rng.integers(0, 18))

    seen, row = see(commons.scenario.SCENARIO, draw, 15, cut, months=ROUNDS, talk=False)
    over, units, unequal = [], 0, []
    for number, slots in seen.slots.items():
        got = {agent: round(seen.earned[number][agent]) for agent in slots}
        units += sum(got.values())
        ranked = sorted(got.values())
        apart = sum(abs(a - b) for a in ranked for b in ranked)
        unequal.append(apart / (2 * len(ranked) * sum(ranked)) if sum(ranked) else 0.0)
        bearable = next(iter(slots.values())).pool // 2 // len(got)
        own = [got[agent] > bearable for agent in got if agent not in seen.cut[number]]
        over += [fmean(own)] if own else []
    expected = {
        "months": len(seen.slots),
        "units": units,
        "gini": fmean(unequal),
        "over_used": fmean(over) if over else None,
    }
    assert {name: row[name] for name in expected} == pytest.approx(expected)


@pytest.mark.parametrize("cut", CUTS)
def test_fisheries(cut):
    def draw(rng, slots):
        return int(rng.integers(0, 8))

    seen, row = see(fishery.scenario.SCENARIO, draw, 3, cut, seasons=ROUNDS, talk=False)
    assert row["seasons"] == len(seen.chosen)
    assert row["catch_total"] == pytest.approx(math.fsum(sum(rewards.values()) for rewards in seen.earned.values()))


def test_what_reports_say():
    notes = {module.scenario.SCENARIO.measured.forced_note for module in (auction, market, commons, dilemma, fishery)}
    assert len(notes) == 4
    assert "Rounds in which a choice is forced are left out of the measures." in notes
