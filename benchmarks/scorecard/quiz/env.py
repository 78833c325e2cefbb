"""The quiz: a player reads a scenario's observation and answers questions about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from llm_coop_envs.benchmarks.scorecard.tasks import ScorecardTasks, find_scorecard_tasks
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.hooks import Over, Stage
from llm_coop_envs.interface.question import Number
from llm_coop_envs.interface.slots import Slots

LARGEST_ANSWER = 1e9


@dataclass(frozen=True, kw_only=True)
class QuizSettings(ScenarioSettings):
    """Settings of the quiz.

    Attributes:
        about: the scenario whose rules are asked about; it must bring questions (`Scenario.scorecard`).
    """

    talk: bool = False
    about: str = ""

    def __post_init__(self) -> None:
        """Check the fields."""
        super().__post_init__()
        if self.talk:
            raise SettingsError("talk", True, "nobody else takes part in a quiz; set talk=False")
        _ = self.about and self.tasks  # settings that name no scenario yet may be looked at

    @property
    def tasks(self) -> ScorecardTasks:
        """The tasks of the scenario in question, whose questions are asked."""
        tasks = find_scorecard_tasks(self.about) if self.about else None
        if tasks is None:
            raise SettingsError("about", self.about, "is no scenario that brings questions")
        return tasks


@dataclass(frozen=True, kw_only=True)
class QuizSlots(Slots):
    """What whoever is asked may know.

    Attributes:
        told: what a player of the scenario is told.
        asked: the question.
    """

    told: str
    asked: str


class QuizEnv(ScenarioEnv):
    """One player, one question a round, all about a situation that is drawn when the episode begins.

    Choice: a number (Box). The answer is right if it is within the question's tolerance of the right one and legal.

    Reward: 1 for each right answer.

    Events: `round` for each question: `asked`, `answer`, `right`, `correct`.
    """

    metadata: dict[str, Any] = {**ScenarioEnv.metadata, "name": "quiz_v0", "render_fps": 2}
    settings_type = QuizSettings
    slots_type = QuizSlots
    role = "reader"
    home = Path(__file__).parent
    settings: QuizSettings
    kept = ("drawn",)

    def _setup(self) -> None:
        _ = self.settings.tasks
        self.n_players = 1
        self.feature_names = ("question",)
        self._feature_bounds = (0.0, LARGEST_ANSWER)

    def _choice_space(self) -> spaces.Box:
        return spaces.Box(-LARGEST_ANSWER, LARGEST_ANSWER, (1,), np.float64)

    def _begin(self, options: Mapping[str, Any]) -> None:
        self.drawn = int(self.np_random.integers(2**31))

    @property
    def _items(self) -> Any:
        return self.settings.tasks.drawn_questions(self.drawn)

    def _next_stage(self) -> Stage | Over:
        if self.round == len(self._items):
            return Over("all questions were asked")
        self.round += 1
        return Stage("act", [self._everyone])

    def _question(self, index: int) -> Number:
        item = self._items[self.round - 1]
        return Number(name="answer", low=item.low, high=item.high, integer=item.integer)

    def _clean(self, players: Any, values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        question = self._question(0)
        legal = (
            (values >= question.low)
            & (values <= question.high)
            & ((values == np.round(values)) | (not question.integer))
        )
        self._flagged = not legal[0]
        return np.where(legal, values, question.low), ~legal

    def _apply(self, phase: str, players: Any, choices: NDArray[Any]) -> None:
        item, answer = self._items[self.round - 1], float(choices[0])
        correct = not self._flagged and abs(answer - item.right) <= item.tolerance
        self._rewards += float(correct)
        if self.record:
            self.emit("round", asked=item.asked, answer=answer, right=item.right, correct=correct)

    def _features(self) -> NDArray[np.float32]:
        return np.array([[1.0 + self.round]], dtype=np.float32)

    def _slots(self, index: int, common: dict[str, Any]) -> QuizSlots:
        item = self._items[min(max(self.round, 1), len(self._items)) - 1]
        return QuizSlots(told=item.told, asked=item.asked, **common)
