"""The views for RL libraries: arrays instead of text, and one seat as a Gymnasium environment.

python examples/reinforcement_learning.py
"""

import math

import numpy as np

import llm_coop_envs
from llm_coop_envs.policies import scripted
from llm_coop_envs.wrappers import NumericView, SingleAgentView


def all_seats() -> None:
    """Play random legal choices in every seat through the numeric view."""
    env = NumericView(llm_coop_envs.evacuation_v0.parallel_env(preset="small", talk=False))
    rng = np.random.default_rng(0)
    _, infos = env.reset(seed=0)
    total = 0.0
    while env.agents:
        actions = {a: int(rng.choice(np.flatnonzero(infos[a]["action_mask"]))) for a in env.agents}
        _, rewards, _, _, infos = env.step(actions)
        total += math.fsum(rewards.values())
    print(f"random walkers: {len(env.possible_agents)} people, sum of rewards {total:.0f}")


def one_seat() -> None:
    """Train an epsilon-greedy bandit over the price grid against a scripted rival."""
    market = llm_coop_envs.bertrand_v0.parallel_env(preset="calvano", rounds=400)
    env = SingleAgentView(market, "firm_0", scripted.make("bertrand/best_reply"), numeric=True)
    rng = np.random.default_rng(0)
    values, counts = np.zeros(env.action_space.n), np.zeros(env.action_space.n)
    env.reset(seed=0)
    over = False
    while not over:
        action = int(rng.integers(len(values)) if rng.random() < 0.2 else values.argmax())
        _, reward, terminated, truncated, _ = env.step(action)
        counts[action] += 1
        values[action] += (reward - values[action]) / counts[action]
        over = terminated or truncated
    env.close()
    best = market.settings.grids[0][int(values.argmax())]
    print(f"bandit against best replies: settles on the price {best:.2f} after {int(counts.sum())} rounds")


if __name__ == "__main__":
    all_seats()
    one_seat()
