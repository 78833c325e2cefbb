"""The choices that a network's outputs stand for, one choice per output.

With discrete choices, output k is choice k. Where a choice is a number in a range, outputs stand for the numbers of
`Learning.numbers`, or else for equally spaced numbers from the lowest to the highest; or there is one output, itself a
number from -1 for the lowest to 1 for the highest. Where each phase asks something else, the outputs of a phase are the
first ones; of a number that may be passed the first is to pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from llm_coop_envs.baselines.learning import learning_of, scenario_name
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.question import ILLEGAL, Number, Options, Question

#: What is no move, by the kind of array.
ILLEGAL_OF: Mapping[str, Any] = {"O": ILLEGAL, "i": -1, "f": np.nan}
#: The number of equally spaced numbers that stand for a range if the scenario names none.
POINTS = 101


def moves_by_phase(game: ScenarioEnv, points: int) -> dict[str, NDArray[Any]]:
    """The moves that outputs stand for in each phase, where phases ask options or numbers and one may be passed."""
    asked = {phase: by_role.get("") for phase, by_role in game.questions.items()}
    if not any(isinstance(question, Number) and question.passing for question in asked.values()):
        return {}
    if {TALK, *asked} != {TALK, *game.phases} or not all(isinstance(q, Options | Number) for q in asked.values()):
        return {}
    return {phase: _moves(question, points) for phase, question in asked.items()}


def _moves(question: Question | None, points: int) -> NDArray[Any]:
    if isinstance(question, Options):
        return np.arange(max(option.choice for option in question.options) + 1)
    assert isinstance(question, Number), "nothing else is asked"
    spaced = np.linspace(question.low, question.high, points - question.passing)
    numbers = [value for _, value in question.listed] or spaced.tolist()
    if question.integer:
        numbers = sorted({float(round(value)) for value in numbers})
    if question.passing:
        return np.array([None, *numbers], dtype=object)
    return np.array([question.choice(value) for value in numbers])


class Choices:
    """The choices of one environment, numbered as the `n` outputs of a network.

    Args:
        game: the environment.
        points: how many outputs stand for a range; `None`: one, a number from -1 to 1.

    Attributes:
        n: the number of choices, 1 for a number from -1 to 1.
        space: what a learner chooses from.

    Raises:
        SettingsError: choices of this kind cannot be learned.
    """

    def __init__(self, game: ScenarioEnv, points: int | None = POINTS) -> None:
        space, name = game.choice_space, scenario_name(game)
        self._moves = {} if points is None else moves_by_phase(game, points)
        self._numbers: NDArray[np.float64] | None = None
        self._ends: tuple[float, float] | None = None
        if isinstance(space, spaces.Discrete):
            if points is None:
                raise SettingsError("env", name, "lists its choices with these settings; needed is a range of numbers")
            self.n = int(space.n)
        elif self._moves:
            self.n = max(map(len, self._moves.values()))
        elif not isinstance(space, spaces.Box) or space.shape != (1,):
            reason = "cannot be learned: its choices are neither listed nor one number each, which may be passed"
            raise SettingsError("env", name, reason)
        elif points is None:
            self._ends = float(space.low[0]), float(space.high[0])
            self.n = 1
        else:
            row = np.linspace(float(space.low[0]), float(space.high[0]), points)
            own = learning_of(name).numbers(game.settings)
            self._numbers = np.broadcast_to(row, (game.n_players, points)) if own is None else own
            self.n = self._numbers.shape[1]
        self.space: spaces.Space[Any] = (
            spaces.Discrete(self.n) if self._ends is None else spaces.Box(-1.0, 1.0, (1,), np.float32)
        )

    def masks(self, phase: str, masks: NDArray[np.int8] | None, turn: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which outputs are legal in a phase, (players, n), from the environment's masks of the players on turn."""
        legal = np.zeros((len(turn), self.n), dtype=np.bool_)
        legal[turn, : len(self._moves.get(phase, ())) or self.n] = True
        legal[~turn, 0] = True
        if masks is not None:
            legal[:] = False
            legal[:, : masks.shape[1]] = masks
        return legal

    def values(self, outputs: NDArray[Any], phase: str = "") -> NDArray[Any]:
        """The choices of all players, of one game or of several, (..., players), from one output each."""
        if phase in self._moves:
            moves = self._moves[phase]  # what stands beyond them is replaced by the environment
            chosen: NDArray[Any] = moves[np.minimum(outputs, len(moves) - 1)]
            chosen[outputs >= len(moves)] = ILLEGAL_OF[moves.dtype.kind]
            return chosen
        if self._ends is not None:
            low, high = self._ends
            share = (outputs.astype(np.float64) + 1) / 2
            between: NDArray[Any] = low * (1 - share) + high * share  # exactly the ends for -1 and 1
            return between
        if self._numbers is None:
            return outputs
        numbers: NDArray[Any] = self._numbers[np.arange(outputs.shape[-1]), outputs]
        return numbers

    def value(self, player: int, output: float, phase: str = "") -> Any:
        """The choice of one player."""
        if phase in self._moves:
            return self.values(np.array([output]), phase)[0]
        if self._ends is not None:
            return float(self.values(np.array(output)))
        return int(output) if self._numbers is None else float(self._numbers[player, int(output)])
