"""The settings of a training, with defaults from the scenario's `Learning`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from gymnasium import spaces

from llm_coop_envs.baselines.deep.choices import Choices
from llm_coop_envs.baselines.learning import (
    DQN,
    INDEPENDENT,
    MASKABLE_PPO,
    PPO,
    SHARED,
    Learning,
    learning_of,
    scenario_name,
)
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.registry import find_scenario, scenarios
from llm_coop_envs.core.settings import Settings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.util.checks import check_choice, check_int, check_number, require_int, suggestion

ALGORITHMS = (PPO, DQN, MASKABLE_PPO)
SAMPLE, BEST = "sample", "best"
#: Fields that may change when a training is continued.
MAY_CHANGE = ("steps", "every", "episodes", "play")

_OFF_POLICY: Mapping[str, Any] = {
    "batch_size": 256,
    "buffer_size": 100_000,
    "exploration_final_eps": 0.02,
    "exploration_fraction": 0.5,
    "gradient_steps": 4,
    "learning_rate": 5e-4,
    "learning_starts": 5_000,
    "target_update_interval": 2_000,
    "train_freq": 4,
}


@dataclass(frozen=True, kw_only=True)
class TrainSettings(Settings):
    """One training.

    Attributes:
        env: the scenario's name.
        algo: `"ppo"`, `"dqn"` or `"maskable_ppo"`; `None`: the scenario's default, see `Learning`.
        networks: `"shared"`, one network that learns from all players, or `"independent"`, a learner for each seat;
            `None`: the scenario's default.
        preset: a preset of the scenario.
        settings: settings of the scenario by name, which replace the preset's.
        steps: length of the training. A step is one row of one step: with 8 copies of 100 players, each step of the
            environments counts 800.
        seed: seed of the network's first weights, its draws, and all episodes.
        copies: number of environments that run side by side.
        reward_scale: factor on rewards while learning, not in reports; `None`: the scenario's default.
        shaping: add the scenario's potential to the reward while learning, which leaves the best policies the same; no
            effect if the scenario has none.
        play: how the trained policy decides: `"sample"` from its probabilities or `"best"`; `None`: best for DQN,
            sample otherwise.
        every: steps between evaluations, each with a checkpoint; `None`: a tenth of `steps`.
        episodes: number of episodes of an evaluation, with seeds 0, 1, ...
        hyper: arguments of the algorithm that replace the scenario's defaults. The entropy bonus `ent_coef` of PPO
            falls linearly from this value to 0 at the end.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "steps": (1, math.inf),
        "seed": (0, math.inf),
        "episodes": (1, math.inf),
    }

    env: str
    algo: str | None = None
    networks: str | None = None
    preset: str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 100_000
    seed: int = 0
    copies: int | None = None
    reward_scale: float | None = None
    shaping: bool = True
    play: str | None = None
    every: int | None = None
    episodes: int = 5
    hyper: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every field, including the scenario's settings, and fill in defaults."""
        for name, names in (("env", scenarios()), ("algo", ALGORITHMS)):
            value = getattr(self, name)
            if not (name == "algo" and value is None) and value not in names:
                raise SettingsError(name, value, f"is unknown; {suggestion(str(value), names)}")
        super().__post_init__()
        set_ = object.__setattr__
        set_(self, "copies", self.learning.copies if self.copies is None else self.copies)
        check_int(self, "copies", 1)
        set_(self, "networks", self.networks or self.learning.networks)
        check_choice(self, "networks", (SHARED, INDEPENDENT))
        set_(self, "settings", dict(self.settings))
        env = self.environment()
        Choices(env)
        set_(self, "algo", self.algo or default_algorithm(env))
        set_(self, "play", self.play or (BEST if self.algo == DQN else SAMPLE))
        check_choice(self, "play", (SAMPLE, BEST))
        set_(self, "every", max(1, self.steps // 10) if self.every is None else self.every)
        check_int(self, "every", 1)
        if self.reward_scale is None:
            set_(self, "reward_scale", self.learning.reward_scale(env.settings))
        check_number(self, "reward_scale", 0.0, above=True)
        own = _OFF_POLICY if self.algo == DQN else self.learning.rollout(env.settings)
        discount = {"gamma": self.learning.discount}
        set_(self, "hyper", {**discount, **own, **self.hyper})
        if self.algo != DQN:
            for name in ("n_steps", "batch_size", "n_epochs"):
                require_int(f"hyper.{name}", self.hyper.get(name, 1), 1)

    def environment(self, *, record: bool = False) -> ScenarioEnv:
        """Make an environment.

        Raises:
            SettingsError: the environment's settings are impossible.
        """
        return find_scenario(self.env).environment(preset=self.preset, record=record, **self.settings)

    @property
    def learning(self) -> Learning:
        """How the scenario is learned."""
        return learning_of(self.env)

    @cached_property
    def potential(self) -> tuple[str, float] | None:
        """The column and the factor of shaping, see `vecenv`; `None` without shaping."""
        potential = self.learning.potential(self.environment().settings) if self.shaping else None
        return None if potential is None else (potential[0], potential[1] * float(self.reward_scale or 1.0))

    @property
    def identity(self) -> dict[str, Any]:
        """The fields that decide the weights, except for the length of the training.

        `networks` is left out if it is `"shared"`, because older folders lack it.
        """
        left_out = (*MAY_CHANGE, *(("networks",) if self.networks == SHARED else ()))
        return {name: value for name, value in self.to_json().items() if name not in left_out}


def default_algorithm(env: ScenarioEnv) -> str:
    """The default algorithm: the scenario's, else MaskablePPO for listed choices and PPO for numbers."""
    learning = learning_of(scenario_name(env))
    return learning.algorithm or (MASKABLE_PPO if isinstance(env.choice_space, spaces.Discrete) else PPO)
