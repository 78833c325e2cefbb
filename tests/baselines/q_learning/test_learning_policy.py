"""Q-learners that learn before an episode, and those that go on learning while it is played."""

import asyncio

import numpy as np
import pytest

pytest.importorskip("numba")

from llm_coop_envs import bertrand_v0
from llm_coop_envs.baselines.q_learning.learning_policy import LearningPolicy
from llm_coop_envs.bertrand.rules import nearest
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.branching import Branching

#: Learns for a moment only.
SHORT = {"window": 50, "beta": 1e-3, "max_periods": 2000}


def learned(**options):
    env = bertrand_v0.parallel_env(preset="calvano", initial_prices=None, rounds=400, record=True)
    policy = LearningPolicy({**SHORT, **options})
    policy.learn(env.settings, 0, 0)
    return policy, Branching(env, policy, seed=0)


@pytest.mark.parametrize(("goes_on", "rate"), [(True, 0.15), ({"rate": 0.4}, 0.4)])
def test_it_learns_from_every_round_that_was_settled(goes_on, rate):
    policy, game = learned(goes_on=goes_on)
    table, grids = policy.table, game.env.settings.grids
    # One round more, because a round is learned from when the next price is asked.
    asyncio.run(game.play(41))
    rounds = [event for event in game.env.events if event["type"] == "round"]
    q, state = table.q.copy(), table.last_state
    for event in rounds[:-1]:
        asked = [nearest(grid, price) for grid, price in zip(grids, event["prices"], strict=True)]
        after = asked[0] * 15 + asked[1]
        for firm in (0, 1):
            target = event["profits"][firm] + 0.95 * q[firm, after].max()
            q[firm, state, asked[firm]] += rate * (target - q[firm, state, asked[firm]])
        state = after
    assert np.allclose(policy._q, q, rtol=1e-12)
    assert not np.array_equal(q, table.q)


def test_without_it_the_table_stays():
    policy, game = learned()
    asyncio.run(game.play(40))
    assert (policy._q, policy.get_state()) == (None, {})


@pytest.mark.parametrize("goes_on", [True, {"rate": 1e-9, "exploration": 0.3}])
def test_it_explores_as_rarely_as_when_it_stopped_or_as_often_as_is_said(goes_on):
    policy, game = learned(goes_on=goes_on, alpha=1e-9, beta=0.03)
    share = 0.3 if goes_on is not True else np.exp(-0.03 * policy.table.periods - 0.03 * np.arange(300)).mean()
    asyncio.run(game.play(300))
    rounds = [event["prices"] for event in game.env.events if event["type"] == "round"]
    greedy = 0
    state = policy.table.last_state
    for prices in rounds:
        asked = [nearest(grid, price) for grid, price in zip(game.env.settings.grids, prices, strict=True)]
        greedy += sum(asked[firm] == policy.table.strategies[firm, state] for firm in (0, 1))
        state = asked[0] * 15 + asked[1]
    assert 0.01 < share < 0.5
    assert greedy / 600 == pytest.approx(1 - share * 14 / 15, abs=0.02 if goes_on is True else 0.06)


def test_branches_do_not_teach_the_main_line():
    policy, game = learned(goes_on=True)
    asyncio.run(game.play(10))
    before = policy._q.copy()
    one = asyncio.run(game.branch(20, "one", {0: 3}))
    assert np.array_equal(policy._q, before)
    assert asyncio.run(game.branch(20, "one", {0: 3})) == one


def test_the_window_is_left_out_where_it_is_not_wanted():
    market = bertrand_v0.parallel_env(preset="calvano", initial_prices=None).settings
    patient = {**SHORT, "max_periods": 20_000, "window": 1000}
    found = [LearningPolicy({**patient, "window_round": wanted}) for wanted in (True, False)]
    rows = [policy.learn(market, 0, 0) for policy in found]
    assert isinstance(rows[0]["learned_window_round"], int)
    assert rows[1] == {**rows[0], "learned_window_round": None}
    assert found[0].table.q.tobytes() == found[1].table.q.tobytes()


def test_strategies_that_never_settled_lasted_from_no_period():
    """60,000 periods less a window of 100,000 were period -40,000."""
    market = bertrand_v0.parallel_env(preset="calvano", initial_prices=None, grid_points=4).settings
    few = {**SHORT, "max_periods": 3_000, "window_round": False}
    settled, unsettled = (
        [LearningPolicy({**few, "window": window}).learn(market, 0, number) for number in range(9)]
        for window in (100, 4_000)
    )
    assert any(row["learned_lasting_from"] is not None for row in settled)
    assert all(row["learned_lasting_from"] is None for row in unsettled)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"window_round": "no"}, "window_round='no': must be true or false"),
        ({"goes_on": 1}, "goes_on=1: must be true, false, or a mapping of rate and exploration"),
        ({"goes_on": {"rate": 2}}, "rate=2: must be a share"),
        ({"goes_on": {"exploration": 0.1}}, "means nothing without a rate"),
        ({"goes_on": {"speed": 1}}, "speed=1: is no option of this policy; known are rate, exploration"),
        ({"goes_on": {"rate": 0.1}, "memory": 0}, "with a memory"),
        ({"goes_on": True, "exploration": "boltzmann"}, "epsilon-greedy"),
        ({"goes_on": True, "memory": 0}, "with a memory"),
        ({"goes_off": True}, "is no setting"),
    ],
)
def test_bad_options(options, words):
    with pytest.raises(SettingsError, match=words):
        LearningPolicy(options)
