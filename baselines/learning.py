"""What learners need to know of a scenario: each scenario's own room says it in a `Learning`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.base_policy import ScriptedPolicy
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.registry import scenarios
from llm_coop_envs.util.references import load

PPO, MASKABLE_PPO, DQN = "ppo", "maskable_ppo", "dqn"
SHARED, INDEPENDENT = "shared", "independent"


@dataclass(frozen=True, kw_only=True)
class Partial:
    """Settings in which a network can play that knows only the first `choices`; `rules` decide in the other phases."""

    choices: int
    rules: Mapping[str, Callable[[], ScriptedPolicy]]


@dataclass(frozen=True, kw_only=True)
class Learning:
    """How a scenario is learned. The defaults fit one that says nothing.

    Functions are given the environment's settings.

    Attributes:
        algorithm: of deep learners, where none is named; `None`: MaskablePPO where choices are listed, else PPO.
        networks: of deep learners: `"shared"`, one for all players, or `"independent"`, one for each seat.
        discount: the worth of the next step, 0 to 1.
        copies: environments side by side.
        rollout: arguments of PPO and MaskablePPO.
        reward_scale: what rewards are multiplied by for learning.
        potential: a feature and the factor that makes it a potential, in rewards before scaling; `None` without
            shaping. It must leave the best policies what they are, see `deep.vecenv`.
        numbers: the numbers that stand for a continuous choice, (players, points); `None`: equally spaced ones.
        same_game: whether two settings are the same game to a trained network, whatever their length.
        partial: how a network with fewer choices plays; `None`: not at all.
        tabular: the tabular learner, a `tabular.learner.TabularLearner` class or a reference to one; `None` without.
    """

    algorithm: str | None = None
    networks: str = SHARED
    discount: float = 0.99
    copies: int = 8
    rollout: Callable[[Any], Mapping[str, Any]] = lambda _: {"n_steps": 128, "batch_size": 512, "n_epochs": 8}
    reward_scale: Callable[[Any], float] = lambda _: 1.0
    potential: Callable[[Any], tuple[str, float] | None] = lambda _: None
    numbers: Callable[[Any], NDArray[np.float64] | None] = lambda _: None
    same_game: Callable[[Any, Any], bool] = lambda one, other: True
    partial: Callable[[Any], Partial | None] = lambda _: None
    tabular: Any = None


def learning_of(scenario: str) -> Learning:
    """How a scenario is learned; one that says nothing, or that nobody knows, by the defaults."""
    known = scenarios().get(scenario)
    found: Learning | None = None if known is None else load(known.learning)
    return found or Learning()


def scenario_name(env: ScenarioEnv) -> str:
    """The name of an environment's scenario."""
    return str(env.metadata["name"]).rpartition("_v")[0]
