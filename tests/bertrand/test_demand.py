"""Demand and profits of both markets."""

import itertools
import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from llm_coop_envs.bertrand.demand import LinearMarket, LogitMarket, Market
from llm_coop_envs.bertrand.settings import BertrandSettings

AUTHORS = BertrandSettings.build("team_up_linear").market


def logit(cost=(1.0, 1.0), quality=(2.0, 2.0), outside=0.0, mu=0.25, scale=1.0):
    return LogitMarket(cost=cost, quality=quality, outside=outside, mu=mu, scale=scale)


def linear(cost=(2.0, 2.0), quality=(14.0, 14.0), beta=1 / 150, d=1 / 300, **fields):
    return LinearMarket(cost=cost, quality=quality, beta=beta, d=d, **fields)


@st.composite
def logit_markets(draw, max_firms=5):
    n = draw(st.integers(1, max_firms))
    cost = draw(st.lists(st.floats(0, 3), min_size=n, max_size=n))
    quality = [c + draw(st.floats(0.5, 3)) for c in cost]
    return logit(
        tuple(cost),
        tuple(quality),
        draw(st.floats(-2, 2)),
        draw(st.floats(0.05, 5)),
        draw(st.floats(0.5, 5000)),
    )


def test_logit_demand_is_the_formula():
    market = logit((1.0, 2.0, 0.0), (2.0, 2.5, 1.0), 0.3, 0.4, 7.0)
    prices = (1.7, 2.1, 0.4)
    pulls = [math.exp((a - p) / 0.4) for a, p in zip(market.quality, prices, strict=True)]
    total = sum(pulls) + math.exp(0.3 / 0.4)
    assert market.demand(prices) == pytest.approx([7.0 * pull / total for pull in pulls], rel=1e-14)


@given(logit_markets(), st.lists(st.floats(-1e300, 1e300), min_size=5, max_size=5))
@example(logit(), [0.0, 1e300, 0, 0, 0])
@example(logit(), [-1e300, -1e300, 0, 0, 0])
def test_logit_demand_is_finite_and_no_more_than_all_customers_at_any_price(market, prices):
    sold = market.demand(prices[: market.firms])
    assert all(0.0 <= q <= market.scale * (1 + 1e-12) for q in sold)
    assert sum(sold) <= market.scale * (1 + 1e-12)


@given(logit_markets(), st.floats(0, 5), st.floats(0.01, 5), st.integers(0, 4))
def test_logit_demand_falls_in_the_own_price_and_rises_in_the_others(market, price, rise, firm):
    firm %= market.firms
    prices = [price] * market.firms
    sold_before = market.demand(prices)
    prices[firm] += rise
    sold_after = market.demand(prices)
    assert sold_after[firm] <= sold_before[firm]
    assert all(sold_after[i] >= sold_before[i] for i in range(market.firms) if i != firm)


@pytest.mark.parametrize(
    ("own", "rival", "sold", "profit"),
    [
        (2, 2, 1200, 0),
        (6, 6, 800, 3200),
        (7, 7, 700, 3500),
        (7.5, 7.5, 650, 3575),
        (8, 8, 600, 3600),
        (6.5, 8, 900, 4050),
        (8, 6.5, 450, 2700),
        (14, 14, 0, 0),
    ],
)
def test_the_published_table(own, rival, sold, profit):
    """The authors' code of Wu et al. 2024: demand to the float's noise, truncated profit to the unit."""
    assert AUTHORS.demand((own, rival))[0] == pytest.approx(sold, abs=1e-6)
    assert AUTHORS.profits((own, rival))[0] == profit
    assert AUTHORS.profits((rival, own))[1] == profit


@given(st.floats(0, 30), st.floats(0, 30))
def test_the_authors_demand_is_a_line(own, rival):
    assert AUTHORS.demand((own, rival))[0] == pytest.approx(1400 - 200 * own + 100 * rival, abs=1e-6)


def test_profits_are_truncated_towards_zero():
    assert AUTHORS.profits((7.004, 7))[0] == int(5.004 * (1400 - 200 * 7.004 + 700)) == 3498
    # Dearer than 7 + rival / 2: demand is negative, as published, and so is the profit.
    assert AUTHORS.demand((10.503, 7))[0] == pytest.approx(-0.6, abs=1e-9)
    assert AUTHORS.profits((10.503, 7))[0] == -5
    assert linear().profits((10.503, 7))[0] == pytest.approx(8.503 * -0.6)


def test_profit_is_margin_times_demand():
    market = logit(cost=(1.0, 0.5))
    prices = (1.4, 1.6)
    sold = market.demand(prices)
    assert market.profits(prices) == [(1.4 - 1.0) * sold[0], (1.6 - 0.5) * sold[1]]


@st.composite
def linear_markets(draw, clamp=False):
    n = draw(st.integers(1, 5))
    beta = draw(st.floats(0.1, 2))
    return LinearMarket(
        cost=(0.0,) * n,
        quality=tuple(draw(st.lists(st.floats(5, 10), min_size=n, max_size=n))),
        beta=beta,
        d=beta * draw(st.floats(0.0, 0.95)),
        clamp=clamp,
    )


@given(linear_markets(), st.lists(st.floats(0, 10), min_size=5, max_size=5))
def test_linear_demand_solves_the_inverse_demand(market, prices):
    prices = prices[: market.firms]
    sold = market.demand(prices)
    for i, p in enumerate(prices):
        price = market.quality[i] - market.beta * sold[i] - market.d * (sum(sold) - sold[i])
        assert price == pytest.approx(p, abs=1e-6)


