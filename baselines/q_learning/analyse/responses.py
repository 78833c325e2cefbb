"""How greedy strategies answer a deviation, and how they fare against firms of another session.

A deviation starts from a state, usually one of the limit cycle: one firm asks another price than its strategy's for one
or more periods while the others follow theirs; afterwards all firms follow their strategies.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from llm_coop_envs.baselines.q_learning.analyse.analysis import LimitCycle, limit_cycle
from llm_coop_envs.baselines.q_learning.learn.game import Game, Ints
from llm_coop_envs.baselines.q_learning.learn.strategies import greedy_actions, strategy_values
from llm_coop_envs.bertrand.deviation import HORIZON, Response
from llm_coop_envs.bertrand.rules import profit_gain

BUGGED = "authors_figure_4"
"""The deviation behind Figure 4 of Calvano et al. 2020; see `deviation_price`."""

_TARGETS = ("best_reply", "nash", "joint", "lowest", "highest", BUGGED)


@dataclass(frozen=True, eq=False, kw_only=True)
class TableResponse(Response):
    """The response of Q tables to a deviation.

    Attributes:
        start: the state in which the firm deviates.
        price: the index of the price that it deviates to.
    """

    start: int
    price: int


def static_best_reply(game: Game, strategies: Ints, state: int, firm: int) -> int:
    """The price that earns a firm most in one period against the others' strategies; the lowest of equal ones."""
    weight = game.points ** (game.firms - 1 - firm)
    base = int(greedy_actions(game, strategies)[state]) - int(strategies[firm, state]) * weight
    return int(game.profits[base + np.arange(game.points) * weight, firm].argmax())


def deviation_price(game: Game, strategies: Ints, cycle: LimitCycle, position: int, firm: int, to: int | str) -> int:
    """The index of the price that a firm deviates to.

    Args:
        game: the game that is played.
        strategies: (firms, states) price indices.
        cycle: the limit cycle that the firm deviates from.
        position: which state of the cycle it deviates in, from 0.
        firm: the deviating firm.
        to: a price index (cuts and rises are both of interest, Epivent and Lambin 2024), or `"best_reply"` (static;
            Calvano et al. 2020), `"nash"`, `"joint"` (the nearest grid prices), `"lowest"`, `"highest"`, or
            `"authors_figure_4"`: for Figure 4, the authors' code computes the static best reply in the state whose
            *number* is the position in the cycle, and not in the cycle's state (their detailed analysis, behind Tables
            II, III and A5, uses the right state).

    Raises:
        ValueError: there is no such price.
    """
    if isinstance(to, int | np.integer):
        if not 0 <= to < game.points:
            raise ValueError(f"to={to!r}: price indices go from 0 to {game.points - 1}")
        return int(to)
    if to == "best_reply":
        return static_best_reply(game, strategies, int(cycle.states[position]), firm)
    if to == BUGGED:
        return static_best_reply(game, strategies, position, firm)
    if to in ("nash", "joint"):
        return int(game.nearest_to(getattr(game.equilibria, to))[firm])
    if to in ("lowest", "highest"):
        return 0 if to == "lowest" else game.points - 1
    raise ValueError(f"to={to!r}: must be a price index or one of {', '.join(_TARGETS)}")


def impulse_response(
    game: Game,
    strategies: Ints,
    cycle: LimitCycle,
    *,
    firm: int,
    price: int,
    start: int | None = None,
    periods: int = 1,
    horizon: int = HORIZON,
    misread: bool = False,
) -> TableResponse:
    """Force one firm to another price and follow play afterwards.

    Args:
        game: the game that is played.
        strategies: (firms, states) price indices.
        cycle: the limit cycle to which play may return.
        firm: the deviating firm.
        price: the index of the price that it is forced to.
        start: the state in which it deviates, on the cycle or off it; `None`: the cycle's first.
        periods: number of periods in which it is forced, 1 or more.
        horizon: number of periods in the result.
        misread: read the state before the deviation as the authors' code does; see `Game.misread`.

    Raises:
        ValueError: `periods` or `horizon` is below 1.
    """
    if periods < 1 or horizon < 1:
        raise ValueError(f"periods={periods}, horizon={horizon}: both must be 1 or more")
    state = origin = int(cycle.states[0]) if start is None else int(start)
    actions = greedy_actions(game, strategies)
    values = strategy_values(game, strategies)[firm]
    weight = game.points ** (game.firms - 1 - firm)
    remembered = int(game.misread(origin)) if misread else origin
    usual = int(game.next_state(remembered, actions[origin]))
    on_cycle = set(cycle.states.tolist())
    seen: dict[int, int] = {}
    played: list[int] = []
    value, discount = 0.0, 1.0
    length, returned, settled = 0, False, False
    period = 0
    while period < max(horizon, periods) or not settled:
        period += 1
        action = int(actions[state])
        if period <= periods:
            action += (price - int(strategies[firm, state])) * weight
            value += discount * float(game.profits[action, firm])
            discount *= game.delta[firm]
        state = int(game.next_state(state if period > 1 else remembered, action))
        if period == periods:
            value += discount * float(values[state])
        played.append(action)
        # While the price is forced, states do not tell where play ends.
        if period >= periods and not settled:
            settled = state in on_cycle or state in seen
            returned = state in on_cycle
            length = period if returned else seen.setdefault(state, period)
    first_actions = np.array(played[:horizon], dtype=np.int64)
    return TableResponse(
        firm=firm,
        start=origin,
        price=int(price),
        before=game.price_of(game.choices(actions[origin])),
        prices=game.price_of(game.choices(first_actions)),
        profits=game.profits[first_actions],
        length=length,
        returned=returned,
        value=value,
        value_before=float(game.profits[actions[origin], firm] + game.delta[firm] * values[usual]),
    )


def cycle_responses(
    game: Game,
    strategies: Ints,
    cycle: LimitCycle,
    to: int | str = "best_reply",
    *,
    periods: int = 1,
    horizon: int = HORIZON,
    misread: bool = False,
) -> list[TableResponse]:
    """The responses to a deviation by every firm from every state of the cycle.

    Arguments are those of `deviation_price` and `impulse_response`.
    """
    return [
        impulse_response(
            game,
            strategies,
            cycle,
            firm=firm,
            price=deviation_price(game, strategies, cycle, position, firm, to),
            start=int(cycle.states[position]),
            periods=periods,
            horizon=horizon,
            misread=misread,
        )
        for firm in range(game.firms)
        for position in range(cycle.length)
    ]


def repaired(game: Game, first: Ints, second: Ints, start: int) -> tuple[LimitCycle, float]:
    """Let firm 0 of one session meet the other firms of another session (Eschenbaum et al. 2022).

    Returns:
        The limit cycle of their play from state `start`, and its profit gain.
    """
    mixed = np.array(second)
    mixed[0] = first[0]
    cycle = limit_cycle(game, mixed, start)
    return cycle, float(profit_gain(cycle.profits.mean(axis=0), game.equilibria))
