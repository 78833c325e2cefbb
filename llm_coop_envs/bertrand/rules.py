"""The rules of a round: equilibria, price grids, outcomes, the profit gain, and prices held together.

Demand and equilibrium prices live in `demand.py` and `equilibrium.py`. Everything here is a pure function of
plain values.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.bertrand.demand import Market
from llm_coop_envs.bertrand.equilibrium import joint_prices, nash_prices
from llm_coop_envs.errors import SettingsError

Floats = NDArray[np.float64]

ROUNDING = 1e-6
"""How far a position may miss an edge of the band by rounding alone: with the edge 0.1, 0.0999999999 is inside."""


@dataclass(frozen=True, kw_only=True)
class Equilibria:
    """The one-shot Nash and the joint-profit (cartel) solution of a market; one value per firm in each tuple.

    Outcomes are measured on the scale between the two. A single firm's Nash price is the monopoly price, as is its
    joint-profit price; its prices and profits are measured from 0, as shares of the monopoly's.

    Attributes:
        nash: one-shot Nash prices.
        joint: prices that maximise the firms' joint profit.
        nash_profit: each firm's profit when all ask their Nash price (never truncated).
        joint_profit: the same at the joint-profit prices.
    """

    nash: tuple[float, ...]
    joint: tuple[float, ...]
    nash_profit: tuple[float, ...]
    joint_profit: tuple[float, ...]

    @functools.cached_property
    def zero(self) -> tuple[float, ...]:
        """The prices at position 0: the Nash prices, or 0 for a single firm."""
        return self.nash if len(self.nash) > 1 else (0.0,)

    @functools.cached_property
    def zero_profit(self) -> tuple[float, ...]:
        """The profits at gain 0: the Nash profits, or 0 for a single firm."""
        return self.nash_profit if len(self.nash) > 1 else (0.0,)

    @functools.cached_property
    def mean_gap(self) -> float:
        """Mean joint profit minus mean Nash profit: the denominator of the profit gain."""
        return (math.fsum(self.joint_profit) - math.fsum(self.zero_profit)) / len(self.nash)

    @property
    def losers(self) -> list[int]:
        """The firms that earn less at the joint-profit prices than at the Nash prices."""
        return [i for i, (low, high) in enumerate(zip(self.nash_profit, self.joint_profit, strict=True)) if high < low]


@dataclass(frozen=True, kw_only=True)
class Band:
    """When a round's prices count as held together: close to each other, and between Nash and joint-profit price.

    This is the definition in the text of Wu et al. 2024, which gives no number for "close". They observe no collusion
    at the Nash prices, so the `low` of the settings lies above 0 by default; 0 is their interval taken alone. With
    low 0.1, high 1 and tolerance 0.1 the positions (0.5, 0.55) are held together, (0.5, 0.7) and (0.05, 0.05) are not.

    Attributes:
        low: the lowest position of a price on the scale from Nash (0) to joint profit (1).
        high: the highest position.
        tolerance: the largest distance between two firms' positions.
    """

    low: float = 0.0
    high: float = 1.0
    tolerance: float

    def holds(self, positions: Sequence[float]) -> bool:
        """Whether prices at these positions, one per firm, are held together."""
        lowest, highest = min(positions), max(positions)
        return (
            lowest >= self.low - ROUNDING
            and highest <= self.high + ROUNDING
            and highest - lowest <= self.tolerance + ROUNDING
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOutcome:
    """The result of one round; one value per firm in each tuple.

    Attributes:
        prices: the prices asked.
        demand: units sold.
        profits: profits earned.
        positions: the prices on the scale from Nash (0) to joint profit (1).
        gains: the profits on the scale of `normalised_profits`.
        together: whether the prices were held together, see `Band`.
    """

    prices: tuple[float, ...]
    demand: tuple[float, ...]
    profits: tuple[float, ...]
    positions: tuple[float, ...]
    gains: tuple[float, ...]
    together: bool


@dataclass(frozen=True, kw_only=True)
class Rivalry:
    """A set of firms that sell beside each other, and their market.

    Attributes:
        firms: their indices, ascending.
        market: their market; its values are in the order of `firms`.
        equilibria: the equilibria of their market, in the same order.
        band: when their prices count as held together.
    """

    firms: tuple[int, ...]
    market: Market
    equilibria: Equilibria
    band: Band


@functools.lru_cache(maxsize=256)
def find_equilibria(market: Market, decimals: int | None = None) -> Equilibria:
    """Solve a market for its Nash and joint-profit prices and profits.

    Args:
        market: the firms and their demand.
        decimals: round both prices to so many decimals first, as Calvano et al. 2020 did for their inputs
            (5), on which their price grid and profit gain rest; `None` keeps them exact.

    Raises:
        SettingsError: the market has no such prices, or a joint-profit price is not above the Nash price.
    """
    nash, joint = nash_prices(market), joint_prices(market)
    if decimals is not None:
        nash = tuple(round(p, decimals) for p in nash)
        joint = tuple(round(p, decimals) for p in joint)
    for i, (low, high) in enumerate(zip(nash, joint, strict=True)):
        if market.firms > 1 and not high > low:
            raise SettingsError(
                "cost",
                market.cost,
                f"firm {i}'s joint-profit price {high:g} is not above its Nash price {low:g}, so nothing "
                "can be measured between them; choose firms that compete more closely",
            )
    earned = [[(p - c) * q for p, c, q in zip(at, market.cost, market.demand(at), strict=True)] for at in (nash, joint)]
    return Equilibria(nash=nash, joint=joint, nash_profit=tuple(earned[0]), joint_profit=tuple(earned[1]))


def price_grid(nash: float, joint: float, points: int, xi: float) -> tuple[float, ...]:
    """One firm's grid of prices (Calvano et al. 2020, section II.A).

    Prices are computed as in their code: the step is added again and again, and the last price is set directly.
    Computed as low + k x step they would differ from theirs in the last digits.

    Args:
        nash: the firm's Nash price.
        joint: its joint-profit price.
        points: how many prices, 2 or more (theirs: 15).
        xi: how far the grid reaches below Nash and above joint profit, as a share of the distance between
            them (theirs: 0.1).

    Returns:
        (points,) ascending prices.
    """
    low, high = nash - xi * (joint - nash), joint + xi * (joint - nash)
    step = (high - low) / (points - 1)
    grid = [low]
    for _ in range(points - 2):
        grid.append(grid[-1] + step)
    return (*grid, high)


def nearest(grid: Sequence[float], price: float) -> int:
    """The index of the grid price closest to `price`; of two equally close ones the lower (0 for 1.5 in (1, 2))."""
    return min(range(len(grid)), key=lambda k: (abs(grid[k] - price), k))


def positions(prices: Any, equilibria: Equilibria) -> Floats:
    """Positions of (..., firms) prices: 0 at each firm's Nash price, 1 at its joint-profit price."""
    zero = np.asarray(equilibria.zero)
    return np.asarray((np.asarray(prices, dtype=np.float64) - zero) / (np.asarray(equilibria.joint) - zero))


