"""Nash prices, joint-profit prices and best replies."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from llm_coop_envs.bertrand import equilibrium
from llm_coop_envs.bertrand.demand import LinearMarket, LogitMarket, Market
from llm_coop_envs.bertrand.equilibrium import best_reply, joint_prices, nash_prices
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.errors import SettingsError

PRESETS = sorted(BertrandSettings.presets)


def calvano(n=2, cost=1.0, quality=2.0, mu=0.25):
    def each(value):
        return value if isinstance(value, tuple) else (value,) * n

    return LogitMarket(cost=each(cost), quality=each(quality), outside=0.0, mu=mu, scale=1.0)


def team_up(**fields):
    return LinearMarket(**{"cost": (2.0, 2.0), "quality": (14.0, 14.0), "beta": 1 / 150, "d": 1 / 300, **fields})


# Calvano et al. 2020, a - c = 1, mu = 1/4: Nash price, joint-profit price and, where given, profits.
TABLE = [
    (1, 1.801985, 1.801985, 0.551985, 0.551985),
    (2, 1.472927, 1.924981, 0.22292666, 0.33749046),
    (3, 1.370163, 2.000000, 0.120163, 0.25),
    (4, 1.331461, 2.054411, None, None),
    (5, 1.311521, 2.097231, None, None),
]


@pytest.mark.parametrize(("n", "nash", "joint", "nash_profit", "joint_profit"), TABLE)
def test_the_published_benchmarks(n, nash, joint, nash_profit, joint_profit):
    market = calvano(n)
    assert nash_prices(market) == pytest.approx([nash] * n, abs=1e-6)
    assert joint_prices(market) == pytest.approx([joint] * n, abs=1e-6)
    if nash_profit is not None:
        assert market.profits(nash_prices(market)) == pytest.approx([nash_profit] * n, abs=1e-6)
        assert market.profits(joint_prices(market)) == pytest.approx([joint_profit] * n, abs=1e-6)


@pytest.mark.parametrize(
    ("cost", "share"), [(0.875, 0.545), (0.75, 0.588), (0.625, 0.627), (0.5, 0.662), (0.25, 0.722)]
)
def test_the_published_nash_shares_of_unequal_firms(cost, share):
    """Calvano et al. 2020, cost asymmetry: the cheaper firm's share of what is sold at Nash."""
    market = calvano(2, cost=(1.0, cost))
    sold = market.demand(nash_prices(market))
    assert sold[1] / sum(sold) == pytest.approx(share, abs=5e-4)


@pytest.mark.parametrize(
    ("cost", "mu", "quality"), [(0, 4.2382, 4.5569), (1, 3.3313, 6.0124), (3, 1.7078, 7.9371), (5, 0.5019, 8.4576)]
)
def test_other_logit_markets_with_prices_six_and_eight(cost, mu, quality):
    market = calvano(2, cost=float(cost), quality=quality, mu=mu)
    assert nash_prices(market) == pytest.approx([6, 6], abs=1e-3)
    assert joint_prices(market) == pytest.approx([8, 8], abs=1e-3)


@st.composite
def logit_markets(draw):
    n = draw(st.integers(1, 5))
    cost = draw(st.lists(st.floats(0, 3), min_size=n, max_size=n))
    return LogitMarket(
        cost=tuple(cost),
        quality=tuple(c + draw(st.floats(0.2, 3)) for c in cost),
        outside=draw(st.floats(-1, 1)),
        mu=draw(st.floats(0.1, 5)),
        scale=draw(st.floats(0.5, 5000)),
    )


@given(logit_markets())
def test_logit_nash_meets_its_first_order_conditions(market):
    """Setting the derivative of (p - c) s(p) to zero: (p - c) (1 - s) = mu."""
    prices = nash_prices(market)
    for p, c, q in zip(prices, market.cost, market.demand(prices), strict=True):
        assert (p - c) * (1 - q / market.scale) == pytest.approx(market.mu, rel=1e-9)


@given(logit_markets())
def test_logit_joint_prices_meet_their_first_order_conditions(market):
    """Setting the derivatives of the sum to zero: (p_i - c_i) = mu + sum_j (p_j - c_j) s_j."""
    prices = joint_prices(market)
    mean = sum(market.profits(prices)) / market.scale
    for p, c in zip(prices, market.cost, strict=True):
        assert p - c == pytest.approx(market.mu + mean, rel=1e-9)


@given(logit_markets())
def test_nobody_gains_by_leaving_logit_nash(market):
    prices = nash_prices(market)
    for i, p in enumerate(prices):
        earned = market.profits(prices)[i]
        assert best_reply(market, i, prices) == pytest.approx(p, rel=1e-8)
        for other in (market.cost[i], 0.9 * p, 0.999 * p, 1.001 * p, 1.1 * p, 2 * p):
            trial = [*prices[:i], other, *prices[i + 1 :]]
            assert market.profits(trial)[i] <= earned * (1 + 1e-12)


