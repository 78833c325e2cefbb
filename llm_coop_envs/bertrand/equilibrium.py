"""Nash prices, joint-profit prices and best replies, for any parameters of both markets.

The logit market is solved through one number, the denominator of the market shares. Every firm's price is a monotone
function of it, so that a bisection always succeeds, whatever the number of firms, their costs and qualities. The linear
market has closed forms. Every solution is checked against its first-order conditions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from llm_coop_envs.bertrand.demand import LinearMarket, LogitMarket, Market
from llm_coop_envs.errors import SettingsError

RESIDUAL = 1e-9
"""The largest residual of a first-order condition, as a share of the prices, with which a solution is accepted."""

HOMOGENEOUS_CUT = 0.01
"""How far a best reply undercuts the lowest rival where goods are identical, as a share of that price."""

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
    """Prices, one per firm, that maximise the sum of their profits (as one owner of all firms would set them).

    Raises:
        SettingsError: no such prices with positive sales exist, or they cannot be computed to `RESIDUAL`.
    """
    if isinstance(market, LogitMarket):
        # All margins m equal mu / s_0, and x = m / mu - 1 solves x e^x = e^-1 sum_j exp((a_j - c_j - a_0) / mu).
        pulls = [(a - c - market.outside) / market.mu for a, c in zip(market.quality, market.cost, strict=True)]
        top = max(pulls)
        margin = market.mu * (1.0 + _lambert(top + math.log(math.fsum(math.exp(x - top) for x in pulls)) - 1.0))
        prices = tuple(c + margin for c in market.cost)
        inside = math.fsum(market.demand(prices)) / market.scale
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

    Where goods are identical no best reply exists, because any price just below the rival's is beaten by one closer to
    it. The reply then lies `HOMOGENEOUS_CUT` below the lowest rival (0.99 against 1), or at the monopoly price if that
    is lower, and never below cost.
    """
    if market.firms == 1:
        return joint_prices(market)[0]
    cost = market.cost[firm]
    if isinstance(market, LogitMarket):
        rivals = [(a - p) / market.mu for j, (a, p) in enumerate(zip(market.quality, prices, strict=True)) if j != firm]
        rivals.append(market.outside / market.mu)
        top = max(rivals)
        against = top + math.log(math.fsum(math.exp(x - top) for x in rivals))
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
    """Solve x e^x = e^log_y for x > 0, through u = ln x, where u + e^u is convex with slope above 1."""
    return math.exp(_rising_root(lambda u: (u + math.exp(u), 1.0 + math.exp(u)), log_y))


def _share_odds(log_y: float) -> float:
    """A firm's share odds s / (1 - s) at its own best price; its share s solves s e^(1 / (1 - s)) = e^log_y."""

    def rising(u: float) -> tuple[float, float]:
        x = math.exp(u)
        return u - math.log1p(x) + 1.0 + x, 1.0 / (1.0 + x) + x

    return math.exp(_rising_root(rising, log_y))


def _rising_root(rising: Callable[[float], tuple[float, float]], target: float) -> float:
    """Solve value(u) = target by Newton's method, which cannot fail on a convex function with slope >= 1.

    Args:
        rising: gives value and slope at u.
        target: the value to reach.
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
    """Nash prices by bisection over the log of the shares' denominator: the shares must add up to 1."""
    mu, outside = market.mu, market.outside / market.mu
    pulls = [(a - c) / mu for a, c in zip(market.quality, market.cost, strict=True)]

    def odds(y: float) -> list[float]:
        return [_share_odds(pull - y) for pull in pulls]

    top = max(outside, *pulls)
    low = outside
    high = top + math.log(math.exp(outside - top) + math.fsum(math.exp(pull - top) for pull in pulls))
    for _ in range(_BISECTION_STEPS):
        y = 0.5 * (low + high)
        if y in (low, high):
            break
        crowded = math.fsum(x / (1.0 + x) for x in odds(y)) + math.exp(outside - y) > 1.0
        low, high = (y, high) if crowded else (low, y)
    return tuple(c + mu * (1.0 + x) for c, x in zip(market.cost, odds(0.5 * (low + high)), strict=True))


