"""What a round of price competition is: benchmarks, price grids, outcomes, profit gain, prices held together.

Demand and equilibrium prices live in `demand.py` and `equilibrium.py`. Everything here is a pure function of
plain values.
"""

from __future__ import annotations

import functools
import itertools
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
"""By how much a place on the scale from Nash (0) to joint profit (1) may miss an edge: rounding, not leniency."""


@dataclass(frozen=True, kw_only=True)
class Benchmarks:
    """The two marks every outcome is measured against; one value per firm in each tuple.

    A single firm's Nash price is the monopoly price, as is its joint-profit price. Its outcomes are measured from a
    price and a profit of 0: they are shares of the monopoly's.

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
        """The prices at 0 of the scale that has the joint-profit prices at 1: the Nash prices of two firms and more."""
        return self.nash if len(self.nash) > 1 else (0.0,)

    @functools.cached_property
    def zero_profit(self) -> tuple[float, ...]:
        """The profits at 0 of the scale that has the joint profits at 1, likewise."""
        return self.nash_profit if len(self.nash) > 1 else (0.0,)

    @functools.cached_property
    def mean_gap(self) -> float:
        """Mean joint profit minus mean Nash profit: the denominator of the profit gain."""
        return (sum(self.joint_profit) - sum(self.zero_profit)) / len(self.nash)

    @property
    def losers(self) -> list[int]:
        """The firms that earn less at the joint-profit prices than at the Nash prices."""
        return [i for i, (low, high) in enumerate(zip(self.nash_profit, self.joint_profit, strict=True)) if high < low]


@dataclass(frozen=True, kw_only=True)
class Band:
    """When a round's prices count as held up together: close to each other, and between Nash and joint-profit price.

    This is the definition in the text of Wu et al. 2024, which gives no number for "close". They observe no collusion
    at the Nash prices, so the `low` of the settings lies above 0 by default; 0 is the interval alone.

    Attributes:
        low: the lowest place of a price on the scale from Nash (0) to joint profit (1).
        high: the highest place.
        tolerance: the largest distance between two firms' places.
    """

    low: float = 0.0
    high: float = 1.0
    tolerance: float

    def holds(self, places: Sequence[float]) -> bool:
        """Whether these prices, given by their places, one per firm, were held together."""
        lowest, highest = min(places), max(places)
        return (
            lowest >= self.low - ROUNDING
            and highest <= self.high + ROUNDING
            and highest - lowest <= self.tolerance + ROUNDING
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOutcome:
    """What one round's prices brought; one value per firm in each tuple.

    Attributes:
        prices: the prices asked.
        demand: units sold.
        profits: profits earned.
        places: the prices on the scale from Nash (0) to joint profit (1).
        gains: the profits on the scale of `normalised_profits`.
        together: whether the prices were held together, see `Band`.
    """

    prices: tuple[float, ...]
    demand: tuple[float, ...]
    profits: tuple[float, ...]
    places: tuple[float, ...]
    gains: tuple[float, ...]
    together: bool


@dataclass(frozen=True, kw_only=True)
class Rivalry:
    """Firms that sell beside each other.

    Attributes:
        firms: which they are, ascending.
        market: their market; its values are in their order.
        marks: its benchmarks, likewise.
        band: when their prices count as held together.
    """

    firms: tuple[int, ...]
    market: Market
    marks: Benchmarks
    band: Band


@functools.lru_cache(maxsize=256)
def benchmarks(market: Market, decimals: int | None = None) -> Benchmarks:
    """Nash and joint-profit prices and profits of a market.

    Args:
        market: the firms and their demand.
        decimals: round both prices to so many decimals first, as Calvano et al. 2020 did for their inputs
            (5), on which their price grid and profit gain rest; `None` keeps them exact.

    Raises:
        SettingsError: the market has no such prices, or they do not leave room for a joint gain.
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
    return Benchmarks(nash=nash, joint=joint, nash_profit=tuple(earned[0]), joint_profit=tuple(earned[1]))


