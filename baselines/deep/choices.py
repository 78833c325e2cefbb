"""What the outputs of a network stand for: one choice each, also where an environment takes any number.

With discrete choices output k is choice k. Where a choice is a number in a range, the outputs stand for numbers on a
grid: in price competition for the prices of the settings' own grid (`grid_points`, `grid_margin`), lifted or lowered
into the range that is allowed; otherwise for equally spaced numbers from the lowest to the highest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from llm_coop_envs.core.array_env import ArrayEnv

#: How many equally spaced numbers stand for a range, where the settings have no grid of their own.
POINTS = 101


class Choices:
    """The choices of one environment, as a network numbers them.

    Args:
        game: the environment.
        points: how many numbers stand for a range without a grid of its own.

    Attributes:
        n: how many outputs a network needs.
    """

    def __init__(self, game: ArrayEnv, points: int = POINTS) -> None:
        space = game.choice_space
        self._numbers: NDArray[np.float64] | None = None
        if isinstance(space, spaces.Discrete):
            self.n = int(space.n)
            return
        grids = getattr(game.settings, "grids", None)
        if grids is None:
            row = np.linspace(float(space.low[0]), float(space.high[0]), points)
            self._numbers = np.broadcast_to(row, (game.n_players, points))
        else:
            floors = np.array(game.settings.floors)[:, None]
            self._numbers = np.clip(np.array(grids), floors, game.settings.cap)
        self.n = self._numbers.shape[1]

    def values(self, outputs: NDArray[np.int64]) -> NDArray[Any]:
        """The choices of all players, from one output each; the form `advance` takes."""
        if self._numbers is None:
            return outputs
        return self._numbers[np.arange(len(outputs)), outputs]

    def value(self, player: int, output: int) -> float | int:
        """One player's choice."""
        return output if self._numbers is None else float(self._numbers[player, output])
