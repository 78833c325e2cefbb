"""Demand and profits at given prices: the logit and the linear market.

Both are frozen values (they compare, hash and pickle), in the money of the prices shown to the firms. They work on
plain floats: a market has a handful of firms, and an array of two costs more than the arithmetic done on it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from typing_extensions import Self


@dataclass(frozen=True, kw_only=True)
class Market:
    """Firms with their costs; the base of the two demand systems.

    Args:
        cost: each firm's cost of one unit, in money.
        quality: each firm's quality, in money (`a_i`, the intercept of both demand systems).
        truncate: cut profits towards zero to integers, as the code published with Wu et al. 2024 does.
    """

    cost: tuple[float, ...]
    quality: tuple[float, ...]
    truncate: bool = False

    @property
    def firms(self) -> int:
        """How many firms sell here."""
        return len(self.cost)

    def restrict_to(self, firms: Sequence[int]) -> Self:
        """The same market with the goods of these firms alone."""
        return replace(self, cost=tuple(self.cost[i] for i in firms), quality=tuple(self.quality[i] for i in firms))

    def demand(self, prices: Sequence[float]) -> list[float]:
        """Units sold by each firm when firm i asks `prices[i]`."""
        raise NotImplementedError

    def consumer_surplus(self, prices: Sequence[float], demand: Sequence[float]) -> float:
        """The consumer surplus: what the goods are worth to their buyers beyond the price, in money."""
        raise NotImplementedError

    def profits(self, prices: Sequence[float]) -> list[float]:
        """Each firm's profit (p_i - c_i) q_i at these prices, truncated if the market truncates."""
        return self.profits_from_sales(prices, self.demand(prices))

    def profits_from_sales(self, prices: Sequence[float], demand: Sequence[float]) -> list[float]:
        """Each firm's profit when it sells `demand[i]` units at `prices[i]`."""
        profits = [(p - c) * q for p, c, q in zip(prices, self.cost, demand, strict=True)]
        return [float(int(profit)) for profit in profits] if self.truncate else profits


@dataclass(frozen=True, kw_only=True)
class LogitMarket(Market):
    """Logit demand (Calvano et al. 2020, section II.A).

    q_i = scale * exp((a_i - p_i) / mu) / (sum_j exp((a_j - p_j) / mu) + exp(a_0 / mu)).

    Args:
        outside: a_0, the quality of buying nothing, in money.
        mu: horizontal differentiation, in money; towards 0 the goods become perfect substitutes.
        scale: number of customers (Calvano et al. use 1, Fish et al. 2024 use 100).
    """

    outside: float
    mu: float
    scale: float

    def demand(self, prices: Sequence[float]) -> list[float]:
        """Units sold by each firm; the largest exponent is subtracted from all, so that no price overflows."""
        mu = self.mu
        pulls = [(a - p) / mu for a, p in zip(self.quality, prices, strict=True)]
        outside = self.outside / mu
        top = max(outside, *pulls)
        weights = [math.exp(pull - top) for pull in pulls]
        unit = self.scale / (math.fsum(weights) + math.exp(outside - top))
        return [weight * unit for weight in weights]

    def consumer_surplus(self, prices: Sequence[float], demand: Sequence[float]) -> float:
        """The expected value of the best good over buying nothing, summed over all customers (Small and Rosen 1981)."""
        pulls = [(a - p - self.outside) / self.mu for a, p in zip(self.quality, prices, strict=True)]
        top = max(0.0, *pulls)
        return (
            self.scale * self.mu * (top + math.log(math.exp(-top) + math.fsum(math.exp(pull - top) for pull in pulls)))
        )


@dataclass(frozen=True, kw_only=True)
class LinearMarket(Market):
    """Linear differentiated demand (Singh and Vives 1984), for any number of firms.

    Customers pay p_i = a_i - beta q_i - d sum_{j != i} q_j. Solved for the quantities, with h_j = a_j - p_j:

        q_i = [(beta + (n - 2) d) h_i - d sum_{j != i} h_j] / [(beta - d) (beta + (n - 1) d)].

    For two firms this is the demand in the code published with Wu et al. 2024. With beta == d the goods are
    the same: the cheapest firms share (a - p) / d equally and the others sell nothing.

    Args:
        beta: fall of a good's price per unit of it sold, > 0.
        d: fall of a good's price per unit of a rival sold, 0 <= d <= beta.
        clamp: nobody sells less than nothing. The published code does not clamp: a firm dearer than its
            customers accept has a negative demand there. With the clamp such a firm sells 0, and its rivals
            sell what they would sell without it (customers choose non-negative quantities).
    """

    beta: float
    d: float
    clamp: bool = False

    def demand(self, prices: Sequence[float]) -> list[float]:
        """Units sold by each firm, negative only if the market does not clamp."""
        surplus = [a - p for a, p in zip(self.quality, prices, strict=True)]
        if self.beta == self.d:
            return self._cheapest_sell(prices, surplus)
        quantities = self._unbounded(surplus)
        if self.clamp and min(quantities) < 0.0:
            return self._served(surplus)
        return quantities

    def consumer_surplus(self, prices: Sequence[float], demand: Sequence[float]) -> float:
        """The quadratic utility of what is sold, less what it costs the customers (Singh and Vives 1984)."""
        gains = math.fsum((a - p) * q for a, p, q in zip(self.quality, prices, demand, strict=True))
        squares = math.fsum(q * q for q in demand)
        return gains - (self.beta * squares + self.d * (math.fsum(demand) ** 2 - squares)) / 2

    def _unbounded(self, surplus: Sequence[float]) -> list[float]:
        """Solve the inverse demand of these firms, whatever the signs that come out."""
        n, beta, d = len(surplus), self.beta, self.d
        own = beta + (n - 2) * d
        total = math.fsum(surplus)
        # Spelled as the two-firm formula is published, so that truncated profits agree with the authors' to
        # the unit.
        scale = beta * beta - d * d if n == 2 else (beta - d) * (beta + (n - 1) * d)
        return [(own * h - d * (total - h)) / scale for h in surplus]

    def _cheapest_sell(self, prices: Sequence[float], surplus: Sequence[float]) -> list[float]:
        """Demand for identical goods: the lowest price takes all, equal lowest prices share.

        At prices 1, 1, 2 the first two firms sell (a - 1) / (2 d) each, the third nothing.
        """
        lowest = min(prices)
        winners = sum(p == lowest for p in prices)
        sold = [h / (self.d * winners) if p == lowest else 0.0 for p, h in zip(prices, surplus, strict=True)]
        return [max(q, 0.0) for q in sold] if self.clamp else sold

    def _served(self, surplus: Sequence[float]) -> list[float]:
        """Non-negative quantities: add firms by falling surplus as long as the next one still sells.

        Of firms with equal surplus the one with the lower index comes first; it makes no difference to what they sell.
        """
        order = sorted(range(len(surplus)), key=lambda i: (-surplus[i], i))
        active: list[int] = []
        total = 0.0
        for i in order:
            # The next firm sells if its surplus exceeds d times what the firms before it sell in all.
            sold = total / (self.beta + (len(active) - 1) * self.d) if active else 0.0
            if surplus[i] <= self.d * sold:
                break
            active.append(i)
            total += surplus[i]
        quantities = [0.0] * len(surplus)
        if len(active) == 1:
            quantities[active[0]] = surplus[active[0]] / self.beta
        elif active:
            for i, q in zip(active, self._unbounded([surplus[i] for i in active]), strict=True):
                quantities[i] = q
        return quantities
