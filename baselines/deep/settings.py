"""What is trained, on what, and how: one frozen description, and the defaults of each scenario."""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.settings import check_bool, check_choice, check_int, plain, suggestion
from llm_coop_envs.errors import SettingsError

SCENARIOS = ("kbc", "bertrand", "evacuation")
PPO, MASKABLE_PPO, DQN = "ppo", "maskable_ppo", "dqn"
ALGORITHMS = (PPO, DQN, MASKABLE_PPO)
SAMPLE, BEST = "sample", "best"

#: The algorithm where none is named: masks matter in the evacuation only, where a wall or a person stops a step.
DEFAULT_ALGORITHM = {"kbc": PPO, "bertrand": PPO, "evacuation": MASKABLE_PPO}
#: The measure of an episode (`metrics`) that tells best how well a scenario goes.
MEASURE = {"kbc": "mean_last", "bertrand": "profit_gain_last", "evacuation": "mean_round"}

_COPIES = {"kbc": 8, "bertrand": 8, "evacuation": 8}
_ON_POLICY: Mapping[str, Mapping[str, Any]] = {
    "kbc": {"n_steps": 32, "batch_size": 512, "n_epochs": 4, "learning_rate": 1e-3, "gamma": 1.0, "ent_coef": 0.0},
    "bertrand": {"n_steps": 256, "batch_size": 512, "n_epochs": 8, "learning_rate": 3e-4, "gamma": 0.95},
    "evacuation": {
        "n_steps": 32,
        "batch_size": 1024,
        "n_epochs": 8,
        "learning_rate": 1e-3,
        "gamma": 1.0,
        "ent_coef": 0.05,
    },
}
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
_DISCOUNT = {"kbc": 1.0, "bertrand": 0.95, "evacuation": 1.0}


@dataclass(frozen=True, kw_only=True)
class TrainSettings:
    """One training.

    Attributes:
        env: the scenario: `"kbc"`, `"bertrand"` or `"evacuation"`.
        algo: `"ppo"`, `"dqn"` or `"maskable_ppo"`; `None` takes PPO, and MaskablePPO for the evacuation.
        preset: a preset of the scenario.
        settings: settings of the scenario by name; they win over the preset's.
        steps: how long to train. A step is one row of one step: with 8 copies of 100 players each step of the
            environments counts 800.
        seed: of everything: the network's first weights, its draws, and all episodes.
        copies: environments side by side.
        reward_scale: rewards are multiplied by it for learning (never in what is reported). `None`: 1 / `unit` for
            numbers, 1 / (joint-profit minus Nash profit) for prices, 0.1 for the evacuation.
        shaping: in the evacuation, add what a step gains in distance to the nearest exit to the reward for learning,
            as a potential that leaves the best policies what they are; in other scenarios without effect.
        play: how the trained policy decides: `"sample"` from its chances or `"best"`; `None`: best for DQN, else
            sample.
        every: steps between evaluations, each with a checkpoint; `None`: a tenth of `steps`.
        episodes: episodes of an evaluation, with seeds 0, 1, ...
        hyper: arguments of the algorithm that replace the scenario's defaults. The entropy bonus `ent_coef` of PPO
            falls linearly from this value to 0 at the end.
    """

    env: str
    algo: str | None = None
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
        for name, known in (("env", SCENARIOS), ("algo", ALGORITHMS)):
            value = getattr(self, name)
            if not (name == "algo" and value is None) and value not in known:
                raise SettingsError(name, value, f"is unknown; {suggestion(str(value), known)}")
        set_ = object.__setattr__
        set_(self, "algo", self.algo or DEFAULT_ALGORITHM[self.env])
        check_int(self, "steps", 1)
        check_int(self, "seed", 0)
        set_(self, "copies", _COPIES[self.env] if self.copies is None else self.copies)
        check_int(self, "copies", 1)
        check_bool(self, "shaping")
        set_(self, "play", self.play or (BEST if self.algo == DQN else SAMPLE))
        check_choice(self, "play", (SAMPLE, BEST))
        set_(self, "every", max(1, self.steps // 10) if self.every is None else self.every)
        check_int(self, "every", 1)
        check_int(self, "episodes", 1)
        set_(self, "settings", dict(self.settings))
        self.environment()
        if self.reward_scale is None:
            set_(self, "reward_scale", self._default_scale())
        scale = self.reward_scale
        if isinstance(scale, bool) or not isinstance(scale, int | float) or not math.isfinite(scale) or scale <= 0:
            raise SettingsError("reward_scale", scale, "must be a finite number above 0")
        set_(self, "hyper", {**self._default_hyper(), **self.hyper})
        if self.algo != DQN:
            self._check_rollout()

    def environment(self, *, record: bool = False) -> ScenarioEnv:
        """A new environment.

        Raises:
            SettingsError: as the environment does.
        """
        module = importlib.import_module(f"llm_coop_envs.{self.env}_v0")
        made: ScenarioEnv = module.parallel_env(preset=self.preset, record=record, **self.settings)
        return made

    @cached_property
    def potential(self) -> tuple[str, float] | None:
        """The column and factor of the shaping, see `vecenv`: a round per cell's width of distance."""
        if self.env != "evacuation" or not self.shaping:
            return None
        room = self.environment().settings.room
        diagonal = math.hypot(room.rows - 1, room.cols - 1)
        return "nearest_distance", -float(self.reward_scale or 1.0) * diagonal

    def to_json(self) -> dict[str, Any]:
        """All fields as plain data that `TrainSettings(**data)` accepts again."""
        return {f.name: plain(getattr(self, f.name)) for f in fields(self)}

    def _default_scale(self) -> float:
        settings: Any = self.environment().settings
        if self.env == "kbc":
            return 1.0 / float(settings.unit)
        if self.env == "bertrand" and settings.reward == "profit":
            gaps = [j - n for j, n in zip(settings.marks.joint_profit, settings.marks.nash_profit, strict=True)]
            return float(len(gaps) / sum(gaps))
        return 0.1 if self.env == "evacuation" else 1.0

    def _default_hyper(self) -> dict[str, Any]:
        if self.algo == DQN:
            return {**_OFF_POLICY, "gamma": _DISCOUNT[self.env]}
        hyper = dict(_ON_POLICY[self.env])
        if self.env == "evacuation" and getattr(self.environment().settings, "control", "") == "move":
            # A round has several steps here, and in most of them a player is off turn.
            hyper |= {"n_steps": 128, "gamma": 0.999, "gae_lambda": 0.9, "n_epochs": 4}
        return hyper

    def _check_rollout(self) -> None:
        for name in ("n_steps", "batch_size", "n_epochs"):
            value = self.hyper.get(name, 1)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise SettingsError(f"hyper.{name}", value, "must be a whole number, 1 or more")


def changed(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
    """The fields in which two trainings differ so that one cannot go on with the other."""
    may_differ = ("steps", "every", "episodes", "play")
    return [name for name in one if name not in may_differ and one[name] != other.get(name)]
