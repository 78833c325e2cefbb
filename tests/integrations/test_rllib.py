"""The numeric view in RLlib's `ParallelPettingZooEnv`.

`pip install 'llm-coop-envs[ray]' torch`, then `pytest -m rllib tests/integrations`.
"""

import numpy as np
import pytest
from configurations import SMALL_ROOM

pytest.importorskip("ray.rllib")

import ray
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.env.wrappers.pettingzoo_env import ParallelPettingZooEnv
from ray.tune.registry import register_env

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.wrappers import NumericView

pytestmark = [pytest.mark.rllib, pytest.mark.slow, pytest.mark.filterwarnings("default")]

MADE = {
    "kbc": lambda: kbc_v0.parallel_env(players=4),
    "bertrand": lambda: bertrand_v0.parallel_env(preset="calvano", rounds=20),
    "bertrand-continuous": lambda: bertrand_v0.parallel_env(rounds=8),
    "evacuation": lambda: evacuation_v0.parallel_env(**{**SMALL_ROOM, "control": "exit", "talk": False}),
    "evacuation-move": lambda: evacuation_v0.parallel_env(**SMALL_ROOM, rounds=10),
}


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.mark.parametrize("name", MADE)
def test_stepping(name):
    env = ParallelPettingZooEnv(NumericView(MADE[name]()))
    observations, _ = env.reset(seed=0)
    view = NumericView(MADE[name]())
    expected, _ = view.reset(seed=0)
    assert set(observations) == set(expected)
    over = False
    while not over:
        choices = dict.fromkeys(observations, np.zeros(view.action_space(view.agents[0]).shape, dtype=int))
        observations, rewards, terminated, truncated, _ = env.step(choices)
        again, rewards_again, *_ = view.step(choices)
        assert rewards == rewards_again
        assert all((observations[a] == again[a]).all() for a in again)
        over = terminated["__all__"] or truncated["__all__"]
    assert not view.agents


@pytest.mark.parametrize("name", MADE)
def test_ppo_trains_one_network_for_all(name):
    register_env(name, lambda _: ParallelPettingZooEnv(NumericView(MADE[name]())))
    config = (
        PPOConfig()
        .environment(name)
        .env_runners(num_env_runners=0)
        .learners(num_learners=0, num_gpus_per_learner=0)
        .multi_agent(policies={"all"}, policy_mapping_fn=lambda *_, **__: "all")
        .training(train_batch_size_per_learner=200, minibatch_size=64, num_epochs=1)
        .debugging(seed=0)
    )
    algorithm = config.build_algo()
    result = algorithm.train()
    assert result["num_env_steps_sampled_lifetime"] >= 200
    assert result["learners"]["all"]["num_module_steps_trained_lifetime"] > 0
    algorithm.stop()
