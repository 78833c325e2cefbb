"""How greedy strategies answer a deviation, and how they fare against strangers.

A deviation starts from a state (usually one of the limit cycle's): one firm asks another price than its strategy says
for one or more periods, the others follow theirs, and afterwards everybody does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from llm_coop_envs.baselines.q_learning.analysis import (
    TIE,
    LimitCycle,
    greedy_actions,
    limit_cycle,
    strategy_values,
)
from llm_coop_envs.baselines.q_learning.game import Floats, Game, Ints
from llm_coop_envs.bertrand.rules import profit_gain

HORIZON = 25
"""Periods of a response that are kept (the authors' code prints 25)."""

BUGGED = "authors_figure_4"
"""The deviation behind Figure 4 of Calvano et al. 2020; see `deviation_price`."""

_TARGETS = ("best_reply", "nash", "joint", "lowest", "highest", BUGGED)


@dataclass(frozen=True, eq=False)
class Response:
    """One deviation and what follows.

    Attributes:
        firm: who deviates.
        start: the state it deviates in.
        price: the index of the price it deviates to.
        before: (firms,) the prices that would have been asked without the deviation.
        prices: (horizon, firms) prices asked; row 0 is the period of the deviation.
        profits: (horizon, firms).
        length: periods until play is back on the cycle, the deviation included (authors' `ShockLength`). If it ends in
            another cycle: periods until that one is entered.
        returned: whether play comes back to the cycle it left.
        value: the deviator's discounted profits.
        value_before: what it would have had without deviating.
    """

    firm: int
    start: int
    price: int
    before: Floats
    prices: Floats
    profits: Floats
    length: int
    returned: bool
    value: float
    value_before: float

    @property
    def paid(self) -> bool:
        """Whether the deviation was worth more than not deviating."""
        return self.value - self.value_before > TIE * abs(self.value_before)

    @property
    def unprofitable(self) -> bool:
        """Whether it was worth less. A deviation to the price that is asked anyway is neither."""
        return self.value_before - self.value > TIE * abs(self.value_before)

    @property
    def rival_change(self) -> Floats:
        """Each rival's price change from the deviation's period to the next, as a share of the former."""
        rivals = np.arange(len(self.before)) != self.firm
        return np.asarray((self.prices[1, rivals] - self.prices[0, rivals]) / self.prices[0, rivals])


def static_best_reply(game: Game, strategies: Ints, state: int, firm: int) -> int:
    """The price that earns a firm most in this period against what the others' strategies ask; the lower of two.

    Args:
        game: the game.
        strategies: (firms, states).
        state: the state.
        firm: who replies.
    """
    weight = game.points ** (game.firms - 1 - firm)
    base = int(greedy_actions(game, strategies)[state]) - int(strategies[firm, state]) * weight
    return int(game.profits[base + np.arange(game.points) * weight, firm].argmax())


def deviation_price(game: Game, strategies: Ints, cycle: LimitCycle, place: int, firm: int, to: int | str) -> int:
    """The index of the price a deviation goes to.

    Args:
        game: the game.
        strategies: (firms, states).
        cycle: the cycle that is left.
        place: from which of its states, as a position in the cycle.
        firm: who deviates.
        to: a price index (a cut, or a rise: both are of interest, Epivent and Lambin 2024), or `"best_reply"` (static;
            Calvano et al. 2020), `"nash"`, `"joint"` (grid prices nearest to these), `"lowest"`, `"highest"`, or
            `"authors_figure_4"`: the authors' code computes the static best reply for Figure 4 in the state whose
            *number* is the position in the cycle, not in the cycle's state (their detailed analysis, behind Tables II,
            III and A5, has it right).

    Raises:
        ValueError: there is no such price.
    """
    if isinstance(to, int | np.integer):
        if not 0 <= to < game.points:
            raise ValueError(f"to={to!r}: price indices go from 0 to {game.points - 1}")
        return int(to)
    if to == "best_reply":
        return static_best_reply(game, strategies, int(cycle.states[place]), firm)
    if to == BUGGED:
        return static_best_reply(game, strategies, place, firm)
    if to in ("nash", "joint"):
        return int(game.nearest_to(getattr(game.marks, to))[firm])
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
) -> Response:
    """Force one firm to another price and watch.

    Args:
        game: the game.
        strategies: (firms, states).
        cycle: the limit cycle to which play may return.
        firm: who deviates.
        price: the index of the price it is forced to.
        start: the state it deviates in; any state, on the cycle or off it. `None`: the cycle's first.
        periods: for how many periods it is forced, 1 or more.
        horizon: how many periods are kept.

    Raises:
        ValueError: `periods` or `horizon` is below 1.
    """
    if periods < 1 or horizon < 1:
        raise ValueError(f"periods={periods}, horizon={horizon}: both must be 1 or more")
    state = origin = int(cycle.states[0]) if start is None else int(start)
    actions = greedy_actions(game, strategies)
    values = strategy_values(game, strategies)[firm]
    weight = game.points ** (game.firms - 1 - firm)
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
        state = int(game.after(state, action))
        if period == periods:
            value += discount * float(values[state])
        played.append(action)
        # While the price is forced the states say nothing about where play ends.
        if period >= periods and not settled:
            settled = state in on_cycle or state in seen
            returned = state in on_cycle
            length = period if returned else seen.setdefault(state, period)
    kept = np.array(played[:horizon], dtype=np.int64)
    return Response(
        firm=firm,
        start=origin,
        price=int(price),
        before=game.price_of(game.choices(actions[origin])),
        prices=game.price_of(game.choices(kept)),
        profits=game.profits[kept],
        length=length,
        returned=returned,
        value=value,
        value_before=float(values[origin]),
    )


