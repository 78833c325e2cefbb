"""What is trained, on what, and how; what is left open is filled in from what the scenario says of learning."""

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
#: What a training may be continued with other values of.
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
        algo: `"ppo"`, `"dqn"` or `"maskable_ppo"`; `None` takes the scenario's own, see `Learning`.
        networks: `"shared"`, one network that learns from all players at once, or `"independent"`, a learner of its own
            for each seat; `None` takes the scenario's own.
        preset: a preset of the scenario.
        settings: settings of the scenario by name; they win over the preset's.
        steps: how long to train. A step is one row of one step: with 8 copies of 100 players each step of the
            environments counts 800.
        seed: of everything: the network's first weights, its draws, and all episodes.
        copies: environments side by side.
        reward_scale: rewards are multiplied by it for learning (never in what is reported). `None` takes the
            scenario's own.
        shaping: add the scenario's potential to the reward for learning, which leaves the best policies what they are;
            without effect where it has none.
        play: how the trained policy decides: `"sample"` from its chances or `"best"`; `None`: best for DQN, else
            sample.
        every: steps between evaluations, each with a checkpoint; `None`: a tenth of `steps`.
        episodes: episodes of an evaluation, with seeds 0, 1, ...
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
        """Check every field, the scenario's settings included, and fill in the defaults."""
        for name, known in (("env", scenarios()), ("algo", ALGORITHMS)):
            value = getattr(self, name)
            if not (name == "algo" and value is None) and value not in known:
                raise SettingsError(name, value, f"is unknown; {suggestion(str(value), known)}")
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
        """A new environment.

        Raises:
            SettingsError: as the environment does.
        """
        return find_scenario(self.env).environment(preset=self.preset, record=record, **self.settings)

    @property
    def learning(self) -> Learning:
        """What the scenario says of learning."""
        return learning_of(self.env)

    @cached_property
    def potential(self) -> tuple[str, float] | None:
        """The column and factor of the shaping, see `vecenv`."""
        found = self.learning.potential(self.environment().settings) if self.shaping else None
        return None if found is None else (found[0], found[1] * float(self.reward_scale or 1.0))

    @property
    def identity(self) -> dict[str, Any]:
        """What decides the weights, up to where training stops; `"shared"` goes without saying, as it always did."""
        left_out = (*MAY_CHANGE, *(("networks",) if self.networks == SHARED else ()))
        return {name: value for name, value in self.to_json().items() if name not in left_out}


def default_algorithm(env: ScenarioEnv) -> str:
    """The algorithm where none is named; MaskablePPO is one where masks matter."""
    learning = learning_of(scenario_name(env))
    return learning.algorithm or (MASKABLE_PPO if isinstance(env.choice_space, spaces.Discrete) else PPO)
