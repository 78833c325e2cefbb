"""The wrappers on every configuration."""

import warnings

import numpy as np
import pytest
from configurations import CONFIGURATIONS
from gymnasium import spaces
from pettingzoo.utils import parallel_to_aec
from rollout import digest

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from pettingzoo.test import api_test, parallel_api_test
    from pettingzoo.test.seed_test import parallel_seed_test

from llm_coop_envs.policies.scripted import make as make_policy
from llm_coop_envs.wrappers import NumericView, SingleAgentView, TextView

RANDOM = {"kbc_v0": "kbc/uniform", "bertrand_v0": "bertrand/uniform", "evacuation_v0": "evacuation/random"}


def discrete(name):
    module, settings = CONFIGURATIONS[name]
    return isinstance(module.parallel_env(**settings).choice_space, spaces.Discrete)


DISCRETE = [name for name in sorted(CONFIGURATIONS) if discrete(name)]


def build(name):
    module, settings = CONFIGURATIONS[name]
    return module.parallel_env(**settings)


@pytest.mark.parametrize("mask_in_obs", [False, True])
@pytest.mark.parametrize("name", DISCRETE)
def test_numeric_view(name, mask_in_obs):
    parallel_api_test(NumericView(build(name), mask_in_obs=mask_in_obs), num_cycles=40)
    parallel_seed_test(lambda: NumericView(build(name), mask_in_obs=mask_in_obs), num_cycles=40)
    view = NumericView(build(name), mask_in_obs=mask_in_obs)
    observations, infos = view.reset(seed=2)
    rng = np.random.default_rng(0)
    while view.agents:
        actions = {}
        for agent in view.agents:
            assert view.observation_space(agent).contains(observations[agent])
            mask = observations[agent]["action_mask"] if mask_in_obs else infos[agent]["action_mask"]
            actions[agent] = int(rng.choice(np.flatnonzero(mask)))
        before = set(view.agents)
        observations, rewards, terminations, truncations, infos = view.step(actions)
        assert before == set(observations) == set(rewards) == set(terminations) == set(truncations) == set(infos)
        assert all(type(reward) is float for reward in rewards.values())


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("name", [name for name in sorted(CONFIGURATIONS) if name not in DISCRETE])
@pytest.mark.filterwarnings("ignore:Agent's maximum and minimum:UserWarning")  # a feature may be a constant
@pytest.mark.filterwarnings("ignore:Agents have different observation space sizes:UserWarning")  # a regulator's
@pytest.mark.filterwarnings("ignore:Agents have different action space sizes:UserWarning")
@pytest.mark.filterwarnings("ignore:Observations are different shapes:UserWarning")
def test_numeric_view_of_continuous_choices(name, normalised):
    def make():
        return NumericView(build(name), normalised=normalised)

    parallel_api_test(make(), num_cycles=40)
    parallel_seed_test(make, num_cycles=40)
    api_test(parallel_to_aec(make()), num_cycles=40)
    view = make()
    observations, _ = view.reset(seed=2)
    while view.agents:
        assert all(view.observation_space(agent).contains(observations[agent]) for agent in view.agents)
        observations, *_ = view.step({agent: view.action_space(agent).sample() for agent in view.agents})
        assert not view.unwrapped._flags or view.unwrapped.regulator is not None  # whose answers are not masked here


@pytest.mark.parametrize("name", sorted(CONFIGURATIONS))
def test_text_view(name):
    view = TextView(build(name))
    parallel_api_test(view, num_cycles=20)
    texts, _ = view.reset(seed=0)
    while view.agents:
        assert all(view.observation_space(agent).contains(texts[agent]) for agent in view.agents)
        texts, *_ = view.step(dict.fromkeys(view.agents, "1"))


@pytest.mark.parametrize("name", sorted(CONFIGURATIONS))
def test_single_agent_view(name):
    def episode(seed):
        env = build(name)
        view = SingleAgentView(env, env.possible_agents[-1], make_policy(RANDOM[env.metadata["name"]]))
        view.action_space.seed(3)
        observation, info = view.reset(seed=seed)
        seen, over = [digest(observation, info)], False
        while not over:
            assert observation["turn"] == 1
            assert view.observation_space.contains(observation)
            action = view.action_space.sample(mask=info["action_mask"])
            observation, reward, terminated, truncated, info = view.step(action)
            over = terminated or truncated
            seen.append(digest(observation, info, reward))
        view.close()
        return seen

    assert episode(4) == episode(4)
