"""The repeated pricing game as arrays: the profits of every combination of prices, and the next state of every state.

A combination of prices (an action) is a number whose digits in base m are the firms' price indices, firm 0 first. With
m = 15, prices 3 and 7 of two firms are action 3 * 15 + 7 = 52. A state is the latest `memory` actions, the latest one
first; without memory there is one state.
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
    """A repeated pricing game, in which strategies are played and evaluated.

    Strategies are integer arrays (firms, states): the index of the price a firm asks in a state.

    Attributes:
        prices: (firms, m) each firm's prices, ascending.
        profits: (m^firms, firms) each firm's profit at every action.
        memory: number of past rounds in a state.
        delta: each firm's discount factor.
        equilibria: Nash and joint-profit prices and profits.
    """

    prices: Floats
    profits: Floats
    memory: int
    delta: tuple[float, ...]
    equilibria: Equilibria

    @classmethod
    def tabulate(
        cls,
        market: Market,
        equilibria: Equilibria,
        grids: Sequence[Sequence[float]],
        memory: int,
        delta: tuple[float, ...],
    ) -> Game:
        """Tabulate a market on grids of prices."""
        _, profits = profit_table(market, grids)
        return cls(np.array(grids), profits.reshape(-1, market.firms), memory, delta, equilibria)

    @property
    def firms(self) -> int:
        """The number of firms."""
        return len(self.prices)

    @property
    def points(self) -> int:
        """The number of prices of each firm (m)."""
        return int(self.prices.shape[1])

    @property
    def actions(self) -> int:
        """The number of combinations of prices."""
        return len(self.profits)

    @property
    def states(self) -> int:
        """The number of states."""
        return int(self.actions**self.memory)

    def action(self, choices: ArrayLike) -> Ints:
        """The action in which firm i asks its price number `choices[..., i]`."""
        weights = self.points ** np.arange(self.firms - 1, -1, -1)
        return np.asarray(np.asarray(choices, dtype=np.int64) @ weights)

    def choices(self, action: ArrayLike) -> Ints:
        """The price indices (..., firms) of an action."""
        weights = self.points ** np.arange(self.firms - 1, -1, -1)
        return np.asarray(np.asarray(action, dtype=np.int64)[..., None] // weights % self.points)

    def next_state(self, state: ArrayLike, action: ArrayLike) -> Ints:
        """The state that follows when `action` is played in `state` (both broadcast)."""
        state, action = np.broadcast_arrays(np.asarray(state, dtype=np.int64), np.asarray(action, dtype=np.int64))
        if self.memory == 0:
            return np.zeros_like(action)
        older = self.actions ** (self.memory - 1)
        return np.asarray(action * older + state // self.actions)

    def misread(self, state: ArrayLike) -> Ints:
        """The state that the authors' analysis reads in place of `state` if the memory is two rounds.

        Their code numbers states with the latest round first. But when it reads a number (`reshape` in `computeQCell`,
        `computeIndividualIR`, `ComputeConvResults`), it takes the digits firm by firm: with a memory of k rounds, firm
        i gets digits i k to i k + k - 1 as its prices. With a memory of one round both readings are the same.
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
