"""What firms perceive of past prices (memory, hidden prices, observation errors), and the bounds of these numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.bertrand.history import others
from llm_coop_envs.bertrand.rivalries import Rivalries
from llm_coop_envs.bertrand.rules import Floats, RoundOutcome, normalised_profits, positions, round_positions
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.bertrand.slots import Bin, PastRow
from llm_coop_envs.core.settings import OWN

AnyRow = TypeVar("AnyRow", PastRow, Bin)


def perceived_rows(
    rows: tuple[AnyRow, ...],
    settings: BertrandSettings,
    played: int,
    observe: Callable[[AnyRow], tuple[float, ...]] | None,
    is_present: Sequence[bool] | None,
) -> tuple[AnyRow, ...]:
    """Past rounds or blocks as one firm knows them.

    Args:
        rows: the rounds or blocks, with the exact prices of all rivals.
        settings: those in force for the firm: its memory and information.
        played: how many rounds were settled.
        observe: adds the firm's observation errors to a row's rival prices; `None` without errors.
        is_present: (rivals,) whether each is still in the market; `None` if all are.
    """
    if settings.memory is not None:
        first = played - settings.memory + 1
        rows = tuple(row for row in rows if (row.first if isinstance(row, Bin) else row.round) >= first)
    if settings.information == OWN or settings.group_size:
        return tuple(row._replace(rival_prices=()) for row in rows)
    if observe is not None:
        rows = tuple(row._replace(rival_prices=observe(row)) for row in rows)
    if is_present is None:
        return rows
    return tuple(row._replace(rival_prices=tuple(itertools.compress(row.rival_prices, is_present))) for row in rows)


def perceived_positions(
    last: RoundOutcome, rivalries: Rivalries, observe: Callable[[int, tuple[float, ...]], tuple[float, ...]]
) -> Floats:
    """The positions of the rivals' last prices as each firm perceives them.

    Args:
        last: the last round.
        rivalries: the markets by the firms in them.
        observe: adds a firm's observation errors to its rivals' prices.

    Returns:
        (firms, rivals), 0 in the rows and columns of firms that have left.
    """
    n = len(last.prices)
    firms = [i for i, price in enumerate(last.prices) if not math.isnan(price)]
    equilibria = rivalries[tuple(firms)].equilibria
    rival_positions = np.zeros((n, n - 1))
    for i in firms:
        observed = observe(i, others(last.prices, i))
        prices, row = [*observed[:i], last.prices[i], *observed[i:]], np.zeros(n)
        row[firms] = round_positions([prices[k] for k in firms], equilibria)
        rival_positions[i] = np.delete(row, i)
    return rival_positions


def append_presence(features: NDArray[np.float32], is_present: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Append each rival's presence to the features, and clear the prices of firms that have left.

    Args:
        features: (firms, firms + 2) rows; changed in place.
        is_present: (firms,) whether each is still in the market.

    Returns:
        (firms, 2 firms + 1).
    """
    n = len(is_present)
    presence = is_present.astype(np.float32)
    rival_presence = np.array([np.delete(presence, i) for i in range(n)])
    features[:, 2:-1] *= rival_presence
    features[~is_present] = [-1.0, *[0.0] * (n + 1)]
    return np.hstack([features, rival_presence])


def value_bounds(
    by_firms: Rivalries, floors: Sequence[float], caps: Sequence[float], n_features: int, n_firms: int
) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """The lowest and highest values of the features, (n_features,) each, and those of the state, (2 firms + 3,) each.

    Args:
        by_firms: the markets, by the firms in them.
        floors: (firms,) lowest prices.
        caps: (firms,) highest prices.
        n_features: the number of features; those beyond firms + 2 are presences.
        n_firms: how many firms there are, in groups that are all alike.
    """
    n = len(floors)
    low, high, gain = _value_ranges(by_firms, floors, caps)
    ones, presence = np.ones(1), np.ones(n_features - n - 2)
    feature_bounds = (
        np.concatenate([-ones, np.full(n, low.min()), -gain.max(keepdims=True), 0 * presence]),
        np.concatenate([ones, np.full(n, high.max()), gain.max(keepdims=True), presence]),
    )
    low, high, gain = (np.tile(values, n_firms // n) for values in (low, high, gain))
    state_bounds = np.concatenate([np.zeros(2), -ones, low, -gain]), np.concatenate([np.ones(3), high, gain])
    return feature_bounds, state_bounds


def _value_ranges(by_firms: Rivalries, floors: Sequence[float], caps: Sequence[float]) -> tuple[Floats, Floats, Floats]:
    """Bound each firm's price position and normalised profit over all markets it is ever in.

    A firm sells most at its own lowest price against the highest prices of its rivals, because demand falls in the own
    price and rises in the others'. Positions include 0, which stands in before there are prices.

    Args:
        by_firms: the markets, by the firms in them.
        floors: (firms,) lowest prices.
        caps: (firms,) highest prices.

    Returns:
        (firms,) the lowest position, the highest position, and the largest absolute normalised profit.
    """
    n = len(floors)
    low, high, gain = np.zeros(n), np.zeros(n), np.zeros(n)
    for rivalry in by_firms.values():
        firms = list(rivalry.firms)
        lowest, highest = ([ends[i] for i in firms] for ends in (floors, caps))
        low[firms] = np.minimum(positions(lowest, rivalry.equilibria), low[firms])
        high[firms] = np.maximum(positions(highest, rivalry.equilibria), high[firms])
        largest_profit = np.empty(len(firms))
        for i in range(len(firms)):
            best, worst = list(highest), list(lowest)
            best[i], worst[i] = lowest[i], highest[i]
            sold = max(abs(rivalry.market.demand(best)[i]), abs(rivalry.market.demand(worst)[i]))
            # One unit more than the product: truncation and rounding stay inside.
            largest_profit[i] = 1.0 + sold * max(abs(p - rivalry.market.cost[i]) for p in (lowest[i], highest[i]))
        for ends in (largest_profit, -largest_profit):
            gain[firms] = np.maximum(gain[firms], np.abs(normalised_profits(ends, rivalry.equilibria)))
    return low, high, gain


def round_table(names: Sequence[str], result: RoundOutcome) -> str:
    """A settled round as a table of text, for an onlooker."""
    lines = [f"{'':8}{'price':>10}{'sold':>10}{'profit':>12}"]
    for name, *values in zip(names, result.prices, result.demand, result.profits, strict=False):
        has_left = math.isnan(values[0])
        lines.append(f"{name:8}{'gone':>10}" if has_left else "{:8}{:10.4g}{:10.4g}{:12.6g}".format(name, *values))
    return "\n".join(lines)
