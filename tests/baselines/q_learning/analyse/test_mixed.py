"""Mixed strategies: expectations, checked against pure ones, against play, and against what is known."""

import numpy as np
import pytest

from llm_coop_envs.baselines.q_learning.analyse.analysis import cycle_gain, limit_cycle
from llm_coop_envs.baselines.q_learning.analyse.mixed import MAX_STATES, MixedPlay, pure
from llm_coop_envs.baselines.q_learning.analyse.responses import cycle_responses
from llm_coop_envs.baselines.q_learning.learn.game import Game
from llm_coop_envs.bertrand.deviation import summarise
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.errors import SettingsError


def game(memory=1, **market):
    settings = BertrandSettings.build("calvano", **{"grid_points": 5, **market})
    delta = (0.95,) * settings.firms
    return Game.tabulate(settings.market, settings.equilibria, settings.grids, memory, delta)


@pytest.mark.parametrize("seed", range(4))
def test_pure_strategies_have_the_gain_and_answers_of_their_cycle(seed):
    duopoly = game()
    strategies = np.random.default_rng(seed).integers(5, size=(2, 25))
    cycle = limit_cycle(duopoly, strategies, 7)
    play = MixedPlay.follow(duopoly, pure(strategies, 5), 7)
    assert play.gain == pytest.approx(cycle_gain(duopoly, cycle), abs=1e-5)
    for firm in (0, 1):
        (told,) = (summarise([[one for one in cycle_responses(duopoly, strategies, cycle) if one.firm == firm]]),)
        mean = summarise([[play.response(firm)]])
        assert np.allclose(mean.deviator, told.deviator, atol=1e-5)
        assert np.allclose(mean.rival, told.rival, atol=1e-5)


def test_expected_profits_are_those_of_long_play():
    duopoly, rng = game(), np.random.default_rng(0)
    mixes = rng.dirichlet(np.full(5, 0.5), size=(2, 25))
    play = MixedPlay.follow(duopoly, mixes, 0)
    state, earned = 0, np.zeros(2)
    for uniform in rng.random((40_000, 2)):
        asked = [int(mixes[i, state].cumsum().searchsorted(uniform[i] * 0.999999)) for i in (0, 1)]
        state = asked[0] * 5 + asked[1]
        earned += duopoly.profits[state]
    assert np.allclose(earned / 40_000, play.profits, rtol=0.01)
    # The likeliest price of each state says something else.
    likeliest = MixedPlay.follow(duopoly, pure(mixes.argmax(axis=2), 5), 0)
    assert abs(likeliest.profits - play.profits).max() > 0.02


def test_nothing_is_to_be_gained_from_a_best_reply():
    monopoly = game(firms=1)
    best = int(monopoly.profits[:, 0].argmax())
    assert MixedPlay.follow(monopoly, pure(np.full((1, 5), best), 5), 0).regret(0) == pytest.approx(0.0, abs=1e-9)
    uniform = np.full((1, 5, 5), 0.2)
    lost = monopoly.profits[best, 0] / monopoly.profits[:, 0].mean() - 1.0
    assert MixedPlay.follow(monopoly, uniform, 0).regret(0) == pytest.approx(lost)


def test_three_firms_and_no_memory():
    trio = game(memory=0, firms=3)
    play = MixedPlay.follow(trio, np.full((3, 1, 5), 0.2), 0)
    assert np.allclose(play.profits, trio.profits.mean(axis=0))
    assert play.response(1).rival_change == pytest.approx([0.0, 0.0])


def test_too_many_states_are_refused():
    duopoly = game(memory=2, grid_points=9)
    assert duopoly.states > MAX_STATES
    with pytest.raises(SettingsError, match="are too many"):
        MixedPlay.follow(duopoly, np.full((2, 1, 9), 1 / 9), 0)
