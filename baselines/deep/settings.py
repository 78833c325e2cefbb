"""The settings of a training, with defaults from the scenario's `Learning`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from gymnasium import spaces

from llm_coop_envs.baselines.deep.choices import POINTS, Choices
from llm_coop_envs.baselines.learning import (
    DQN,
    INDEPENDENT,
    MASKABLE_PPO,
    PPO,
    SAC,
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

ALGORITHMS = (PPO, DQN, MASKABLE_PPO, SAC)
SAMPLE, BEST = "sample", "best"
#: Hidden layers of SAC's actor: ours, and those of Frick, arXiv 2604.15825, which take four times as long.
SIZES: Mapping[str, tuple[int, int]] = {"small": (256, 256), "published": (1024, 1024)}
#: Fields that may change when a training is continued.
MAY_CHANGE = ("steps", "every", "episodes", "play")

_OFF_POLICY: Mapping[str, Mapping[str, Any]] = {
    DQN: {
        "batch_size": 256,
        "buffer_size": 100_000,
        "exploration_final_eps": 0.02,
        "exploration_fraction": 0.5,
        "learning_rate": 5e-4,
        "learning_starts": 5_000,
        "target_update_interval": 2_000,
    },
    # As in Frick, arXiv 2604.15825, apart from the actor's size.
    SAC: {
        "batch_size": 128,
        "buffer_size": 100_000,
        "critic_rate": 3e-3,
        "learning_rate": 3e-2,
        "learning_starts": 512,
        "max_grad_norm": 10.0,
        "mean_rate": 1e-2,
        "size": "small",
        "target_entropy": -1.0,
        "tau": 1e-3,
        "temperature_rate": 3e-3,
    },
}


@dataclass(frozen=True, kw_only=True)
class TrainSettings(Settings):
    """One training.

    Attributes:
        env: the scenario's name.
        algo: `"ppo"`, `"dqn"`, `"maskable_ppo"` or `"sac"` (average reward, for choices from a range of numbers);
            `None`: the scenario's default, see `Learning`.
        networks: `"shared"`, one network that learns from all players, or `"independent"`, a learner for each seat;
            `None`: the scenario's default.
        preset: a preset of the scenario.
        settings: settings of the scenario by name, which replace the preset's.
        steps: length of the training. A step is one row of one step: with 8 copies of 100 players, each step of the
            environments counts 800.
        seed: seed of the network's first weights, its draws, and all episodes.
        copies: number of environments that run side by side; `None`: 1 for SAC, which learns once a step, else the
            scenario's default.
        reward_scale: factor on rewards while learning, not in reports; `None`: the scenario's default.
        shaping: add the scenario's potential to the reward while learning, which leaves the best policies the same; no
            effect if the scenario has none.
        play: how the trained policy decides: `"sample"` from its probabilities or `"best"`; `None`: best for DQN
            and SAC, sample otherwise.
        every: steps between evaluations, each with a checkpoint; `None`: a tenth of `steps`.
        episodes: number of episodes of an evaluation, with seeds 0, 1, ...
        hyper: arguments of the algorithm that replace the scenario's defaults. The entropy bonus `ent_coef` of PPO
            falls linearly from this value to 0 at the end. `size` of SAC is one of `SIZES`.
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
        set_(self, "networks", self.networks or self.learning.networks)
        check_choice(self, "networks", (SHARED, INDEPENDENT))
        set_(self, "settings", dict(self.settings))
        env = self.environment()
        set_(self, "algo", self.algo or default_algorithm(env))
        Choices(env, self.points)
        if self.copies is None:
            set_(self, "copies", 1 if self.algo == SAC else self.learning.copies)
        check_int(self, "copies", 1)
        set_(self, "play", self.play or (BEST if self.algo in _OFF_POLICY else SAMPLE))
        check_choice(self, "play", (SAMPLE, BEST))
        set_(self, "every", max(1, self.steps // 10) if self.every is None else self.every)
        check_int(self, "every", 1)
        if self.reward_scale is None:
            set_(self, "reward_scale", self.learning.reward_scale(env.settings))
        check_number(self, "reward_scale", 0.0, above=True)
        own = _OFF_POLICY.get(str(self.algo)) or self.learning.rollout(env.settings)
        discount = {} if self.algo == SAC else {"gamma": self.learning.discount}
        set_(self, "hyper", {**discount, **own, **(self._rhythm if self.algo == DQN else {}), **self.hyper})
        if self.algo not in _OFF_POLICY:
            for name in ("n_steps", "batch_size", "n_epochs"):
                require_int(f"hyper.{name}", self.hyper.get(name, 1), 1)
        size = self.hyper.get("size")
        if self.algo == SAC and size not in SIZES:
            raise SettingsError("hyper.size", size, f"is unknown; {suggestion(str(size), SIZES)}")

    @property
    def _rhythm(self) -> dict[str, int]:
        """How often DQN learns: from a batch for every 8 rows of a player, but with few copies after every 4th step."""
        copies = int(self.copies or 1)
        steps = max(1, 32 // max(copies, 8))
        return {"gradient_steps": max(4, steps * copies // 8), "train_freq": steps}

    @property
    def points(self) -> int | None:
        """How many outputs stand for a range of numbers; `None`: one, a number itself."""
        return None if self.algo == SAC else POINTS

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
    return learning.algorithm or (PPO if isinstance(env.choice_space, spaces.Box) else MASKABLE_PPO)
