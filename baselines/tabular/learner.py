"""What every tabular learner is: how it plays and learns, and what is shown of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from llm_coop_envs.baselines.learning import learning_of
from llm_coop_envs.baselines.tabular.settings import TabularSettings
from llm_coop_envs.core.base_policy import Policy
from llm_coop_envs.core.registry import find_scenario, scenarios
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.storage.arrays import Arrays
from llm_coop_envs.util.references import load

#: Seeds of learning episodes start here; those of the learning curve at half of it. Evaluations use smaller ones.
FIRST_LEARNING_SEED = 2**32
FIRST_CURVE_SEED = 2**31


class TabularLearner(ABC):
    """Learns from episode to episode; a scenario's `Learning` names its class.

    Attributes:
        settings_type: the class of its settings.
        shown: the measure that the learning curve shows, and what its axis says.
        title: of the learning curve; `{}` stands for the preset.
        learning: its settings.
        seed: the only source of randomness.
    """

    settings_type: ClassVar[type[TabularSettings]]
    shown: ClassVar[tuple[str, str]]
    title: ClassVar[str]

    def __init__(self, learning: Any, seed: int) -> None:
        self.learning = learning
        self.seed = seed

    def draws(self, episode: int) -> tuple[int, np.random.Generator]:
        """The environment's seed and the generator of an episode of learning, from the learner's seed alone."""
        sequence = np.random.SeedSequence([self.seed, episode])
        rng = np.random.default_rng(sequence)
        return FIRST_LEARNING_SEED + int(sequence.generate_state(1, np.uint32)[0]), rng

    def point(self) -> dict[str, float]:
        """The learning curve's measures now: means over episodes without exploration, on seeds of their own."""
        found = [self.greedy(FIRST_CURVE_SEED + k) for k in range(self.learning.curve_seeds)]
        return {name: float(np.mean([one[name] for one in found])) for name in found[0]}

    @abstractmethod
    def train(self, episode: int) -> float:
        """Play one episode (from 0; it decides seeds and rates) and learn from it; the mean sum of rewards."""

    @abstractmethod
    def greedy(self, seed: int) -> dict[str, float]:
        """Play an episode with the best known choices; its measures."""

    @abstractmethod
    def reference(self) -> tuple[str, float]:
        """What the curve is to be seen beside: its name, and its value."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """What has been learned."""

    @abstractmethod
    def load(self, arrays: Arrays) -> None:
        """Continue from what was learned.

        Raises:
            RunError: it is of another size.
        """

    @staticmethod
    @abstractmethod
    def player(arrays: Arrays, name: str) -> Policy:
        """A policy that plays what was learned, called `name` in errors."""


def learner_of(scenario: str) -> type[TabularLearner]:
    """A scenario's tabular learner.

    Raises:
        SettingsError: there is none.
        StudyError: there is no such scenario.
    """
    found: type[TabularLearner] | None = load(learning_of(find_scenario(scenario).name).tabular)
    if found is None:
        known = [name for name in scenarios() if learning_of(name).tabular is not None]
        why = f"has no tabular learner; these have one: {', '.join(known)}. Networks learn every scenario"
        raise SettingsError("scenario", scenario, why)
    return found
