"""Deviations of a Q table that plays the environment are those computed from the table."""

import asyncio

import numpy as np
import pytest

from llm_coop_envs import bertrand_v0
from llm_coop_envs.baselines.q_learning.analyse.analysis import cycle_gain
from llm_coop_envs.baselines.q_learning.analyse.responses import cycle_responses
from llm_coop_envs.baselines.q_learning.analyse.tables import QTable, load_table
from llm_coop_envs.baselines.q_learning.learn.sessions import Session
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.baselines.q_learning.table_policy import QTablePolicy
from llm_coop_envs.bertrand import paths
from llm_coop_envs.bertrand.faces.after import PricePath, deviations
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.policies.branching import Branching


def played(table, preset, to, periods, **settings):
    """The game after play has settled, and the responses by (firm, prices before)."""
    env = bertrand_v0.parallel_env(preset=preset, prices="grid", talk=False, rounds=900, record=True, **settings)
    game = Branching(env, QTablePolicy(table), seed=0)
    asyncio.run(game.play(150))
    return game, asyncio.run(deviations(game, to, periods=periods, horizon=150, delta=0.95))


def compare(table, preset, to="best_reply", periods=1, **settings):
    game, found = played(table, preset, to, periods, **settings)
    path = PricePath.from_events(game.env.events)
    cycle = paths.path_cycle(path.prices, path.profits, game.env.equilibria)
    computed = table.game, table.strategies, table.cycle
    assert cycle.length == computed[2].length
    assert cycle.kind == computed[2].kind
    assert paths.cycle_gain(cycle, game.env.equilibria) == pytest.approx(
        cycle_gain(computed[0], computed[2]), rel=1e-12
    )
    expected = cycle_responses(*computed, to, periods=periods)

    def key(one):
        return one.firm, tuple(np.round(one.before, 9))

    assert sorted(map(key, found)) == sorted(map(key, expected))
    there = {key(one): one for one in expected}
    for one in found:
        other = there[key(one)]
        assert np.allclose(one.prices, other.prices, rtol=1e-12)
        assert np.allclose(one.profits, other.profits, rtol=1e-12)
        assert (one.length, one.returned) == (other.length, other.returned)
        assert (one.paid, one.unprofitable) == (other.paid, other.unprofitable)
        assert one.value == pytest.approx(other.value, rel=1e-10)
        assert one.value_before == pytest.approx(other.value_before, rel=1e-10)
    return found


@pytest.mark.parametrize(("to", "periods"), [("best_reply", 1), ("highest", 1), ("nash", 3)])
def test_trained_tables_answer_as_computed(to, periods):
    compare(load_table("calvano"), "calvano", to, periods)


def test_in_the_other_markets_too():
    # Round 1 has the laid-down price; the table then leads on from there.
    compare(load_table("team_up_linear"), "team_up_linear", collusion_window=0, price_cap=None)


def test_untrained_tables_end_in_other_cycles_and_are_still_the_same():
    # Random strategies of 4 prices: several cycles; long ways back and none.
    learning = QLearningSettings(market=BertrandSettings.build("calvano", grid_points=4))
    seen = set()
    for seed in range(6):
        q = np.random.default_rng(seed).random((2, 16, 4))
        session = Session(0, 1, True, 0, q.argmax(axis=2), q, np.zeros((0, 2), dtype=np.int64))
        table = QTable.from_session(learning, 0, session)
        env = bertrand_v0.parallel_env(preset="calvano", grid_points=4, initial_prices=None, rounds=900, record=True)
        game = Branching(env, QTablePolicy(table), seed=0)
        asyncio.run(game.play(100))
        found = asyncio.run(deviations(game, "lowest", horizon=150))
        expected = cycle_responses(table.game, table.strategies, table.cycle, "lowest")
        mine = sorted((one.firm, tuple(np.round(one.before, 9)), one.length, one.returned) for one in found)
        assert mine == sorted((one.firm, tuple(np.round(one.before, 9)), one.length, one.returned) for one in expected)
        seen |= {one.returned for one in found}
    assert seen == {True, False}