@given(linear_markets(clamp=True), st.lists(st.floats(0, 12), min_size=5, max_size=5))
def test_clamped_demand_is_what_customers_choose(market, prices):
    """Non-negative, and nobody who sells nothing is offered cheaply enough to be bought."""
    prices = prices[: market.firms]
    sold = market.demand(prices)
    for i, p in enumerate(prices):
        worth = market.quality[i] - market.beta * sold[i] - market.d * (sum(sold) - sold[i])
        assert sold[i] >= 0
        if sold[i] > 0:
            assert worth == pytest.approx(p, abs=1e-6)
        else:
            assert worth <= p + 1e-6


def test_the_clamp_serves_the_rival_of_a_priced_out_firm():
    assert linear(clamp=True).demand((13.5, 4.0)) == [0.0, pytest.approx(1500)]
    assert linear(clamp=True).demand((14.5, 15.0)) == [0.0, 0.0]
    assert min(linear().demand((13.5, 4.0))) < 0


@pytest.mark.parametrize(
    ("surplus", "sold"),
    [
        ((0.1, 0.0), (0.1, 0.0)),
        ((8.0, 3.9), (8.0, 0.0)),
        ((8.0, 4.1), (7.933333, 0.133333)),
        # The first two sell 12 / 1.5 = 8 together, so the third sells if its surplus is above 4.
        ((6.0, 6.0, 3.9), (4.0, 4.0, 0.0)),
        ((6.0, 6.0, 4.1), (3.95, 3.95, 0.15)),
        ((6.0, 4.1, 6.0), (3.95, 0.15, 3.95)),
        # The first three sell 18 / 2 = 9 together, so the fourth sells if its surplus is above 4.5.
        ((4.4, 6.0, 6.0, 6.0), (0.0, 3.0, 3.0, 3.0)),
        ((4.6, 6.0, 6.0, 6.0), (0.16, 2.96, 2.96, 2.96)),
    ],
)
def test_the_clamp_serves_firms_by_surplus_while_the_next_still_sells(surplus, sold):
    """beta = 1, d = 1/2: k sellers with surplus H in all sell H / (1 + (k - 1) / 2) together."""
    n = len(surplus)
    market = linear((0.0,) * n, (10.0,) * n, beta=1.0, d=0.5, clamp=True)
    assert market.demand([10.0 - h for h in surplus]) == pytest.approx(sold, abs=1e-6)


@pytest.mark.parametrize("clamp", [False, True])
@pytest.mark.parametrize(
    ("prices", "sold"),
    [((5.0, 6.0), (9.0, 0.0)), ((6.0, 5.0), (0.0, 9.0)), ((5.0, 5.0), (4.5, 4.5)), ((5.0, 5.0, 5.0), (3.0, 3.0, 3.0))],
)
def test_identical_goods_go_to_the_cheapest(prices, sold, clamp):
    n = len(prices)
    market = linear((2.0,) * n, (14.0,) * n, beta=1.0, d=1.0, clamp=clamp)
    assert tuple(market.demand(prices)) == sold


def test_identical_goods_above_what_anybody_pays():
    assert linear(beta=1.0, d=1.0).demand((15.0, 16.0)) == [-1.0, 0.0]
    assert linear(beta=1.0, d=1.0, clamp=True).demand((15.0, 16.0)) == [0.0, 0.0]


def test_the_order_of_firms_does_not_matter():
    market = linear((2.0,) * 3, (14.0, 12.0, 13.0), 0.3, 0.2)
    sold = dict(zip("abc", market.demand((5.0, 6.0, 7.0)), strict=True))
    data = {"a": (14.0, 5.0), "b": (12.0, 6.0), "c": (13.0, 7.0)}
    for order in itertools.permutations("abc"):
        other = linear((2.0,) * 3, tuple(data[k][0] for k in order), 0.3, 0.2)
        again = other.demand([data[k][1] for k in order])
        assert again == pytest.approx([sold[k] for k in order])


def test_the_base_has_no_demand():
    with pytest.raises(NotImplementedError):
        Market(cost=(1.0,), quality=(2.0,)).demand((1.0,))


def surplus_by_steps(market, prices):
    """What the customers would lose if all prices rose until nobody buys, added up in small steps."""
    ends = [price + 40 * (1 if isinstance(market, LogitMarket) else 0.5) for price in prices]
    total, steps = 0.0, 20_000
    for step in range(steps):
        at = [p + (step + 0.5) / steps * (end - p) for p, end in zip(prices, ends, strict=True)]
        lost = (end - p for p, end in zip(prices, ends, strict=True))
        total += sum(q * width / steps for q, width in zip(market.demand(at), lost, strict=True))
    return total


@pytest.mark.parametrize("market", [logit(outside=0.5, scale=10.0), linear(clamp=True)])
def test_the_consumer_surplus_is_the_area_below_demand(market):
    prices = (1.4, 1.7)
    assert market.consumer_surplus(prices, market.demand(prices)) == pytest.approx(
        surplus_by_steps(market, prices), rel=1e-4
    )


def test_where_nobody_buys_customers_gain_nothing():
    prices = (500.0, 600.0)
    for market in (logit(outside=1.0), linear(clamp=True)):
        assert market.consumer_surplus(prices, market.demand(prices)) == pytest.approx(0, abs=1e-9)
