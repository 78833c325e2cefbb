"""The numeric view in SuperSuit, with stable-baselines3 behind it; run by `make test-rl`."""

import gymnasium
import numpy as np
import pytest
from configurations import SMALL_ROOM

pytest.importorskip("supersuit")

from llm_coop_envs import bertrand_v0, evacuation_v0, kbc_v0
from llm_coop_envs.policies import ScriptedPolicy
from llm_coop_envs.wrappers import NumericView

pytestmark = pytest.mark.filterwarnings("default")  # theirs are not ours to mend

MADE = {
    "kbc": lambda: kbc_v0.parallel_env(players=5),
    "kbc-real": lambda: kbc_v0.parallel_env(players=5, choices="real"),
    "bertrand": lambda: bertrand_v0.parallel_env(preset="calvano", rounds=8),
    "bertrand-continuous": lambda: bertrand_v0.parallel_env(rounds=8),
    "evacuation": lambda: evacuation_v0.parallel_env(**{**SMALL_ROOM, "control": "exit", "talk": False}),
    "evacuation-move": lambda: evacuation_v0.parallel_env(**SMALL_ROOM),
}


def play(env, rng, steps=30):
    """Play choices that may be illegal, which never raises."""
    env.reset(seed=0)
    for agent in env.possible_agents:
        env.action_space(agent).seed(int(rng.integers(1000)))
    played = 0
    while env.agents and played < steps:
        actions = {a: env.action_space(a).sample() for a in env.agents}
        observations, rewards, *_ = env.step(actions)
        assert all(np.isfinite(rewards[a]) for a in rewards)
        # Not `contains`: agent_indicator_v0 leaves its own column out of the bounds it declares.
        assert all(np.shape(o) == env.observation_space(a).shape for a, o in observations.items())
        played += 1
    return played


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize(
    "wrap",
    [
        "agent_indicator_v0",
        "black_death_v3",
        "clip_reward_v0",
        "flatten_v0",
        "pad_observations_v0",
        "pad_action_space_v0",
        "frame_stack_v1",
        "dtype_v0",
        "max_observation_v0",
        "delay_observations_v0",
        "sticky_actions_v0",
    ],
)
def test_every_wrapper_takes_the_numeric_view(name, wrap):
    import supersuit

    more = {
        "frame_stack_v1": (3,),
        "dtype_v0": (np.float64,),
        "max_observation_v0": (2,),
        "delay_observations_v0": (2,),
        "sticky_actions_v0": (0.5,),
    }
    env = getattr(supersuit, wrap)(NumericView(MADE[name]()), *more.get(wrap, ()))
    assert play(env, np.random.default_rng(0)) > 3


@pytest.mark.parametrize("name", MADE)
def test_as_a_vector_environment(name):
    import supersuit

    env = supersuit.black_death_v3(NumericView(MADE[name]()))
    vector = supersuit.concat_vec_envs_v1(
        supersuit.pettingzoo_env_to_vec_env_v1(env), 2, num_cpus=1, base_class="gymnasium"
    )
    seen, _ = vector.reset(seed=0)
    players = len(NumericView(MADE[name]()).possible_agents)
    assert len(seen) == 2 * players
    choices = np.zeros((2 * players, *vector.action_space.shape), dtype=vector.action_space.dtype)
    for _ in range(10):
        seen, rewards, terminated, truncated, _ = vector.step(choices)
        assert len(seen) == len(rewards) == len(terminated) == len(truncated) == 2 * players
    vector.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kbc", "kbc-real", "bertrand", "bertrand-continuous", "evacuation"])
def test_stable_baselines3_learns_through_it(name):
    sb3 = pytest.importorskip("stable_baselines3")
    import supersuit

    env = supersuit.black_death_v3(NumericView(MADE[name]()))
    vector = supersuit.concat_vec_envs_v1(
        supersuit.pettingzoo_env_to_vec_env_v1(env), 2, num_cpus=1, base_class="stable_baselines3"
    )
    # A seed given to the algorithm would fail: SuperSuit's vector environment cannot be seeded. Ours can.
    model = sb3.PPO("MlpPolicy", vector, n_steps=16, batch_size=32, n_epochs=1, device="cpu")
    assert model.learn(16 * vector.num_envs).num_timesteps >= 16 * vector.num_envs
    vector.close()


class Thirty(ScriptedPolicy):
    def decide(self, request):
        return {"choice": 30.0, "message": ""}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*maximum and minimum values are equal")
def test_ppo_finds_a_number_below_everybody_elses():
    sb3 = pytest.importorskip("stable_baselines3")
    told = {"choices": "real", "session": "repeated", "rounds": 20, "players": 3, "talk": False}
    env = gymnasium.make("llm_coop/kbc-v0", others=Thirty(), numeric=True, **told)
    model = sb3.PPO(
        "MlpPolicy", env, n_steps=128, batch_size=64, n_epochs=5, learning_rate=1e-3, gamma=0.0, seed=0, device="cpu"
    )

    def earned(choose):
        observation, _ = env.reset(seed=1)
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, _ = env.step(choose(observation))
            total += reward
            over = terminated or truncated
        return total

    env.action_space.seed(0)
    before = earned(lambda _: env.action_space.sample())
    model.learn(2500)
    # Whoever is below 30 and not too far wins the prize of 100 in every round.
    assert before < 1500 < 1900 <= earned(lambda seen: model.predict(seen, deterministic=True)[0])
