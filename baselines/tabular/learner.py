"""The base classes of tabular learners and of the players of their tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from llm_coop_envs.baselines.learning import learning_of
from llm_coop_envs.baselines.tabular.settings import TabularSettings
from llm_coop_envs.core.base_policy import Policy
from llm_coop_envs.core.policy import Episode
from llm_coop_envs.core.registry import find_scenario, scenarios
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.storage.arrays import Arrays
from llm_coop_envs.util.references import load

#: Learning episodes use environment seeds from here on, the learning curve those from half of it on. Evaluations use
#: smaller seeds.
FIRST_LEARNING_SEED = 2**32
FIRST_CURVE_SEED = 2**31


class TablePlayer(Policy):
    """Plays the best choices of a learned table and says nothing.

    Attributes:
        scenario: the name of the scenario it plays.
        arrays: the learned table.
        name: the table's name in errors.
    """

    waits = False
    scenario: ClassVar[str]

    def __init__(self, arrays: Arrays, name: str) -> None:
        self.arrays = arrays
        self.name = name

    def begin(self, episode: Episode) -> None:
        """Start an episode.

        Raises:
            SettingsError: another scenario is played.
        """
        super().begin(episode)
        if not isinstance(episode.settings, find_scenario(self.scenario).settings_type):
            raise self.refusal(f"plays {self.scenario}, not {episode.scenario}")

    def refusal(self, reason: str) -> SettingsError:
        """The error that this table cannot play an episode."""
        return SettingsError("policy", f"tabular:{self.name}", reason)


class TabularLearner(ABC):
    """Learns a table episode by episode. A scenario names its class in `Learning.tabular`.

    Attributes:
        settings_type: the class of its settings.
        player: the class that plays its tables.
        shown: the measure in the learning curve, and the label of its axis.
        title: the title of the learning curve; `{}` stands for the preset.
        learning: the settings.
        seed: the only source of randomness.
    """

    settings_type: ClassVar[type[TabularSettings]]
    player: ClassVar[type[TablePlayer]]
    curve_measure: ClassVar[tuple[str, str]]
    title: ClassVar[str]

    def __init__(self, learning: Any, seed: int) -> None:
        self.learning = learning
        self.seed = seed

    def draws(self, episode: int) -> tuple[int, np.random.Generator]:
        """Derive a learning episode's environment seed and its generator from the learner's seed."""
        sequence = np.random.SeedSequence([self.seed, episode])
        rng = np.random.default_rng(sequence)
        return FIRST_LEARNING_SEED + int(sequence.generate_state(1, np.uint32)[0]), rng

    def point(self) -> dict[str, float]:
        """Measure the current table: means over `curve_seeds` episodes without exploration."""
        episodes = [self.greedy(FIRST_CURVE_SEED + k) for k in range(self.learning.curve_seeds)]
        return {name: float(np.mean([measures[name] for measures in episodes])) for name in episodes[0]}

    @abstractmethod
    def train(self, episode: int) -> float:
        """Play learning episode number `episode` (from 0) and learn from it. Returns the mean sum of rewards."""

    @abstractmethod
    def greedy(self, seed: int) -> dict[str, float]:
        """Play an episode without exploration and measure it."""

    @abstractmethod
    def reference(self) -> tuple[str, float]:
        """The name and the value of the line that the learning curve is drawn beside."""

    @abstractmethod
    def arrays(self) -> Arrays:
        """The learned table."""

    @abstractmethod
    def load(self, arrays: Arrays) -> None:
        """Continue from a learned table.

        Raises:
            RunError: the table has another size.
        """


def learner_of(scenario: str) -> type[TabularLearner]:
    """Look up a scenario's tabular learner.

    Raises:
        SettingsError: the scenario has none.
        StudyError: there is no such scenario.
    """
    learner: type[TabularLearner] | None = load(learning_of(find_scenario(scenario).name).tabular)
    if learner is None:
        names = [name for name in scenarios() if learning_of(name).tabular is not None]
        reason = f"has no tabular learner; these have one: {', '.join(names)}. Networks learn every scenario"
        raise SettingsError("scenario", scenario, reason)
    return learner
