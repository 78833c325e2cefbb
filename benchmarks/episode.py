"""One episode of a study: its environment, its policies, its randomness."""

from __future__ import annotations

import hashlib

import numpy as np

from llm_coop_envs.benchmarks.players import make_policy
from llm_coop_envs.benchmarks.registry import Event
from llm_coop_envs.benchmarks.study import Condition, assign_seats
from llm_coop_envs.policies import Policy, play_async


async def play_episode(study_seed: int, condition: Condition, seed: int) -> tuple[dict[str, str], list[Event]]:
    """Play one episode.

    Args:
        study_seed: the study's seed.
        condition: what is played.
        seed: the environment's seed.

    Returns:
        The policy of each seat by full name, and the recorded events.
    """
    env = condition.spec.environment(record=True, **condition.settings)
    seating, deciding = episode_randomness(study_seed, condition.name, seed).spawn(2)
    players = assign_seats(condition, env.possible_agents, np.random.default_rng(seating))
    made: dict[int, Policy] = {}
    for player in players.values():
        if id(player) not in made:
            made[id(player)] = make_policy(condition.scenario, player.policy, player.options)
    seats = {agent: made[id(player)] for agent, player in players.items()}
    await play_async(env, seats, seed=seed, policy_seed=deciding)
    return {agent: player.policy for agent, player in players.items()}, env.events


def episode_randomness(study_seed: int, condition: str, seed: int) -> np.random.SeedSequence:
    """Where an episode's policies get their randomness.

    It depends on these three values only: not on the process, the order of episodes, or Python's hash seed.
    """
    digest = hashlib.sha256(condition.encode()).digest()
    words = np.frombuffer(digest[:16], dtype="<u4").tolist()
    return np.random.SeedSequence([study_seed, *words, seed])