def price_grid(nash: float, joint: float, points: int, xi: float) -> tuple[float, ...]:
    """One firm's grid of prices (Calvano et al. 2020, section II.A, built as their code builds it).

    Args:
        nash: the firm's Nash price.
        joint: its joint-profit price.
        points: how many prices, 2 or more (theirs: 15).
        xi: how far the grid reaches below Nash and above joint profit, as a share of the distance between
            them (theirs: 0.1).

    Returns:
        Ascending prices, filled by repeated addition of the step, the last one set directly.
    """
    low, high = nash - xi * (joint - nash), joint + xi * (joint - nash)
    step = (high - low) / (points - 1)
    grid = [low]
    for _ in range(points - 2):
        grid.append(grid[-1] + step)
    return (*grid, high)


def nearest(grid: Sequence[float], price: float) -> int:
    """The index of the grid price closest to `price`; of two equally close ones the lower."""
    return min(range(len(grid)), key=lambda k: (abs(grid[k] - price), k))


def positions(prices: Any, marks: Benchmarks) -> Floats:
    """(..., firms) prices on the scale where each firm's Nash price is 0 and its joint-profit price 1."""
    zero = np.asarray(marks.zero)
    return np.asarray((np.asarray(prices, dtype=np.float64) - zero) / (np.asarray(marks.joint) - zero))


def places(prices: Sequence[float], marks: Benchmarks) -> list[float]:
    """`positions` of one round's prices, as floats."""
    return [(p - low) / (high - low) for p, low, high in zip(prices, marks.zero, marks.joint, strict=True)]


def outcome(market: Market, marks: Benchmarks, band: Band, prices: Sequence[float]) -> RoundOutcome:
    """Settle one round in which the firms ask `prices`, one per firm."""
    demand = market.demand(prices)
    profits = market.earned(prices, demand)
    where = places(prices, marks)
    gap = marks.mean_gap
    return RoundOutcome(
        prices=tuple(prices),
        demand=tuple(demand),
        profits=tuple(profits),
        places=tuple(where),
        gains=tuple((profit - low) / gap for profit, low in zip(profits, marks.zero_profit, strict=True)),
        together=market.firms > 1 and band.holds(where),
    )


def profit_gain(profits: Any, marks: Benchmarks) -> Floats:
    """The profit gain Delta (Calvano et al. 2020) of the firms' mean profit: 0 at Nash, 1 at joint profit.

    Of a single firm: its share of the monopoly profit.

    `profits` are (..., firms): rounds, means over rounds, anything that ends in the firms; the gains are (...).
    """
    mean = np.asarray(profits, dtype=np.float64).mean(axis=-1)
    return np.asarray((mean - np.mean(marks.zero_profit)) / marks.mean_gap)


def normalised_profits(profits: Any, marks: Benchmarks) -> Floats:
    """Each firm's profit above Nash, in units of the firms' mean distance from Nash to joint profit.

    For equal firms this is 0 at Nash and 1 at joint profit; for unequal ones the firms' mean is, because at
    the joint optimum one of them may earn less than at Nash. `profits` and what is returned are (..., firms).
    """
    above = np.asarray(profits, dtype=np.float64) - np.asarray(marks.zero_profit)
    return np.asarray(above / marks.mean_gap)


def profit_table(market: Market, grids: Sequence[Sequence[float]]) -> tuple[Floats, Floats]:
    """Demand and profit at every combination of grid prices.

    Args:
        market: the firms and their demand.
        grids: one grid of `m` prices per firm.

    Returns:
        Demand and profits, each (m, ..., m, firms): firm i's price index is axis i.
    """
    asked = list(itertools.product(*grids))
    demand = [market.demand(prices) for prices in asked]
    profits = [market.earned(prices, sold) for prices, sold in zip(asked, demand, strict=True)]
    shape = (*map(len, grids), market.firms)
    return np.array(demand).reshape(shape), np.array(profits).reshape(shape)