def round_positions(prices: Sequence[float], equilibria: Equilibria) -> list[float]:
    """`positions` of one round's prices, as floats."""
    return [(p - low) / (high - low) for p, low, high in zip(prices, equilibria.zero, equilibria.joint, strict=True)]


def outcome(market: Market, equilibria: Equilibria, band: Band, prices: Sequence[float]) -> RoundOutcome:
    """Compute demand, profits and measures of a round in which the firms ask `prices`, one per firm."""
    demand = market.demand(prices)
    profits = market.profits_from_sales(prices, demand)
    where = round_positions(prices, equilibria)
    gap = equilibria.mean_gap
    return RoundOutcome(
        prices=tuple(prices),
        demand=tuple(demand),
        profits=tuple(profits),
        positions=tuple(where),
        gains=tuple((profit - low) / gap for profit, low in zip(profits, equilibria.zero_profit, strict=True)),
        together=market.firms > 1 and band.holds(where),
    )


def profit_gain(profits: Any, equilibria: Equilibria) -> Floats:
    """The profit gain Delta (Calvano et al. 2020) of the firms' mean profit: 0 at Nash, 1 at joint profit.

    For a single firm it is the share of the monopoly profit.

    Args:
        profits: (..., firms), of rounds or means over rounds.
        equilibria: those of the market.

    Returns:
        (...) gains, below 0 and above 1 possible.
    """
    mean = np.asarray(profits, dtype=np.float64).mean(axis=-1)
    return np.asarray((mean - np.mean(equilibria.zero_profit)) / equilibria.mean_gap)


def normalised_profits(profits: Any, equilibria: Equilibria) -> Floats:
    """Each firm's profit above Nash, in units of the firms' mean distance from Nash to joint profit.

    Equal firms have 0 at Nash and 1 at joint profit. Of unequal firms only the mean has: the joint optimum may give
    one of them less than Nash does.

    Args:
        profits: (..., firms).
        equilibria: those of the market.

    Returns:
        (..., firms).
    """
    above = np.asarray(profits, dtype=np.float64) - np.asarray(equilibria.zero_profit)
    return np.asarray(above / equilibria.mean_gap)


def profit_table(market: Market, grids: Sequence[Sequence[float]]) -> tuple[Floats, Floats]:
    """Demand and profit at every combination of grid prices.

    Args:
        market: the firms and their demand.
        grids: one grid of `m` prices per firm.

    Returns:
        Demand and profits, each (m, ..., m, firms): firm i's price index is axis i.
    """
    price_combinations = list(itertools.product(*grids))
    demand = [market.demand(prices) for prices in price_combinations]
    profits = [market.profits_from_sales(prices, sold) for prices, sold in zip(price_combinations, demand, strict=True)]
    shape = (*map(len, grids), market.firms)
    return np.array(demand).reshape(shape), np.array(profits).reshape(shape)
