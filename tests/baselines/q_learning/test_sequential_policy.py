"""Q-learners that learned in turn, in the seats of the environment with that clock."""

import asyncio

import pytest

pytest.importorskip("numba")

from llm_coop_envs import bertrand_v0
from llm_coop_envs.baselines.q_learning.learn.sequential import SequentialSettings, run_sequential
from llm_coop_envs.baselines.q_learning.player import make
from llm_coop_envs.bertrand.metrics import read
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies import play
from llm_coop_envs.runs.episode import play_episode
from llm_coop_envs.studies.study import parse_study

QUICK = {"periods": 4000}
STUDY = """\
name: turns
seed: 3
conditions:
  - {name: turns, scenario: bertrand, preset: klein, settings: {rounds: 60}, seeds: [0],
     policies: {name: "q_learning:in_turn", options: {periods: 4000}}}
"""


def learned(**settings):
    env = bertrand_v0.parallel_env(preset="klein", rounds=40, record=True, **settings)
    policy = make("bertrand", "in_turn", QUICK)
    row = policy.learn(env.settings, 7, 2)
    return env, policy, row


def test_it_plays_what_the_learner_of_that_seed_learned():
    for number_of_prices in (4, 7):
        env, policy, row = learned(grid_points=number_of_prices)
        run = run_sequential(SequentialSettings(intervals=number_of_prices - 1, **QUICK), 7, 2)
        replies = run.q.argmax(axis=2)
        play(env, policy, seed=5)
        before, grid = env.events[0]["initial_prices"], env.settings.grids[0]
        index = {price: i for i, price in enumerate(grid)}
        for number, prices in enumerate(read(env.events).prices.tolist()):
            mover = number % 2
            assert prices[1 - mover] == before[1 - mover]
            assert index[prices[mover]] == replies[mover, index[before[1 - mover]]]
            before = prices
        assert row["learned_periods"] == 4000
        assert row["learned_gain"] == pytest.approx(run.profits.mean() / 0.125)
        assert (row["learned_equilibrium"], row["learned_edgeworth"]) == (run.equilibrium, run.edgeworth)


def test_it_learns_before_an_episode_of_a_study():
    study = parse_study(STUDY, "turns")
    (condition,) = study.conditions
    found = asyncio.run(play_episode(study.seed, condition, 0)).measures
    assert found["learned_periods"] == 4000


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"moves": "simultaneous"}, "needs moves='alternating'"),
        ({"prices": "continuous"}, "needs moves='alternating' and prices='grid'"),
        ({"firms": 3}, "must be two with the same costs"),
        ({"demand": "logit", "clamp_demand": False, "quality": [1.0, 1.2]}, "must be two with the same costs"),
    ],
)
def test_other_markets_are_refused(settings, sentence):
    with pytest.raises(SettingsError, match=sentence):
        learned(**settings)


def test_what_cannot_be_played_is_refused():
    with pytest.raises(SettingsError, match="intervals=6: is said by the condition's grid"):
        make("bertrand", "in_turn", {"intervals": 6})
    with pytest.raises(SettingsError, match="trained on bertrand, not on kbc"):
        make("kbc", "in_turn", {})
    for settings in ({"information": "own"}, {"history_window": 0}, {"memory": 0}):
        env, policy, _ = learned(**settings)
        with pytest.raises(SettingsError, match="replies to the rival's last price"):
            play(env, policy, seed=0)
    with pytest.raises(SettingsError, match="learns in studies only"):
        play(env, make("bertrand", "in_turn", QUICK), seed=0)
