"""The rules: who trades with whom at which price, and what trade at its best would bring."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import fsum
from typing import NamedTuple


class Trade(NamedTuple):
    """One unit that was sold.

    Attributes:
        seller: the seller's place among the sellers.
        buyer: the buyer's place among the buyers.
        price: what was paid.
    """

    seller: int
    buyer: int
    price: float


def matched(asks: Mapping[int, float], bids: Mapping[int, float]) -> list[Trade]:
    """The trades of a call market: the lowest ask meets the highest bid, and so on, at the midpoint of the two.

    Of equal prices the one that stands first in the mapping goes first.
    """
    sellers = sorted(asks, key=lambda seller: asks[seller])
    buyers = sorted(bids, key=lambda buyer: -bids[buyer])
    return [
        Trade(seller, buyer, (asks[seller] + bids[buyer]) / 2)
        for seller, buyer in zip(sellers, buyers, strict=False)
        if asks[seller] <= bids[buyer]
    ]


def best_surplus(costs: Sequence[float], values: Sequence[float]) -> float:
    """What all could earn together in a round."""
    pairs = zip(sorted(costs), sorted(values, reverse=True), strict=False)
    return fsum(value - cost for cost, value in pairs if value > cost)


def competitive_price(costs: Sequence[float], values: Sequence[float]) -> float | None:
    """The midpoint of the prices at which as many want to sell as to buy; `None` if no trade pays."""
    supply, demand = sorted(costs), sorted(values, reverse=True)
    count = sum(value > cost for cost, value in zip(supply, demand, strict=False))
    if not count:
        return None
    low = max([supply[count - 1], *demand[count : count + 1]])
    high = min([demand[count - 1], *supply[count : count + 1]])
    return (low + high) / 2


def best_floor(costs: Sequence[float], bids: Sequence[float]) -> float | None:
    """The ask that earns sellers most together, if all ask it who can, against these bids; `None` if none earns."""

    def earned(floor: float) -> float:
        asks = {seller: floor for seller, cost in enumerate(costs) if cost <= floor}
        return fsum(trade.price - costs[trade.seller] for trade in matched(asks, dict(enumerate(bids))))

    best = max(sorted(bids, reverse=True), key=earned, default=None)
    return best if best is not None and earned(best) > 0 else None
