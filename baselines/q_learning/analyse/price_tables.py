"""The answer to each deviation from each price, over many sessions: Tables II, III, A2 and A3 of Calvano et al. 2020.

As in the paper, only sessions count that end in one pair of prices. Each firm is forced once to each of its prices, and
both follow their strategies afterwards. Rows are the prices before, columns the prices that a firm is forced to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from llm_coop_envs.baselines.q_learning.analyse.responses import deviation_price, impulse_response
from llm_coop_envs.baselines.q_learning.analyse.stored import StoredRun
from llm_coop_envs.baselines.q_learning.learn.game import Floats, Ints
from llm_coop_envs.baselines.q_learning.learn.strategies import strategy_q

PUBLISHED_AS = {"answer": "Table II a", "own": "Table II b", "worth": "Table III a", "unprofitable": "Table III b"}

QUANTILES = (0.025, 0.25, 0.75, 0.975)
"""The quantiles that Figure 5 of Calvano et al. 2020 draws beside the mean."""


@dataclass(frozen=True, eq=False)
class PriceTables:
    """Means and standard errors over all pairs of a session and a deviating firm; NaN where there is none.

    Attributes:
        share: (m,) how often each price is the deviator's price before.
        means: (m, m) by name: `answer`, the rival's price change in the period after the deviation, as a share; `own`,
            the deviator's price change; `worth`, its discounted profits relative to not deviating; `unprofitable`, how
            often these are lower (never for a deviation to the price before).
        errors: (m, m) by name: standard errors, with sessions as the sample.
    """

    share: Floats
    means: Mapping[str, Floats]
    errors: Mapping[str, Floats]


def price_tables(run: StoredRun) -> PriceTables:
    """Compute the tables of a run of two firms with one round of memory.

    Raises:
        ValueError: the run has other firms or another memory, or no session ends in one pair of prices.
    """
    game = run.game
    if game.firms != 2 or game.memory != 1:
        raise ValueError("the tables are of two firms with a memory of one round")
    points = game.points
    tables: dict[str, list[Floats]] = {name: [] for name in PUBLISHED_AS}
    prices_before: list[Ints] = []
    for strategies, cycle in zip(run.strategies, run.cycles, strict=True):
        if cycle.length != 1:
            continue
        state, prices = int(cycle.states[0]), cycle.choices[0]
        q = strategy_q(game, strategies)
        prices_before.append(prices)
        table = {name: np.empty((2, points)) for name in PUBLISHED_AS}
        for firm in (0, 1):
            weight = points ** (1 - firm)
            next_states = game.action(prices) + (np.arange(points) - prices[firm]) * weight
            own, rival = (game.prices[i][strategies[i, next_states]] for i in (firm, 1 - firm))
            usual = q[firm, state, prices[firm]]
            table["answer"][firm] = rival / game.prices[1 - firm][prices[1 - firm]] - 1.0
            table["own"][firm] = own / game.prices[firm] - 1.0
            table["worth"][firm] = q[firm, state] / usual - 1.0
            table["unprofitable"][firm] = q[firm, state] < usual
        for name, value in table.items():
            # Asking the usual price is no deviation.
            value[[0, 1], prices] = 0.0
            tables[name].append(value)
    if not prices_before:
        raise ValueError("no session ends in one pair of prices")
    usual_prices = np.array(prices_before)
    means, errors = {}, {}
    for name, values in tables.items():
        means[name], errors[name] = _by_price(np.array(values), usual_prices, points)
    return PriceTables(np.bincount(usual_prices.ravel(), minlength=points) / usual_prices.size, means, errors)


def _by_price(values: Floats, usual_prices: Ints, points: int) -> tuple[Floats, Floats]:
    """Means (m, m), and their standard errors, of values (sessions, 2, m) by the usual prices (sessions, 2)."""
    mean, error = np.full((points, points), np.nan), np.full((points, points), np.nan)
    for price in range(points):
        chosen = usual_prices == price
        counts = chosen.sum(axis=1)
        total = counts.sum()
        if not total:
            continue
        mean[price] = (values * chosen[:, :, None]).sum(axis=(0, 1)) / total
        # Both firms of a session may ask this price, so the mean is a ratio of sums over sessions.
        off = ((values - mean[price]) * chosen[:, :, None]).sum(axis=1)
        if total > 1:
            error[price] = np.sqrt((off**2).sum(axis=0)) / total
    return mean, error


@dataclass(frozen=True, eq=False)
class Spread:
    """How prices move after a deviation to the static best reply, from the commonest price (Figures 5 and A9).

    Attributes:
        price: the commonest price.
        sessions: how many sessions end at it.
        deviator: (periods + 1, 1 + quantiles) mean and `QUANTILES` of the deviator's price less the price before, from
            the period before the deviation on, over deviators whose price before is the commonest.
        rival: the same for rivals.
    """

    price: float
    sessions: int
    deviator: Floats
    rival: Floats


def spread(run: StoredRun, *, symmetric: bool, periods: int = 10) -> Spread:
    """Compute the spread of answers in a run of two firms.

    Args:
        run: the sessions.
        symmetric: take only sessions that end in the same price for both (Figure 5), else all that end in one price
            each (Figure A9).
        periods: number of periods from the deviation on.

    Raises:
        ValueError: no session ends that way, or there are not two firms.
    """
    game = run.game
    chosen = [
        (strategies, cycle)
        for strategies, cycle in zip(run.strategies, run.cycles, strict=True)
        if cycle.length == 1 and (not symmetric or len(set(cycle.choices[0].tolist())) == 1)
    ]
    if not chosen or game.firms != 2:
        raise ValueError("no session of two firms ends in one pair of prices")
    commonest = int(np.bincount(np.array([cycle.choices[0] for _, cycle in chosen]).ravel()).argmax())
    paths: tuple[list[Floats], list[Floats]] = ([], [])
    for strategies, cycle in chosen:
        for firm in (0, 1):
            price = deviation_price(game, strategies, cycle, 0, firm, "best_reply")
            answer = impulse_response(game, strategies, cycle, firm=firm, price=price, horizon=periods)
            for path, shown_firm in zip(paths, (firm, 1 - firm), strict=True):
                if cycle.choices[0, shown_firm] == commonest:
                    path.append(np.concatenate([[0.0], answer.prices[:, shown_firm] - answer.before[shown_firm]]))
    summed = [np.column_stack([np.mean(path, axis=0), *np.quantile(path, QUANTILES, axis=0)]) for path in paths]
    count = sum(commonest in cycle.choices[0] for _, cycle in chosen)
    return Spread(float(game.prices[0, commonest]), count, *summed)


def mean_strategies(run: StoredRun) -> tuple[int, int, Floats]:
    """Mean strategies of the sessions that end with both firms at the commonest price (Figure A10).

    Returns:
        The commonest price index; the number of sessions that end there; (2, m, m) each firm's mean price index by
        firm 0's and firm 1's last price.

    Raises:
        ValueError: no session of two firms with a memory of one round ends in one price for both.
    """
    same = [
        (int(cycle.choices[0, 0]), strategies)
        for strategies, cycle in zip(run.strategies, run.cycles, strict=True)
        if cycle.kind == "1-symmetric"
    ]
    if not same or run.game.firms != 2 or run.game.memory != 1:
        raise ValueError("no session of two firms with a memory of one round ends in one price for both")
    commonest = int(np.bincount([price for price, _ in same]).argmax())
    chosen = [strategies for price, strategies in same if price == commonest]
    points = run.game.points
    return commonest, len(chosen), np.mean(chosen, axis=0).reshape(2, points, points)
