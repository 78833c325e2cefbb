"""The game of choosing a policy, from the payoffs of every line-up: best replies, evolution, regret, ratings.

Payoffs are an array with one axis per player: `payoffs[i, j]` is what policy i earns against policy j, and with three
players `payoffs[i, j, k]` against j and k, whatever their order. Everybody chooses from the same policies. Nothing here
draws random numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.util.extras import need

Floats = NDArray[np.float64]
#: Payoffs that differ by less, in parts of the largest, are equal.
EQUAL = 1e-9
#: By how much the solver of deviation ratings may miss a limit, in parts of the largest payoff.
_TOLERANCE = 1e-7


def expected_payoffs(payoffs: Floats, shares: Floats) -> Floats:
    """What each policy earns where everybody else draws a policy by these shares."""
    while payoffs.ndim > 1:
        payoffs = payoffs @ shares
    return payoffs


def best_replies(payoffs: Floats) -> NDArray[np.bool_]:
    """Whether each policy earns most against the others of its place in the array; all that earn alike do."""
    slack = EQUAL * max(1.0, float(np.abs(payoffs).max()))
    best: NDArray[np.bool_] = payoffs >= payoffs.max(axis=0, keepdims=True) - slack
    return best


def replicator_path(payoffs: Floats, start: Floats, steps: int, rate: float) -> Floats:
    """Shares of policies under selection, one row for the start and one for each step.

    A step multiplies each share by `exp(rate * payoff)` and scales the sum to 1. So the logarithm of the ratio of two
    shares grows by `rate` times the difference of what they earn.
    """
    logs = np.log(start, out=np.full(len(start), -np.inf), where=start > 0)
    path = [start / start.sum()]
    for _ in range(steps):
        logs = logs + rate * expected_payoffs(payoffs, path[-1])
        logs = logs - logs.max()
        shares = np.exp(logs)
        path.append(shares / shares.sum())
    return np.array(path)


def regrets(payoffs: Floats, shares: Floats) -> Floats:
    """How much more the best policy earns than each one, where everybody else draws by these shares."""
    earned = expected_payoffs(payoffs, shares)
    gaps: Floats = earned.max() - earned
    return gaps


def exploitability(payoffs: Floats, shares: Floats) -> float:
    """How much more the best policy earns than these shares do against themselves; 0 in an equilibrium."""
    return float(regrets(payoffs, shares) @ shares)


def deviation_ratings(payoffs: Floats) -> Floats:
    """Deviation ratings (Marris et al. 2025): gains from switching to each policy, pushed down as far as they go.

    Over all joint distributions of line-ups, the largest expected gain from switching is minimised; then, those that
    cannot be lowered being held, the largest among the others, and so on. The best policies have the highest rating. A
    copy of a policy changes no rating of another.

    Raises:
        MissingExtra: SciPy is not installed.
    """
    linprog = need("scipy.optimize", "a deviation rating", "study").linprog
    count, scale = len(payoffs), max(1.0, float(np.abs(payoffs).max()))
    gains = _gains(payoffs) / scale
    cells = gains.shape[1]
    ratings = np.full(count, np.nan)
    slack = _TOLERANCE
    objective = np.append(np.zeros(cells), 1.0)
    while np.isnan(ratings).any():
        free = np.isnan(ratings)
        rows = np.hstack([gains, -free[:, None].astype(float)])
        solved = linprog(
            objective,
            A_ub=rows,
            b_ub=np.where(free, 0.0, ratings + slack),
            A_eq=np.append(np.ones(cells), 0.0)[None, :],
            b_eq=[1.0],
            bounds=[(0, None)] * cells + [(None, None)],
            method="highs",
        )
        if not solved.success:  # gains that were held are missed by rounding
            slack *= 10
            continue
        # A price above 0 says that the limit binds in every solution. The prices of all free ones sum to 1.
        prices = np.where(free, -solved.ineqlin.marginals, -np.inf)
        ratings[prices >= min(_TOLERANCE, prices.max())] = solved.x[-1]
    return ratings * scale


def _gains(payoffs: Floats) -> Floats:
    """What a player gains by switching to each policy, in each line-up, on average over the players.

    Averaging over players is no loss where all have the same policies: the joint distribution may then be symmetric.
    """
    players = payoffs.ndim
    parts: list[Any] = []
    for player in range(players):
        own_first = np.moveaxis(payoffs, 0, player)  # what this player earns in each line-up
        parts.append([_replaced(own_first, player, policy) - own_first for policy in range(len(payoffs))])
    gains: Floats = np.mean(parts, axis=0).reshape(len(payoffs), -1)
    return gains


def _replaced(earned: Floats, player: int, policy: int) -> Floats:
    """What a player earns in each line-up if it switches to a policy."""
    switched: Floats = np.broadcast_to(np.take(earned, [policy], axis=player), earned.shape)
    return switched


def payoff_array(means: dict[tuple[int, ...], float], count: int, players: int) -> Floats:
    """The array of payoffs, from means by (own policy, the others' in ascending order).

    Raises:
        KeyError: a line-up is missing.
    """
    payoffs = np.empty((count,) * players)
    for line_up in np.ndindex(*payoffs.shape):
        payoffs[line_up] = means[line_up[:1] + tuple(sorted(line_up[1:]))]
    return payoffs


def shares_of(start: Sequence[float] | None, count: int) -> Floats:
    """Shares that sum to 1; equal ones without a start."""
    shares: Floats = np.ones(count) if start is None else np.asarray(start, dtype=float)
    scaled: Floats = shares / shares.sum()
    return scaled
