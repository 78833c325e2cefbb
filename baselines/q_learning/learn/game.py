"""The repeated pricing game as arrays: profits of every combination of prices, and how states follow each other.

A combination of prices (an action) is a number whose digits in base m are the firms' price indices, firm 0 first. A
state is the latest `memory` actions, the latest one first; without memory there is one state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llm_coop_envs.bertrand.demand import Market
from llm_coop_envs.bertrand.rules import Equilibria, nearest, profit_table

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Game:
    """What is needed to play and to judge greedy strategies.

    Strategies are integer arrays (firms, states): the index of the price a firm asks in a state.

    Attributes:
        prices: (firms, m) each firm's prices, ascending.
        profits: (m^firms, firms) each firm's profit at every action.
        memory: how many past rounds a state holds.
        delta: each firm's discount factor.
        marks: Nash and joint-profit prices and profits.
    """

    prices: Floats
    profits: Floats
    memory: int
    delta: tuple[float, ...]
    marks: Equilibria

    @classmethod
    def of(
        cls, market: Market, marks: Equilibria, grids: Sequence[Sequence[float]], memory: int, delta: tuple[float, ...]
    ) -> Game:
        """Tabulate a market on grids of prices."""
        _, profits = profit_table(market, grids)
        return cls(np.array(grids), profits.reshape(-1, market.firms), memory, delta, marks)

    @property
    def firms(self) -> int:
        """How many firms play."""
        return len(self.prices)

    @property
    def points(self) -> int:
        """How many prices each firm has (m)."""
        return int(self.prices.shape[1])

    @property
    def actions(self) -> int:
        """How many combinations of prices there are."""
        return len(self.profits)

    @property
    def states(self) -> int:
        """How many states there are."""
        return int(self.actions**self.memory)

    def action(self, choices: ArrayLike) -> Ints:
        """The number of the action in which firm i asks its price `choices[..., i]`."""
        weights = self.points ** np.arange(self.firms - 1, -1, -1)
        return np.asarray(np.asarray(choices, dtype=np.int64) @ weights)

    def choices(self, action: ArrayLike) -> Ints:
        """The price indices (..., firms) of an action."""
        weights = self.points ** np.arange(self.firms - 1, -1, -1)
        return np.asarray(np.asarray(action, dtype=np.int64)[..., None] // weights % self.points)

    def after(self, state: ArrayLike, action: ArrayLike) -> Ints:
        """The state that follows when `action` is played in `state` (both broadcast)."""
        state, action = np.broadcast_arrays(np.asarray(state, dtype=np.int64), np.asarray(action, dtype=np.int64))
        if self.memory == 0:
            return np.zeros_like(action)
        older = self.actions ** (self.memory - 1)
        return np.asarray(action * older + state // self.actions)

    def misread(self, state: ArrayLike) -> Ints:
        """The state the authors' analysis begins with in place of `state`, if it has two rounds of memory.

        Their code numbers states with the latest round first, but when it begins from a number (`reshape` in
        `computeQCell`, `computeIndividualIR`, `ComputeConvResults`) it deals the digits out firm by firm: firm i is
        given digits i k to i k + k - 1 as its prices, k being the memory. With one round that is the same.
        """
        digits = self.points ** np.arange(self.firms * self.memory - 1, -1, -1)
        read = np.asarray(state, dtype=np.int64)[..., None] // digits % self.points
        order = np.arange(self.firms * self.memory).reshape(self.firms, self.memory).T.ravel()
        return np.asarray(read[..., order] @ digits)

    def price_of(self, choices: ArrayLike) -> Floats:
        """The prices (..., firms) at price indices of the same shape."""
        return self.prices[np.arange(self.firms), np.asarray(choices, dtype=np.int64)]

    def nearest_to(self, prices: Sequence[float]) -> Ints:
        """Each firm's price index closest to a given price."""
        return np.array([nearest(grid.tolist(), price) for grid, price in zip(self.prices, prices, strict=True)])