def _rivalry(market: LinearMarket, firms: int) -> float:
    """The effect of a rival's price on a firm's demand as a share of that of its own price, among `firms` sellers."""
    return market.d / (market.beta + (firms - 2) * market.d)


def _linear_nash(market: LinearMarket) -> tuple[float, ...]:
    """Solve the first-order conditions, linear in h_i = a_i - p_i: h_i - r sum_{j != i} h_j = a_i - c_i - h_i."""
    n = market.firms
    r = _rivalry(market, n)
    gaps = [a - c for a, c in zip(market.quality, market.cost, strict=True)]
    total = math.fsum(gaps) / (2.0 - (n - 1) * r)
    return tuple(a - (gap + r * total) / (2.0 + r) for a, gap in zip(market.quality, gaps, strict=True))


def _linear_reply(
    market: LinearMarket, firm: int, prices: Sequence[float], among: Sequence[int] | None = None
) -> float:
    """The price at which the firm's profit is stationary while all rivals, or only those `among`, sell."""
    rivals = [j for j in range(market.firms) if j != firm] if among is None else among
    surplus = math.fsum(market.quality[j] - prices[j] for j in rivals)
    return (market.quality[firm] + market.cost[firm] - _rivalry(market, len(rivals) + 1) * surplus) / 2


def _clamped_reply(market: LinearMarket, firm: int, prices: Sequence[float], inner: float) -> float:
    """The best reply where rivals may sell nothing: profit has a kink wherever one more rival stops selling.

    The candidates are the stationary points with k = 0, 1, ... of the strongest rivals selling, and the kinks between
    them. Rivals of equal surplus are ordered by index.
    """
    surplus = [a - p for a, p in zip(market.quality, prices, strict=True)]
    rivals = sorted((j for j in range(market.firms) if j != firm), key=lambda j: (-surplus[j], j))
    candidates = [inner]
    for k, rival in enumerate(rivals):
        candidates.append(_linear_reply(market, firm, prices, rivals[:k]))
        if market.d > 0.0:
            # At this price the rival stops selling: its surplus is d times what the firm and k stronger rivals sell.
            edge = surplus[rival] * (market.beta + k * market.d) / market.d - math.fsum(surplus[j] for j in rivals[:k])
            candidates.append(market.quality[firm] - edge)

    def profit(price: float) -> float:
        trial = list(prices)
        trial[firm] = price
        return (price - market.cost[firm]) * market.demand(trial)[firm]

    return max(candidates, key=profit)


def _homogeneous(market: LinearMarket, prices: tuple[float, ...]) -> tuple[float, ...]:
    """Require equal costs and qualities: only then have firms with identical goods Nash prices in pure strategies."""
    if len(set(market.cost)) > 1 or len(set(market.quality)) > 1:
        raise SettingsError(
            "d",
            market.d,
            "with beta == d the goods are the same, and firms with unequal costs or qualities then have no Nash "
            "prices; make these equal, or d smaller than beta",
        )
    return prices


def _check(market: Market, prices: Sequence[float], missed: Sequence[float], kind: str) -> None:
    """Refuse prices that miss their first-order conditions, or at which a firm sells nothing.

    Raises:
        SettingsError: one of these holds.
    """
    size = max(1e-300, *(abs(p) for p in prices))
    if not all(math.isfinite(p) for p in prices) or not max(abs(m) for m in missed) <= RESIDUAL * size:
        reason = f"the {kind} prices of this market cannot be computed; choose milder parameters"
        raise SettingsError("cost", market.cost, reason)
    for i, sold in enumerate(market.demand(prices)):
        if not sold > 0.0:
            reason = f"firm {i} would sell nothing at the {kind} prices; bring costs and qualities closer"
            raise SettingsError("cost", market.cost, reason)