@given(logit_markets(), st.lists(st.floats(0.9, 1.1), min_size=5, max_size=5))
def test_no_prices_together_earn_more_than_the_joint_prices(market, factors):
    prices = joint_prices(market)
    trial = [p * f for p, f in zip(prices, factors, strict=False)]
    assert sum(market.profits(trial)) <= sum(market.profits(prices)) * (1 + 1e-12)


@given(logit_markets(), st.lists(st.floats(0, 8), min_size=5, max_size=5), st.floats(0, 10))
def test_the_logit_best_reply_is_best(market, prices, other):
    prices = prices[: market.firms]
    prices[0] = best_reply(market, 0, prices)
    earned = market.profits(prices)[0]
    assert market.profits([other, *prices[1:]])[0] <= earned * (1 + 1e-9)


def test_far_apart_parameters_are_solved_too():
    for mu in (1e-3, 1e3):
        market = calvano(2, mu=mu)
        p, q = nash_prices(market)[0], market.demand(nash_prices(market))[0]
        assert (p - 1) * (1 - q) == pytest.approx(mu, rel=1e-9)
    many = calvano(1000)
    assert nash_prices(many)[0] - 1 == pytest.approx(0.25 / (1 - many.demand(nash_prices(many))[0]), rel=1e-9)


def test_linear_closed_forms_of_two_firms():
    """As in the authors' code of Wu et al. 2024, unequal costs included."""
    a, beta, d, c1, c2 = 14.0, 1 / 150, 1 / 300, 2.0, 3.0
    alpha = a * beta - a * d
    market = team_up(cost=(c1, c2))
    first = (d * alpha + beta * d * c2 + 2 * beta * alpha + 2 * beta**2 * c1) / (4 * beta**2 - d**2)
    second = (d * alpha + beta * d * c1 + 2 * beta * alpha + 2 * beta**2 * c2) / (4 * beta**2 - d**2)
    assert nash_prices(market) == pytest.approx([first, second], rel=1e-12)
    assert joint_prices(market) == pytest.approx([alpha / (2 * (beta - d)) + c / 2 for c in (c1, c2)], rel=1e-12)
    assert joint_prices(market) == (8.0, 8.5)


@pytest.mark.parametrize("preset", ["team_up", "team_up_linear"])
def test_team_up_markets_have_prices_six_and_eight(preset):
    settings = BertrandSettings.build(preset)
    assert settings.equilibria.nash == pytest.approx([6, 6], abs=1e-12)
    assert settings.equilibria.joint == pytest.approx([8, 8], abs=1e-12)
    assert settings.market.demand((6, 6)) == pytest.approx([800, 800], abs=1e-8)
    assert settings.equilibria.nash_profit == pytest.approx([3200, 3200], abs=1e-8)


def test_the_tuned_logit_market_differs_elsewhere():
    market = BertrandSettings.build("team_up").market
    assert market.demand((8, 8)) == pytest.approx([617.0, 617.0], abs=0.05)
    assert market.profits((8, 8)) == pytest.approx([3702.1, 3702.1], abs=0.05)
    assert best_reply(market, 0, (0, 8)) == pytest.approx(6.423, abs=1e-3)
    assert best_reply(market, 1, (2, 0)) == pytest.approx(5.106, abs=1e-3)


@pytest.mark.parametrize("rival", [2.0, 6.0, 8.0, 10.0])
def test_the_linear_best_reply_is_a_line(rival):
    assert best_reply(team_up(), 0, (0.0, rival)) == pytest.approx(4.5 + rival / 4)


def test_the_best_reply_is_not_below_cost():
    assert best_reply(team_up(cost=(9.0, 2.0)), 0, (0.0, 2.0)) == 9.0
    assert best_reply(team_up(cost=(9.0, 2.0), clamp=True), 0, (0.0, 2.0)) == 9.0


@st.composite
def linear_markets(draw, clamp=False):
    n = draw(st.integers(2, 5))
    beta = draw(st.floats(0.1, 2))
    return LinearMarket(
        cost=tuple(draw(st.lists(st.floats(0, 2), min_size=n, max_size=n))),
        quality=tuple(draw(st.lists(st.floats(6, 8), min_size=n, max_size=n))),
        beta=beta,
        d=beta * draw(st.floats(0.01, 0.9)),
        clamp=clamp,
    )


def solved(market):
    try:
        return nash_prices(market), joint_prices(market)
    except SettingsError:
        return None


@given(linear_markets())
def test_nobody_gains_by_leaving_linear_nash(market):
    both = solved(market)
    assume(both is not None)
    for i, p in enumerate(both[0]):
        earned = market.profits(both[0])[i]
        for other in (market.cost[i], 0.9 * p, 1.001 * p, 1.1 * p):
            assert market.profits([*both[0][:i], other, *both[0][i + 1 :]])[i] <= earned + 1e-9


@given(linear_markets(), st.lists(st.floats(0.9, 1.1), min_size=5, max_size=5))
def test_no_linear_prices_together_earn_more_than_the_joint_prices(market, factors):
    both = solved(market)
    assume(both is not None)
    trial = [p * f for p, f in zip(both[1], factors, strict=False)]
    assert sum(market.profits(trial)) <= sum(market.profits(both[1])) + 1e-9


