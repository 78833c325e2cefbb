"""The games: what everybody gets for the actions of all, without randomness, text or PettingZoo."""

from collections.abc import Sequence
from itertools import product
from math import fsum

MATRIX, PUBLIC_GOODS, TRAVELLERS = "matrix", "public_goods", "travellers"
Payoffs = tuple[float, ...]


def matrix_payoffs(cells: Sequence[Sequence[Sequence[float]]], actions: Sequence[int]) -> Payoffs:
    """What two players get: the cell in the first one's row and the second one's column."""
    row, column = actions
    return tuple(float(payoff) for payoff in cells[row][column])


def public_payoffs(multiplier: float, actions: Sequence[int]) -> Payoffs:
    """What contributors (action 0) and the others get: an equal part of what was contributed, the others 1 more."""
    part = multiplier * list(actions).count(0) / len(actions)
    return tuple(part + (action != 0) for action in actions)


def claim_payoffs(claims: Sequence[float], bonus: float) -> Payoffs:
    """What is paid for claims: to all the lowest, with the bonus for who made it, less the bonus for the others.

    Equal claims are paid as claimed.
    """
    lowest = min(claims)
    if max(claims) == lowest:
        return tuple(claims)
    return tuple(lowest + (bonus if claim == lowest else -bonus) for claim in claims)


def best_reply(payoffs: Sequence[float], usual: int) -> int:
    """The action with the highest payoff; of equal ones `usual`, or else the last."""
    best = [action for action, payoff in enumerate(payoffs) if payoff == max(payoffs)]
    return usual if usual in best else best[-1]


def mean(values: Sequence[float]) -> float:
    """The mean."""
    return fsum(values) / len(values)


def profiles(players: int, actions: int) -> list[tuple[int, ...]]:
    """Every combination of the players' actions."""
    return list(product(range(actions), repeat=players))
