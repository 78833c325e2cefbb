"""How scenarios are learned: each scenario describes itself to the learners in a `Learning`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.base_policy import ScriptedPolicy
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.registry import known_scenario
from llm_coop_envs.util.references import load

PPO, MASKABLE_PPO, DQN, SAC = "ppo", "maskable_ppo", "dqn", "sac"
SHARED, INDEPENDENT = "shared", "independent"


@dataclass(frozen=True, kw_only=True)
class Partial:
    """How a network plays that was trained on the first `choices` only: `rules` decide in the other phases, by name."""

    choices: int
    rules: Mapping[str, Callable[[], ScriptedPolicy]]


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How a scenario is learned; the defaults suit any scenario.

    Attributes that are functions take the environment's settings.

    Attributes:
        algorithm: the default algorithm of deep learners; `None`: MaskablePPO for listed choices, else PPO.
        networks: of deep learners: `"shared"`, one for all players, or `"independent"`, one for each seat.
        discount: weight of the next step's value, 0 to 1.
        copies: number of environments that run side by side.
        rollout: arguments of PPO and MaskablePPO.
        reward_scale: factor on rewards while learning.
        potential: the feature that rewards are shaped with and its factor, in rewards before scaling; `None` for no
            shaping. The best policies must stay the same, see `deep.vecenv`.
        numbers: the numbers that stand for a continuous choice, (players, points); `None`: equally spaced ones.
        same_game: whether two settings are the same game to a trained network, apart from the length of an episode.
        partial: how a network with fewer choices plays; `None` if it cannot.
        tabular: the tabular learner, a `tabular.learner.TabularLearner` class or a reference to one; `None` if there
            is none.
    """

    algorithm: str | None = None
    networks: str = SHARED
    discount: float = 0.99
    copies: int = 8
    rollout: Callable[[Any], Mapping[str, Any]] = lambda _: {"n_steps": 128, "batch_size": 512, "n_epochs": 8}
    reward_scale: Callable[[Any], float] = lambda _: 1.0
    potential: Callable[[Any], tuple[str, float] | None] = lambda _: None
    numbers: Callable[[Any], NDArray[np.float64] | None] = lambda _: None
    same_game: Callable[[Any, Any], bool] = lambda first, other: True
    partial: Callable[[Any], Partial | None] = lambda _: None
    tabular: Any = None


def learning_of(scenario: str) -> Learning:
    """How a scenario is learned: by the defaults if it has no `Learning` or is not registered."""
    descriptor = known_scenario(scenario)
    learning: Learning | None = None if descriptor is None else load(descriptor.learning)
    return learning or Learning()


def scenario_name(env: ScenarioEnv) -> str:
    """The name of an environment's scenario."""
    return str(env.metadata["name"]).rpartition("_v")[0]