@given(linear_markets(clamp=True), st.lists(st.floats(0, 9), min_size=5, max_size=5), st.floats(0, 9))
def test_the_clamped_best_reply_is_best(market, prices, other):
    prices = prices[: market.firms]
    prices[0] = best_reply(market, 0, prices)
    earned = market.profits(prices)[0]
    assert market.profits([other, *prices[1:]])[0] <= earned + 1e-9 * max(1.0, earned)


def test_the_clamp_changes_the_reply_to_a_rival_that_prices_itself_out():
    """Against a rival above 14 the firm is alone: it asks (14 + 2) / 2, not 4.5 + rival / 4."""
    assert best_reply(team_up(clamp=True), 0, (0.0, 20.0)) == pytest.approx(8.0)
    assert best_reply(team_up(), 0, (0.0, 20.0)) == pytest.approx(9.5)


@pytest.mark.parametrize(
    ("surplus", "reply"),
    [
        # Alone the firm asks 5, and the rival sells from a surplus of 2.5 on; beside it the firm asks
        # (10 - surplus / 2) / 2, and the rival sells from 2.857 on. In between the firm just keeps it out: its own
        # surplus is twice the rival's.
        ((2.4,), 5.0),
        ((2.7,), 4.6),
        ((2.9,), 4.275),
        # With one strong rival (6) the same happens to the next between 4.1667 and 4.2353.
        ((6.0, 4.1), 3.5),
        ((6.0, 4.2), 3.4),
        ((4.2, 6.0), 3.4),
        ((6.0, 4.5), 3.25),
    ],
)
@pytest.mark.parametrize("cost", [0.0, 30.0])
def test_the_clamped_best_reply_may_keep_a_rival_out(surplus, reply, cost):
    n = len(surplus) + 1
    market = LinearMarket(cost=(cost,) * n, quality=(10.0 + cost,) * n, beta=1.0, d=0.5, clamp=True)
    assert best_reply(market, 0, [0.0, *(10.0 + cost - h for h in surplus)]) == pytest.approx(cost + reply)


def test_the_clamp_of_independent_goods():
    market = LinearMarket(cost=(2.0, 2.0), quality=(14.0, 14.0), beta=1.0, d=0.0, clamp=True)
    assert best_reply(market, 0, (0.0, 20.0)) == 8.0


def test_identical_goods():
    market = team_up(beta=1.0, d=1.0)
    assert nash_prices(market) == (2.0, 2.0)
    assert joint_prices(market) == (8.0, 8.0)
    assert best_reply(market, 0, (0.0, 6.0)) == pytest.approx(6.0 * 0.99)
    assert best_reply(market, 0, (0.0, 13.0)) == 8.0
    assert best_reply(market, 0, (0.0, 2.0)) == 2.0
    assert equilibrium.HOMOGENEOUS_CUT == 0.01


@pytest.mark.parametrize("fields", [{"cost": (2.0, 3.0)}, {"quality": (14.0, 13.0)}])
@pytest.mark.parametrize("solve", [nash_prices, joint_prices])
def test_identical_goods_of_unequal_firms_are_refused(fields, solve):
    with pytest.raises(SettingsError, match="the goods are the same"):
        solve(team_up(beta=1.0, d=1.0, **fields))


def test_a_firm_without_sales_is_refused():
    with pytest.raises(SettingsError, match="firm 1 would sell nothing at the Nash prices"):
        nash_prices(team_up(cost=(2.0, 12.0)))
    with pytest.raises(SettingsError, match="firm 1 would sell nothing at the joint-profit prices"):
        joint_prices(team_up(cost=(2.0, 9.0)))
    with pytest.raises(SettingsError, match="firm 1 would sell nothing"):
        nash_prices(calvano(2, cost=(1.0, 1000.0)))


def test_a_solution_that_misses_its_conditions_is_refused():
    market = calvano()
    prices = nash_prices(market)
    assert equilibrium.RESIDUAL == 1e-9
    equilibrium._check(market, prices, [1e-9 * min(prices)], "Nash")
    for missed in (2e-9 * max(prices), float("nan")):
        with pytest.raises(SettingsError, match="cannot be computed"):
            equilibrium._check(market, prices, [missed], "Nash")
    with pytest.raises(SettingsError, match="cannot be computed"):
        equilibrium._check(market, (float("inf"), 1.0), [0.0], "Nash")


@pytest.mark.parametrize("call", [nash_prices, joint_prices, lambda market: best_reply(market, 0, (1.0,))])
def test_other_markets_are_no_market(call):
    with pytest.raises(TypeError, match="Market"):
        call(Market(cost=(1.0,), quality=(2.0,)))


@pytest.mark.parametrize("preset", PRESETS)
def test_replying_again_and_again_ends_at_nash_in_every_preset(preset):
    settings = BertrandSettings.build(preset)
    prices = list(settings.market.cost)
    for _ in range(200):
        prices = [best_reply(settings.market, i, prices) for i in range(settings.firms)]
    assert prices == pytest.approx(nash_prices(settings.market), rel=1e-9)
