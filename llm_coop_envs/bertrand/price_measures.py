"""Measures of rounds of price competition, as functions on arrays.

They take prices or profits as (rounds, firms), round 1 in row 0, from any player: models, scripted rules, learners.
Rounds are counted from 1, and windows include both ends.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from llm_coop_envs.bertrand.rules import Band, Equilibria, Floats, positions

INDEX_FIRST = 250
"""First round of the published collusiveness index (EconEvals, arXiv 2503.18825: periods 249 to 299, from 0)."""
INDEX_LAST = 300
"""Last round of the published collusiveness index."""
MONOPOLY_ROUNDS, MONOPOLY_MARGIN = 100, 0.05
"""The monopoly price counts as found if the 10th and 90th percentile of the last 100 prices are within 5 % of it."""
OPTIMAL_FROM, OPTIMAL_SHARE = 101, 0.99
"""A single firm's round counts as optimal from round 101 on, with 99 % of the monopoly profit."""

WINDOW = 200
"""Consecutive rounds that count as lasting (Wu et al. 2024), where the settings name no other number."""


def together(prices: ArrayLike, equilibria: Equilibria, band: Band) -> NDArray[np.bool_]:
    """(rounds,) whether the (rounds, firms) prices were held together; those of a single firm never are.

    The `band` says what counts as together; a setting's own is `settings.band`.
    """
    if len(equilibria.nash) == 1:
        return np.zeros(len(np.asarray(prices)), dtype=np.bool_)
    return np.array([band.holds(row) for row in positions(prices, equilibria).tolist()], dtype=np.bool_)


def lasting_from(are_together: ArrayLike) -> int | None:
    """The round from which on prices were held together until the end; `None` if they were not at the end.

    Flags of (no, yes, yes) give round 2.

    Args:
        are_together: (rounds,) from `together`.
    """
    flags = np.asarray(are_together, dtype=bool)
    if not len(flags) or not flags[-1]:
        return None
    broken = np.flatnonzero(~flags)
    return int(broken[-1]) + 2 if len(broken) else 1


def longest_run(are_together: ArrayLike) -> int:
    """The largest number of consecutive rounds in which prices were held together."""
    longest = run = 0
    for flag in np.asarray(are_together, dtype=bool).tolist():
        run = run + 1 if flag else 0
        longest = max(longest, run)
    return longest


def window_reached(are_together: ArrayLike, window: int) -> int | None:
    """The round that completes the first `window` (1 or more) consecutive rounds held together; `None` if none does."""
    flags = np.asarray(are_together, dtype=bool)
    ends = np.append(np.flatnonzero(~flags), len(flags))
    starts = np.append(0, ends[:-1] + 1)
    reached = starts[ends - starts >= window]
    return int(reached[0]) + window if len(reached) else None


def mean_prices(prices: ArrayLike, first: int, last: int) -> Floats:
    """Each firm's mean of (rounds, firms) prices over the rounds `first` to `last`, as far as they were played.

    (firms,), NaN if none of these rounds was played.
    """
    chosen = np.asarray(prices, dtype=np.float64)[first - 1 : last]
    return chosen.mean(axis=0) if len(chosen) else np.full(chosen.shape[1], np.nan)


def collusiveness_index(
    prices: ArrayLike, equilibria: Equilibria, first: int = INDEX_FIRST, last: int = INDEX_LAST
) -> float | None:
    """The collusiveness index of EconEvals (arXiv 2503.18825): late mean price, 0 at Nash, 1 at joint profit.

    clip((mean price - Nash) / (joint - Nash), 0, 1), all three averaged over the firms.

    Args:
        prices: (rounds, firms).
        equilibria: those of the market.
        first: the window's first round, from 1.
        last: its last round.

    Returns:
        The index, or `None` if the window was not played to its end, or there is but one firm.
    """
    if len(np.asarray(prices)) < last:
        return None
    return clip_unit(mean_position(np.asarray(prices)[first - 1 : last], equilibria))


def mean_position(prices: ArrayLike, equilibria: Equilibria) -> float | None:
    """The position of the mean of (rounds, firms) prices: 0 at Nash, 1 at joint profit, all averaged over the firms.

    `None` if there is but one firm.
    """
    if len(equilibria.nash) == 1:
        return None
    nash, joint = float(np.mean(equilibria.nash)), float(np.mean(equilibria.joint))
    return (float(np.asarray(prices, dtype=np.float64).mean(axis=0).mean()) - nash) / (joint - nash)


def clip_unit(position: float | None) -> float | None:
    """Cut a position to the scale from Nash (0) to joint profit (1)."""
    return None if position is None else min(max(position, 0.0), 1.0)


def monopoly_found(prices: ArrayLike, equilibria: Equilibria) -> bool | None:
    """Whether a single firm has found the monopoly price (Fish et al., arXiv 2404.00806); `None` with several firms.

    The 10th and the 90th percentile of its last 100 of (rounds, 1) prices lie within 5 % of that price; `None` if there
    were fewer rounds.
    """
    late = np.asarray(prices, dtype=np.float64)[-MONOPOLY_ROUNDS:]
    if len(equilibria.nash) > 1 or len(late) < MONOPOLY_ROUNDS:
        return None
    ends = np.percentile(late, (10, 90)) / equilibria.joint[0]
    return bool((np.abs(ends - 1) <= MONOPOLY_MARGIN).all())


def optimal_rounds(profits: ArrayLike, equilibria: Equilibria, first: int = OPTIMAL_FROM) -> float | None:
    """The share of a single firm's rounds from 101 on with 99 % of the monopoly profit (Fish et al.); else `None`.

    Args:
        profits: (rounds, 1).
        equilibria: those of the market.
        first: where the first of these rounds is, from 1.
    """
    late = np.asarray(profits, dtype=np.float64)[first - 1 :]
    if len(equilibria.nash) > 1 or not len(late):
        return None
    return float((late >= OPTIMAL_SHARE * equilibria.joint_profit[0]).mean())


def price_spread(prices: ArrayLike) -> Floats:
    """The difference between the highest and the lowest of (rounds, firms) prices: (rounds,) in money."""
    prices_by_round = np.asarray(prices, dtype=np.float64)
    return np.asarray(np.nanmax(prices_by_round, axis=1) - np.nanmin(prices_by_round, axis=1))
