"""The environment's step is the reference: the same actions give the same profits, states and tables."""

import dataclasses

import numpy as np
import pytest

from llm_coop_envs import bertrand_v0
from llm_coop_envs.baselines.q_learning.learn.initial import against_uniform
from llm_coop_envs.baselines.q_learning.learn.sessions import run_session
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.bertrand.settings import BertrandSettings

MARKETS = {
    "calvano": {},
    "three unequal firms": {"firms": 3, "cost": (1.0, 0.9, 0.8), "grid_points": 7},
    "linear, cut to whole numbers": {
        "demand": "linear",
        "quality": 14.0,
        "cost": 2.0,
        "beta": 0.00666666666666,
        "d": 0.00333333333333,
        "truncate_profit": True,
        "benchmark_decimals": None,
    },
}


@pytest.mark.parametrize("name", MARKETS)
@pytest.mark.parametrize("memory", [1, 2])
def test_the_learner_plays_the_environment(name, memory):
    market = BertrandSettings.build("calvano", **MARKETS[name])
    learning = QLearningSettings(market=market, memory=memory, beta=0.01, max_periods=400)
    session = run_session(learning, 4, trace=400)
    game = learning.game()
    env = bertrand_v0.parallel_env(**{**market.to_json(), "rounds": 500}, record=True)
    env.reset(seed=0)
    q = against_uniform(game, session.q.shape)
    alpha, delta = np.array(learning.spread("alpha")), np.array(learning.spread("delta"))
    firms = np.arange(game.firms)
    past = []
    for t, choices in enumerate(session.trace):
        _, rewards, _, _, _ = env.step({agent: {"choice": c} for agent, c in zip(env.agents, choices, strict=True)})
        earned = np.array(list(rewards.values()))
        assert earned.tolist() == game.profits[game.action(choices)].tolist()
        asked = env.events[-1]["prices"]
        assert asked == game.price_of(choices).tolist()
        past.insert(0, int(game.action(choices)))
        if t >= memory:
            state, there = (number(game, past[i : i + memory]) for i in (1, 0))
            assert int(game.next_state(state, past[0])) == there
            target = earned + delta * q[firms, there].max(axis=1)
            q[firms, state, choices] += alpha * (target - q[firms, state, choices])
        else:
            # The first states hold prices that were never asked; take the learner's word for them.
            q = after_first_periods(learning, t + 1)
    np.testing.assert_allclose(session.q, q, rtol=1e-11)


def number(game, past):
    """The number of the state in which these actions were the latest, the last one first."""
    return sum(action * game.actions ** (game.memory - 1 - k) for k, action in enumerate(past))


def after_first_periods(learning, periods):
    return run_session(dataclasses.replace(learning, max_periods=periods), 4, loop="general").q
