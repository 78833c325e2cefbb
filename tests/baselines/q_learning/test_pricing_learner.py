"""Learners of one's own: they learn before an episode, and play what they learned."""

import asyncio

import numpy as np
import pytest

from llm_coop_envs import bertrand_v0
from llm_coop_envs.baselines.q_learning import PricingLearner, Trained
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies import play
from llm_coop_envs.policies.branching import Branching


class Loop(PricingLearner):
    """A learner with a loop of its own: half of the time the highest price, else the lowest, whatever happened."""

    def prepare(self, game): ...

    def choose(self, firm, state, period, rng): ...

    def update(self, firm, state, price, profit, after, rng): ...

    def mix(self, firm): ...

    def train(self, game, rng):
        mixes = np.zeros((game.firms, game.states, game.points))
        mixes[:, :, [0, -1]] = 0.5
        return Trained(mixes, 0, np.zeros((0, game.firms), dtype=np.int64))


class Wrong(Loop):
    def train(self, game, rng):
        return Trained(np.ones((game.firms, game.states, game.points)), 0, np.zeros((0, 2), dtype=np.int64))


def test_what_it_learned_is_told_as_expectations_and_played_as_a_mix():
    env = bertrand_v0.parallel_env(preset="calvano", initial_prices=None, rounds=400, record=True)
    learner = Loop()
    found = learner.learn(env.settings, 0, 0)
    grid = env.settings.grids[0]
    assert found["learned_price"] == pytest.approx((grid[0] + grid[-1]) / 2)
    assert (found["learned_window_round"], found["learned_lasting_from"]) == (None, None)
    assert found["learned_regret"] > 0.1
    play(env, learner, seed=0)
    asked = [event["choice"] for event in env.events if event["type"] == "choice"]
    assert set(asked) == {0, 14}
    assert asked.count(14) / len(asked) == pytest.approx(0.5, abs=0.06)


def test_branches_draw_alike():
    env = bertrand_v0.parallel_env(preset="calvano", initial_prices=None, rounds=100, record=True)
    learner = Loop()
    learner.learn(env.settings, 0, 0)
    game = Branching(env, learner, seed=0)
    asyncio.run(game.play(10))
    assert asyncio.run(game.branch(20, "one", {0: 3})) == asyncio.run(game.branch(20, "one", {0: 3}))


class Recorder(Loop):
    """Raises its price by one step in each period; keeps all that it was told."""

    def __init__(self, goes_on=True):
        self.goes_on, self.told = goes_on, [[], []]

    def choose(self, firm, state, period, rng):
        return (len(self.told[firm]) + 3 * firm) % 15

    def update(self, firm, state, price, profit, after, rng):
        self.told[firm].append([state, price, profit, after])


def test_a_learner_goes_on_in_play_and_from_what_it_had_learned_on_in_each_episode():
    env = bertrand_v0.parallel_env(preset="calvano", initial_prices=None, rounds=20, record=True)
    learner = Recorder()
    learner.learn(env.settings, 0, 0)
    for _ in range(2):
        play(env, learner, seed=0)
        rounds = [event for event in env.events if event["type"] == "round"]
        grid, state = env.settings.grids[0], learner._trained.last_state
        expected = [[], []]
        for event in rounds[:-1]:  # from the last round nothing is learned: nobody is asked after it
            asked = [grid.index(price) for price in event["prices"]]
            after = asked[0] * 15 + asked[1]
            for firm in (0, 1):
                assert asked[firm] == (event["round"] - 1 + 3 * firm) % 15
                expected[firm].append([state, asked[firm], event["profits"][firm], after])
            state = after
        assert learner.told == expected
    still = Recorder(goes_on=False)
    still.learn(env.settings, 0, 0)
    play(env, still, seed=0)
    assert (still.told, still.get_state()) == ([[], []], {})


def test_branches_do_not_teach_the_main_line():
    env = bertrand_v0.parallel_env(preset="calvano", initial_prices=None, rounds=100, record=True)
    learner = Recorder()
    learner.learn(env.settings, 0, 0)
    game = Branching(env, learner, seed=0)
    asyncio.run(game.play(10))
    before = [list(told) for told in learner.told]
    one = asyncio.run(game.branch(20, "one", {0: 3}))
    assert learner.told == before
    assert len(before[0]) == 9
    assert asyncio.run(game.branch(20, "one", {0: 3})) == one


def test_mistakes_are_sentences():
    env = bertrand_v0.parallel_env(preset="calvano", rounds=3)
    with pytest.raises(SettingsError, match="learns in studies only"):
        play(env, Loop(), seed=0)
    with pytest.raises(SettingsError, match="must give probabilities of 15 prices in 225 states"):
        Wrong().learn(env.settings, 0, 0)
    with pytest.raises(SettingsError, match="need a grid of prices"):
        Loop().learn(BertrandSettings.build("team_up"), 0, 0)
    blind = bertrand_v0.parallel_env(preset="calvano", rounds=3, information="own")
    learner = Loop()
    learner.learn(blind.settings, 0, 0)
    with pytest.raises(SettingsError, match="goes by all firms' last prices"):
        play(blind, learner, seed=0)
    # Whoever has no memory needs none.
    learner.memory = 0
    learner.learn(blind.settings, 0, 0)
    play(blind, learner, seed=0)