def cycle_responses(
    game: Game,
    strategies: Ints,
    cycle: LimitCycle,
    to: int | str = "best_reply",
    *,
    periods: int = 1,
    horizon: int = HORIZON,
) -> list[Response]:
    """A deviation by every firm from every state of the cycle.

    Args:
        game: the game.
        strategies: (firms, states).
        cycle: the cycle that is left.
        to: where the deviations go; see `deviation_price`.
        periods: for how many periods.
        horizon: how many periods are kept.
    """
    return [
        impulse_response(
            game,
            strategies,
            cycle,
            firm=firm,
            price=deviation_price(game, strategies, cycle, place, firm, to),
            start=int(cycle.states[place]),
            periods=periods,
            horizon=horizon,
        )
        for firm in range(game.firms)
        for place in range(cycle.length)
    ]


@dataclass(frozen=True, eq=False)
class ResponseSummary:
    """Deviations of many sessions, summed up as Calvano et al. 2020 sum them up.

    Attributes:
        before: mean price before the deviation (cycle states and firms first, then sessions).
        deviator: (horizon,) the deviator's mean price; row 0 is the period of the deviation.
        rival: (horizon,) its rivals' mean price.
        change: mean change of a rival's price in answer, as a share (their IR). Here and below every deviation counts
            the same, whatever its session.
        unprofitable: share of deviations that were worth less than not deviating (their IC).
        paid: share that were worth more.
        length: mean length of the answer (their punishment length).
        returned: share after which play came back to its cycle.
        responses: how many deviations.
        sessions: how many sessions.
    """

    before: float
    deviator: Floats
    rival: Floats
    change: float
    unprofitable: float
    paid: float
    length: float
    returned: float
    responses: int
    sessions: int


def summarise(sessions: Iterable[Sequence[Response]]) -> ResponseSummary:
    """Sum up the deviations of many sessions.

    Args:
        sessions: each session's responses, all of one horizon, e.g. from `cycle_responses`.

    Raises:
        ValueError: there are none.
    """
    every = [list(responses) for responses in sessions]
    flat = [response for responses in every for response in responses]
    if not flat:
        raise ValueError("there are no responses to sum up")

    def rivals(response: Response) -> list[int]:
        return [j for j in range(len(response.before)) if j != response.firm]

    def path(one: Response, of_rivals: bool) -> Floats:
        return one.prices[:, rivals(one)].mean(axis=1) if of_rivals else one.prices[:, one.firm]

    return ResponseSummary(
        before=float(np.mean([np.mean([r.before.mean() for r in responses]) for responses in every])),
        deviator=np.mean([np.mean([path(r, False) for r in responses], axis=0) for responses in every], axis=0),
        rival=np.mean([np.mean([path(r, True) for r in responses], axis=0) for responses in every], axis=0),
        change=float(np.mean(np.concatenate([r.rival_change for r in flat]))),
        unprofitable=float(np.mean([r.unprofitable for r in flat])),
        paid=float(np.mean([r.paid for r in flat])),
        length=float(np.mean([r.length for r in flat])),
        returned=float(np.mean([r.returned for r in flat])),
        responses=len(flat),
        sessions=len(every),
    )


def repaired(
    game: Game, first: Ints, second: Ints, start: int, *, swap: Sequence[int] | None = None
) -> tuple[LimitCycle, float]:
    """Let firms trained in one session meet firms trained in another (Eschenbaum et al. 2022).

    Args:
        game: the game.
        first: (firms, states) strategies of one session.
        second: the same of another.
        start: the state play begins in.
        swap: which firms come from the second session; `None`: all but firm 0.

    Returns:
        The limit cycle they end in, and its profit gain.
    """
    mixed = np.array(first)
    chosen = list(range(1, game.firms)) if swap is None else list(swap)
    mixed[chosen] = np.asarray(second)[chosen]
    cycle = limit_cycle(game, mixed, start)
    return cycle, float(profit_gain(cycle.profits.mean(axis=0), game.marks))
