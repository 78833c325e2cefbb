"""The choices that a network's outputs stand for, one choice per output.

With discrete choices, output k is choice k. Where a choice is a number in a range, outputs stand for the numbers of
`Learning.numbers`, or else for equally spaced numbers from the lowest to the highest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from llm_coop_envs.baselines.learning import learning_of, scenario_name
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.errors import SettingsError

#: The number of equally spaced numbers that stand for a range if the scenario names none.
POINTS = 101


class Choices:
    """The choices of one environment, numbered as the `n` outputs of a network.

    Raises:
        SettingsError: choices of this kind cannot be learned.
    """

    def __init__(self, game: ScenarioEnv, points: int = POINTS) -> None:
        space = game.choice_space
        self._numbers: NDArray[np.float64] | None = None
        if isinstance(space, spaces.Discrete):
            self.n = int(space.n)
            return
        if not isinstance(space, spaces.Box) or space.shape != (1,):
            name = scenario_name(game)
            raise SettingsError("env", name, "cannot be learned: its choices are neither listed nor one number each")
        row = np.linspace(float(space.low[0]), float(space.high[0]), points)
        own = learning_of(scenario_name(game)).numbers(game.settings)
        self._numbers = np.broadcast_to(row, (game.n_players, points)) if own is None else own
        self.n = self._numbers.shape[1]

    def values(self, outputs: NDArray[np.integer[Any]]) -> NDArray[Any]:
        """The choices of all players, of one game or of several, (..., players), from one output each."""
        if self._numbers is None:
            return outputs
        numbers: NDArray[Any] = self._numbers[np.arange(outputs.shape[-1]), outputs]
        return numbers

    def value(self, player: int, output: int) -> float | int:
        """The choice of one player."""
        return output if self._numbers is None else float(self._numbers[player, output])
