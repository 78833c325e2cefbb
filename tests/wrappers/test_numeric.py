import warnings

import numpy as np
import pytest
from gymnasium import spaces
from pettingzoo.utils.wrappers import TerminateIllegalWrapper
from toy import ToyEnv

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import parallel_api_test
    from pettingzoo.test.seed_test import parallel_seed_test

from llm_coop_envs.errors import ActionError, ResetNeeded, SettingsError
from llm_coop_envs.interface.wording import Wording
from llm_coop_envs.wrappers import NumericView


@pytest.mark.parametrize("mask_in_obs", [True, False])
@pytest.mark.parametrize("settings", [{}, {"talk": False}, {"departures": True}, {"levels": True, "talk": False}])
def test_official(settings, mask_in_obs):
    parallel_api_test(NumericView(ToyEnv(**settings), mask_in_obs=mask_in_obs), num_cycles=40)
    parallel_seed_test(lambda: NumericView(ToyEnv(**settings), mask_in_obs=mask_in_obs), num_cycles=40)


def test_it_plays_the_same_game_and_shows_the_same_numbers():
    env, view = ToyEnv(departures=True), NumericView(ToyEnv(departures=True))
    full, infos = env.reset(seed=1)
    plain, _ = view.reset(seed=1)
    rng = np.random.default_rng(0)
    while env.agents:
        assert view.agents == env.agents
        for agent in env.agents:
            assert np.array_equal(plain[agent][:2], full[agent]["observation"])
            assert view.observation_space(agent).contains(plain[agent])
            assert plain[agent][2] == full[agent]["turn"]
            assert plain[agent][3:].argmax() == full[agent]["phase"]
        choices = {agent: int(rng.integers(5)) for agent in env.agents}
        full, rewards, terminations, truncations, infos = env.step({a: {"choice": c} for a, c in choices.items()})
        plain, *outcomes, masks = view.step(choices)
        assert outcomes == [rewards, terminations, truncations]
        for agent in infos:
            assert np.array_equal(masks[agent]["action_mask"], infos[agent]["action_mask"]["choice"])


def test_no_text_is_built(monkeypatch):
    monkeypatch.setattr(Wording, "render", lambda *_: pytest.fail("text was built"))
    view = NumericView(ToyEnv())
    view.reset(seed=0)
    while view.agents:
        view.step(dict.fromkeys(view.agents, 1))


def test_masks_in_observations():
    view = NumericView(ToyEnv(talk=False), mask_in_obs=True)
    observations, infos = view.reset(seed=0)
    assert infos == {agent: {} for agent in view.agents}
    assert observations["player_0"]["action_mask"].tolist() == [1, 1, 1, 1, 0]
    assert view.observation_space("player_0").contains(observations["player_0"])


def test_one_phase_needs_no_extra_columns():
    view = NumericView(ToyEnv(talk=False))
    assert view.feature_names == ("round", "last")
    assert NumericView(ToyEnv()).feature_names == ("round", "last", "turn", "phase_talk", "phase_act")


@pytest.mark.parametrize("normalised", [True, False])
@pytest.mark.parametrize("settings", [{}, {"talk": False}, {"departures": True}, {"levels": True}])
def test_official_with_continuous_choices(settings, normalised):
    def make():
        return NumericView(ToyEnv(continuous=True, **settings), normalised=normalised)

    parallel_api_test(make(), num_cycles=40)
    parallel_seed_test(make, num_cycles=40)


def test_continuous_choices_are_from_minus_one_to_one_or_in_their_own_units():
    env = ToyEnv(continuous=True, talk=False)
    low, high = float(env.choice_space.low[0]), float(env.choice_space.high[0])
    normalised, own = NumericView(env), NumericView(ToyEnv(continuous=True, talk=False), normalised=False)
    assert normalised.action_space("player_0") == spaces.Box(-1, 1, (1,), np.float32)
    assert own.action_space("player_0") == env.choice_space
    for action, number in ((-1.0, low), (1.0, high), (0.0, (low + high) / 2)):
        normalised.reset(seed=0)
        own.reset(seed=0)
        *outcomes, infos = normalised.step(dict.fromkeys(normalised.agents, np.array([action], np.float32)))
        assert infos == {agent: {} for agent in normalised.possible_agents}
        again = own.step(dict.fromkeys(own.agents, np.array([number])))
        assert outcomes[1:] == [again[1], again[2], again[3]]
        assert env.last.tolist() == own.unwrapped.last.tolist() == [number] * 3
        assert env._flags == {}
    normalised.reset(seed=0)
    normalised.step({"player_0": np.array([1.5])})
    assert env._flags == {0: ("illegal_choice",), 1: ("illegal_choice",), 2: ("illegal_choice",)}


def test_terminate_illegal_finds_the_mask_in_either_place():
    for mask_in_obs in (True, False):
        view = NumericView(ToyEnv(talk=False), mask_in_obs=mask_in_obs)
        env = TerminateIllegalWrapper(view.aec(), illegal_reward=-5)
        env.reset(seed=0)
        env.step(1)
        assert not any(env.terminations.values())
        env.step(4)  # the mask of every player ends with 0
        assert all(env.terminations.values())
        assert env.rewards == {"player_0": 0, "player_1": -5.0, "player_2": 0}
        while env.agents:
            env.step(None)


def test_bad_input():
    with pytest.raises(SettingsError, match="mask_in_obs=True: continuous choices have no mask"):
        NumericView(ToyEnv(continuous=True), mask_in_obs=True)
    with pytest.raises(SettingsError, match="directly around"):
        NumericView(NumericView(ToyEnv()))
    view = NumericView(ToyEnv(talk=False))
    with pytest.raises(ResetNeeded):
        view.step({})
    view.reset(seed=0)
    with pytest.raises(ActionError, match="nobody_0"):
        view.step({"nobody_0": 1})
    with pytest.raises(ActionError, match="dict"):
        view.step([1])
    view.step({"player_0": 2.0, "player_1": None})
    assert view.unwrapped.last.tolist() == [2.0, 3.0, 3.0]
    while view.agents:
        view.step(dict.fromkeys(view.agents, np.int64(2)))
    assert view.step({}) == ({}, {}, {}, {}, {})


def test_without_masks_infos_are_empty_and_play_is_the_same():
    def played(**options):
        view = NumericView(ToyEnv(talk=False), **options)
        _, infos = view.reset(seed=1)
        told = [infos]
        while view.agents:
            *results, infos = view.step({agent: 1 for agent in view.agents})
            told.append(infos)
        return results, told, {agent: view.observation_space(agent) for agent in view.possible_agents}

    masked, bare = played(), played(masks=False)
    assert any(info for infos in masked[1] for info in infos.values())
    assert not any(info for infos in bare[1] for info in infos.values())
    assert bare[2] == masked[2]
    assert bare[0][1:] == masked[0][1:]
    with pytest.raises(SettingsError, match="mask_in_obs=True: there are none with masks=False"):
        NumericView(ToyEnv(), masks=False, mask_in_obs=True)
