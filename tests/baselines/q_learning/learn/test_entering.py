"""Learners of whom the third comes and goes, against a plain loop, and what is measured of them."""

import dataclasses
import math

import numpy as np
import pytest
from plain_streams import Lanes, Mix

from llm_coop_envs.baselines.q_learning.analyse.analysis import limit_cycle
from llm_coop_envs.baselines.q_learning.analyse.entry_measures import entry_row, entry_summary
from llm_coop_envs.baselines.q_learning.learn.entering import EntrySettings, run_entry
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.errors import SettingsError


def plain(settings, seed, number):
    """Cell by cell, as the authors' program does it, with dictionaries and without shortcuts."""
    draws, begins, chance = np.random.SeedSequence(seed, spawn_key=(number,)).spawn(3)
    lanes = Lanes(draws.generate_state(32, np.uint64).reshape(4, 8))
    luck = Mix(chance.generate_state(1, np.uint64)[0])
    begin = np.random.Generator(np.random.PCG64(begins)).random
    game, out = settings.game(), settings.points
    every = [tuple(map(int, row)) for row in game.choices(np.arange(game.actions))]
    profits = dict(zip(every, game.profits.tolist(), strict=True))
    q, top, greedy = ({} for _ in range(3))
    for i in range(3):
        row = [
            sum(profits[one][i] for one in every if one[i] == a) / (len(every) / (out + 1)) / (1 - settings.delta)
            for a in range(out + 1)
        ]
        for state in every:
            q[i, state] = list(row)
            top[i, state] = max(row[:out])
            greedy[i, state] = row.index(top[i, state])
    first = [int(out * begin()) for _ in range(3)]
    state = (*first[:2], out if begin() > 0.5 else first[2])
    unchanged = t = 0
    left = fell = 0
    while unchanged < settings.window and t < settings.max_periods:
        words = [lanes(), lanes()]
        eps = math.exp(-settings.beta * t)
        asked = []
        for i, half in enumerate([words[0] >> 32, words[0] & 0xFFFFFFFF, words[1] >> 32]):
            u = (half + 0.5) / 2**32
            asked.append(int(u * out / eps) if u < eps else greedy[i, state])
        moves = luck() < settings.rate
        if state[2] == out and not moves:
            asked[2] = out
        elif state[2] != out and moves:
            asked[2] = out
            left += 1
        following, changed = tuple(asked), False
        for i in range(3):
            cell, key = asked[i], (i, state)
            value = (1 - settings.alpha) * q[key][cell] + settings.alpha * profits[following][i]
            new = value + settings.alpha * settings.delta * top[i, following]
            q[key][cell] = new
            before = greedy[key]
            if new > top[key]:
                top[key], greedy[key] = new, cell
            if new < top[key] and greedy[key] == cell:
                fell += cell == out
                top[key] = max(q[key][:out])
                greedy[key] = q[key].index(top[key])
            changed |= greedy[key] != before
        last, state = state, following
        t += 1
        unchanged = 1 if changed else unchanged + 1
    strategies = [[greedy[i, one] for one in every] for i in range(3)]
    return t, every.index(last), strategies, {key: row[:out] for key, row in q.items()}, (left, fell)


@pytest.mark.parametrize(
    ("points", "rate", "beta", "number"), [(3, 0.05, 5e-4, 0), (4, 0.1, 1e-3, 1), (2, 0.6, 1e-2, 2)]
)
def test_the_loop_is_the_programs(points, rate, beta, number):
    settings = EntrySettings(points=points, rate=rate, beta=beta, alpha=0.3, window=2000, max_periods=12_000)
    found, (periods, last, strategies, q, (left, fell)) = (run(settings, 5, number) for run in (run_entry, plain))
    assert left > 100
    # Being out became worth most somewhere, and stopped being so elsewhere: the rules for that were played too.
    assert points < 3 or ((found.strategies[2] == points).any() and fell)
    assert (found.periods, found.last_state) == (periods, last)
    assert found.strategies.tolist() == strategies
    game = settings.game()
    for (i, state), row in q.items():
        np.testing.assert_allclose(found.q[i, int(game.action(state)), :points], row, rtol=1e-9)


def test_who_is_out_sells_nothing_and_the_others_are_two():
    game = EntrySettings().game()
    two = BertrandSettings.build("calvano").market
    prices = game.prices[0]
    profits = game.profits[int(game.action([7, 4, 15]))]
    assert profits[2] < 1e-300
    assert profits[:2].tolist() == pytest.approx(list(two.profits([prices[7], prices[4]])))


def test_gains_are_those_of_two_while_one_is_out():
    """Strategies written by hand: in and out by turns, joint-profit prices throughout."""
    settings = EntrySettings()
    game = settings.game()
    session = run_entry(dataclasses.replace(settings, max_periods=10, window=10), 0)
    strategies = np.full((3, game.states), 13)
    strategies[2, game.choices(np.arange(game.actions))[:, 2] != 15] = 15
    session = dataclasses.replace(session, strategies=strategies, last_state=int(game.action([13, 13, 15])))
    without = BertrandSettings.build("calvano").equilibria
    row = entry_row(settings, game, without, session)
    assert limit_cycle(game, strategies, session.last_state).length == 2
    price = float(game.prices[0, 13])
    alone = BertrandSettings.build("calvano").market.profits([price, price])[0]
    nash, joint = without.nash_profit[0], without.joint_profit[0]
    assert row["gain"] == pytest.approx((alone - nash) / (joint - nash))
    all_in = game.profits[int(game.action([13] * 3)), 0]
    nash, joint = game.equilibria.nash_profit[0], game.equilibria.joint_profit[0]
    assert row["gain_in"] == pytest.approx((all_in - nash) / (joint - nash))
    # Nobody answers anything. In both states each of the two has one rival that is in twice, and the third has two.
    assert row["answer"] == 0.0
    assert (row["answers"], row["deviations"]) == (8, 4)
    summed = entry_summary([row, {**row, "gain": None}])
    assert (summed["sessions"], summed["with_exits"]) == (2, 1)
    assert summed["gain"] == pytest.approx(row["gain"])


def test_impossible_numbers_are_refused():
    for name, value in (("rate", 0.0), ("points", 16), ("alpha", 0.0), ("window", 0)):
        with pytest.raises(SettingsError, match=name):
            EntrySettings(**{name: value})
