"""Prices at which firms come to rest: Nash, joint profit, best reply, for any parameters of both markets.

The logit market is solved through one number, the denominator of the market shares, of which every firm's own
price is a monotone function: a bisection over it cannot miss, whatever the number of firms, their costs and
qualities. The linear market has closed forms. Every solution is put back into its first-order conditions
before it is handed out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from llm_coop_envs.bertrand.demand import LinearMarket, LogitMarket, Market
from llm_coop_envs.errors import SettingsError

RESIDUAL = 1e-9
"""How far a first-order condition may miss zero, as a share of the prices, before a solution is refused."""

HOMOGENEOUS_CUT = 0.01
"""How far a best reply goes below the lowest rival where goods are the same, as a share of that price."""

_NEWTON_STEPS = 200
_BISECTION_STEPS = 200


def nash_prices(market: Market) -> tuple[float, ...]:
    """Prices, one per firm, at which no firm gains by changing its own (the one-shot Bertrand-Nash equilibrium).

    With identical linear goods and equal costs this is the cost. A single firm's is the monopoly price.

    Raises:
        SettingsError: no such prices with positive sales exist, or they cannot be computed to `RESIDUAL`.
    """
    if market.firms == 1:
        return joint_prices(market)
    if isinstance(market, LogitMarket):
        prices = _logit_nash(market)
        shares = [q / market.scale for q in market.demand(prices)]
        missed = [p - c - market.mu / (1.0 - s) for p, c, s in zip(prices, market.cost, shares, strict=True)]
    elif isinstance(market, LinearMarket):
        if market.beta == market.d:
            return _homogeneous(market, market.cost)
        prices = _linear_nash(market)
        missed = [p - _linear_reply(market, i, prices) for i, p in enumerate(prices)]
    else:
        raise TypeError(f"no Nash prices are known for a {type(market).__name__}")
    _check(market, prices, missed, "Nash")
    return prices


def joint_prices(market: Market) -> tuple[float, ...]:
    """Prices, one per firm, at which their profits add up to most (as one owner of all firms would set them).

    Raises:
        SettingsError: no such prices with positive sales exist, or they cannot be computed to `RESIDUAL`.
    """
    if isinstance(market, LogitMarket):
        # All margins are equal to mu / s_0: m / mu - 1 = x solves x e^x = e^-1 sum_j exp((a_j - c_j - a_0) /
        # mu).
        pulls = [(a - c - market.outside) / market.mu for a, c in zip(market.quality, market.cost, strict=True)]
        top = max(pulls)
        margin = market.mu * (1.0 + _lambert(top + math.log(sum(math.exp(x - top) for x in pulls)) - 1.0))
        prices = tuple(c + margin for c in market.cost)
        inside = sum(market.demand(prices)) / market.scale
        missed = [margin * (1.0 - inside) - market.mu]
    elif isinstance(market, LinearMarket):
        # Symmetric cross effects: the optimum depends on the own cost only, for any n.
        prices = tuple((a + c) / 2 for a, c in zip(market.quality, market.cost, strict=True))
        if market.beta == market.d:
            return _homogeneous(market, prices)
        missed = [0.0]
    else:
        raise TypeError(f"no joint-profit prices are known for a {type(market).__name__}")
    _check(market, prices, missed, "joint-profit")
    return prices


def best_reply(market: Market, firm: int, prices: Sequence[float]) -> float:
    """The price, not below cost, that earns firm `firm` most this round, given everybody's prices (its own is ignored).

    Where goods are identical no best reply exists (any price just below the rival's is beaten by one closer to it):
    then `HOMOGENEOUS_CUT` below the lowest rival, or the monopoly price if that is lower, or cost.
    """
    if market.firms == 1:
        return joint_prices(market)[0]
    cost = market.cost[firm]
    if isinstance(market, LogitMarket):
        rivals = [(a - p) / market.mu for j, (a, p) in enumerate(zip(market.quality, prices, strict=True)) if j != firm]
        rivals.append(market.outside / market.mu)
        top = max(rivals)
        against = top + math.log(sum(math.exp(x - top) for x in rivals))
        return cost + market.mu * (1.0 + _lambert((market.quality[firm] - cost) / market.mu - 1.0 - against))
    if not isinstance(market, LinearMarket):
        raise TypeError(f"no best reply is known for a {type(market).__name__}")
    if market.beta == market.d:
        lowest = min(p for j, p in enumerate(prices) if j != firm)
        return max(cost, min((market.quality[firm] + cost) / 2, lowest * (1.0 - HOMOGENEOUS_CUT)))
    reply = _linear_reply(market, firm, prices)
    if market.clamp:
        reply = _clamped_reply(market, firm, prices, reply)
    return max(cost, reply)


def _lambert(log_y: float) -> float:
    """The x > 0 with x e^x = e^log_y, found as u = ln x, where u + e^u is convex with slope above 1."""
    return math.exp(_rising_root(lambda u: (u + math.exp(u), 1.0 + math.exp(u)), log_y))


def _share_odds(log_y: float) -> float:
    """A firm's share odds s / (1 - s) at its own best price: s e^(1 / (1 - s)) = e^log_y."""

    def rising(u: float) -> tuple[float, float]:
        x = math.exp(u)
        return u - math.log1p(x) + 1.0 + x, 1.0 / (1.0 + x) + x

    return math.exp(_rising_root(rising, log_y))


def _rising_root(rising: Callable[[float], tuple[float, float]], target: float) -> float:
    """Solve value(u) = target for a convex function with slope >= 1, where Newton's method cannot fail.

    `rising` gives value and slope.
    """
    u = math.log(target) if target > 1.0 else target
    for _ in range(_NEWTON_STEPS):
        value, slope = rising(u)
        step = (value - target) / slope
        u -= step
        if abs(step) <= 1e-16 * max(1.0, abs(u)):
            break
    return u


def _logit_nash(market: LogitMarket) -> tuple[float, ...]:
    """Bisect over the log of the shares' denominator: they and the outside option must add up to one."""
    mu, outside = market.mu, market.outside / market.mu
    pulls = [(a - c) / mu for a, c in zip(market.quality, market.cost, strict=True)]

    def odds(y: float) -> list[float]:
        return [_share_odds(pull - y) for pull in pulls]

    top = max(outside, *pulls)
    low = outside
    high = top + math.log(math.exp(outside - top) + sum(math.exp(pull - top) for pull in pulls))
    for _ in range(_BISECTION_STEPS):
        y = 0.5 * (low + high)
        if y in (low, high):
            break
        crowded = sum(x / (1.0 + x) for x in odds(y)) + math.exp(outside - y) > 1.0
        low, high = (y, high) if crowded else (low, y)
    return tuple(c + mu * (1.0 + x) for c, x in zip(market.cost, odds(0.5 * (low + high)), strict=True))


def _rivalry(market: LinearMarket, firms: int) -> float:
    """How much a rival's price moves a firm's demand, for each unit its own price does, among `firms` sellers."""
    return market.d / (market.beta + (firms - 2) * market.d)


def _linear_nash(market: LinearMarket) -> tuple[float, ...]:
    """Solve the first-order conditions, linear in h_i = a_i - p_i: h_i - r sum_{j != i} h_j = a_i - c_i - h_i."""
    n = market.firms
    r = _rivalry(market, n)
    gaps = [a - c for a, c in zip(market.quality, market.cost, strict=True)]
    total = sum(gaps) / (2.0 - (n - 1) * r)
    return tuple(a - (gap + r * total) / (2.0 + r) for a, gap in zip(market.quality, gaps, strict=True))


def _linear_reply(
    market: LinearMarket, firm: int, prices: Sequence[float], among: Sequence[int] | None = None
) -> float:
    """The stationary point of the profit when all rivals, or exactly those `among`, sell beside the firm."""
    rivals = [j for j in range(market.firms) if j != firm] if among is None else among
    surplus = sum(market.quality[j] - prices[j] for j in rivals)
    return (market.quality[firm] + market.cost[firm] - _rivalry(market, len(rivals) + 1) * surplus) / 2


def _clamped_reply(market: LinearMarket, firm: int, prices: Sequence[float], inner: float) -> float:
    """Best among the stationary points and the kinks: with k = 0, 1, ... of the strongest rivals selling."""
    surplus = [a - p for a, p in zip(market.quality, prices, strict=True)]
    rivals = sorted((j for j in range(market.firms) if j != firm), key=lambda j: (-surplus[j], j))
    candidates = [inner]
    for k, rival in enumerate(rivals):
        candidates.append(_linear_reply(market, firm, prices, rivals[:k]))
        if market.d > 0.0:
            # Here this rival stops selling: its surplus is d times what the firm and the k rivals before it
            # sell.
            edge = surplus[rival] * (market.beta + k * market.d) / market.d - sum(surplus[j] for j in rivals[:k])
            candidates.append(market.quality[firm] - edge)

    def profit(price: float) -> float:
        trial = list(prices)
        trial[firm] = price
        return (price - market.cost[firm]) * market.demand(trial)[firm]

    return max(candidates, key=profit)


def _homogeneous(market: LinearMarket, prices: tuple[float, ...]) -> tuple[float, ...]:
    """Identical goods have benchmarks in pure prices only if costs and qualities are equal too."""
    if len(set(market.cost)) > 1 or len(set(market.quality)) > 1:
        raise SettingsError(
            "d",
            market.d,
            "with beta == d the goods are the same, and firms with unequal costs or qualities then have no Nash "
            "prices; make these equal, or d smaller than beta",
        )
    return prices


def _check(market: Market, prices: Sequence[float], missed: Sequence[float], kind: str) -> None:
    """Refuse a solution that does not solve, or that has a firm without sales."""
    size = max(1e-300, *(abs(p) for p in prices))
    if not all(math.isfinite(p) for p in prices) or not max(abs(m) for m in missed) <= RESIDUAL * size:
        why = f"the {kind} prices of this market cannot be computed; choose milder parameters"
        raise SettingsError("cost", market.cost, why)
    for i, sold in enumerate(market.demand(prices)):
        if not sold > 0.0:
            why = f"firm {i} would sell nothing at the {kind} prices; bring costs and qualities closer"
            raise SettingsError("cost", market.cost, why)
