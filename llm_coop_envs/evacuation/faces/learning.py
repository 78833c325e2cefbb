"""How the evacuation is learned."""

from __future__ import annotations

import math
from typing import Any

from llm_coop_envs.baselines.learning import MASKABLE_PPO, Learning, Partial
from llm_coop_envs.evacuation.scripted import NearestExit
from llm_coop_envs.evacuation.settings import EvacuationSettings


def _rollout(settings: EvacuationSettings) -> dict[str, Any]:
    arguments = {"n_steps": 32, "batch_size": 1024, "n_epochs": 8, "learning_rate": 1e-3, "ent_coef": 0.05}
    if settings.control == "move":
        # A round has several steps here, in most of which a player is off turn: a rollout holds few decisions, and
        # with larger batches of them the network is changed too seldom (docs/learning.md).
        arguments |= {"n_steps": 128, "gamma": 0.999, "gae_lambda": 0.9, "batch_size": 256, "learning_rate": 5e-4}
    return arguments


def _potential(settings: EvacuationSettings) -> tuple[str, float]:
    """What a step gains in distance to the nearest exit: a round for each cell's width."""
    return "nearest_distance", -math.hypot(settings.room.rows - 1, settings.room.cols - 1)


def _partial(settings: EvacuationSettings) -> Partial | None:
    """Networks that only choose exits walk like the scripted policies where people walk by themselves."""
    if settings.control != "move":
        return None
    return Partial(choices=len(settings.room.exit_names), rules={"move": NearestExit})


LEARNING = Learning(
    algorithm=MASKABLE_PPO,  # a wall or a person often stops a step
    discount=1.0,
    rollout=_rollout,
    reward_scale=lambda _: 0.1,
    potential=_potential,
    partial=_partial,
    tabular="llm_coop_envs.evacuation.faces.tabular:EvacuationLearner",
)
