"""Q-learners of whom the third comes and goes by chance (Calvano et al. 2020, appendix; their program `entryexit`).

Three firms ask prices of the grid for three. In every period the third firm comes in, if it is out, with probability
`rate`, and leaves with the same one if it is in. Being out is one more number among its prices and part of the state.
What it brings is learned like a price and may become greedy: then the firm leaves of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from llm_coop_envs.baselines.q_learning.analyse.analysis import LimitCycle, equilibrium_play, limit_cycle
from llm_coop_envs.baselines.q_learning.analyse.measures import Row, mean_over
from llm_coop_envs.baselines.q_learning.analyse.responses import cycle_responses
from llm_coop_envs.baselines.q_learning.learn.game import Game
from llm_coop_envs.baselines.q_learning.learn.initial import against_uniform
from llm_coop_envs.baselines.q_learning.learn.sessions import Session, exploration
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.bertrand.rules import Benchmarks, profit_gain
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.core.settings import Settings
from llm_coop_envs.util.checks import check_number

FIRMS = 3
FAR = 100.0
"""The price of a firm that is out, in joint-profit prices: nobody buys at it."""


@dataclass(frozen=True, kw_only=True)
class EntrySettings(Settings):
    """What learns; the defaults are the first of the paper's two experiments.

    Attributes:
        rate: the probability of an entry per period out, and of an exit per period in (their rho).
        points: prices of the grid.
        alpha: step of an update.
        beta: decay of exploration per period.
        delta: discount factor.
        window: converged when no greedy price changed for so many periods.
        max_periods: stop unconverged after so many.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {"points": (2, 15)}

    rate: float = 1e-3
    points: int = 15
    alpha: float = 0.15
    beta: float = 4e-6
    delta: float = 0.95
    window: int = 100_000
    max_periods: int = 1_250_000_000

    def __post_init__(self) -> None:
        """Check every field."""
        super().__post_init__()
        check_number(self, "rate", 0.0, 1.0, above=True)
        _ = self.learners

    @property
    def learners(self) -> QLearningSettings:
        """The same learners without entry and exit, who check the rest."""
        market = BertrandSettings.build("calvano", firms=FIRMS, grid_points=self.points)
        rest = {name: getattr(self, name) for name in ("alpha", "beta", "delta", "window", "max_periods")}
        return QLearningSettings(market=market, **rest)

    def game(self) -> Game:
        """The game as arrays, with one price more: being out."""
        learners = self.learners
        grids = [(*grid, FAR * price) for grid, price in zip(learners.grids, learners.marks.joint, strict=True)]
        return Game.of(learners.market.market, learners.marks, grids, 1, learners.spread("delta"))


def run_entry(settings: EntrySettings, seed: int, number: int = 0, *, game: Game | None = None) -> Session:
    """Run one session; the same seed and number give the same one.

    Raises:
        MissingExtra: the compiler is not installed.
    """
    from llm_coop_envs.baselines.q_learning.learn.entry_loop import learn_with_entry
    from llm_coop_envs.baselines.q_learning.learn.layout import Tables, digit_bits, first_greedy
    from llm_coop_envs.baselines.q_learning.learn.vectors import LANES

    game = settings.game() if game is None else game
    out = settings.points
    draws, begins, chance = np.random.SeedSequence(seed, spawn_key=(number,)).spawn(3)
    uniform = np.random.Generator(np.random.PCG64(begins)).random
    q = against_uniform(game, (FIRMS, game.states, game.points))
    outs = q[-1, :, out].copy()
    # No firm asks it as a price; the third one's value of it is kept aside.
    q[:, :, out] = -np.inf
    tables, luck = Tables.of(game, q), chance.generate_state(1, np.uint64).astype(np.int64)
    first_greedy(tables.q, tables.records, tables.greedy, tables.names, FIRMS, digit_bits(out + 1), False, False, luck)
    begun = [int(out * uniform()) for _ in range(FIRMS)]
    if uniform() > 0.5:
        begun[-1] = out
    values = np.zeros(len(tables.greedy))
    values[tables.names] = outs
    scale, growth = exploration(settings.learners, docked=False)
    periods, converged, last = learn_with_entry(
        tables.q,
        tables.records,
        tables.greedy,
        values,
        tables.market_profits(settings.alpha * game.profits[None]),
        np.array([1.0 - settings.alpha, settings.alpha * settings.delta, settings.rate]),
        out,
        digit_bits(out + 1),
        scale,
        growth,
        draws.generate_state(4 * LANES, np.uint64).reshape(4, LANES).copy(),
        luck,
        settings.window,
        settings.max_periods,
        int(tables.names[game.action(begun)]),
    )
    strategies, table = tables.results()
    table[-1, :, out] = values[tables.names]
    last_state = int(np.searchsorted(tables.names, last))
    trace = np.zeros((0, FIRMS), dtype=np.int64)
    return Session(number, int(periods), bool(converged), last_state, strategies, table, trace)


def entry_row(settings: EntrySettings, game: Game, without: Benchmarks, session: Session) -> Row:
    """What is measured of a session, as the authors' program and table do.

    Returns:
        `time`, `converged`, `gain` (of the two others while the third is out, between Nash and joint profit of two;
        `None` if the limit cycle has no such period), `gain_in` (of all three while it is in), `equilibrium`; over all
        answers to static best replies in which neither the deviator nor the rival is out: `answers`, `answer` and
        `punishment` of rivals, `deviations` and `unprofitable` of deviators.
    """
    cycle = limit_cycle(game, session.strategies, session.last_state)
    outside = cycle.choices[:, -1] == settings.points
    inside = cycle.profits[~outside].mean(axis=0) if not outside.all() else None
    row: Row = {
        "time": session.periods - settings.window,
        "converged": session.converged,
        "gain": float(profit_gain(cycle.profits[outside, :-1].mean(axis=0), without)) if outside.any() else None,
        "gain_in": None if inside is None else float(profit_gain(inside, game.marks)),
        "equilibrium": equilibrium_play(game, session.strategies, cycle).on_path,
    }
    return row | _answers(settings, game, session, cycle)


def _answers(settings: EntrySettings, game: Game, session: Session, cycle: LimitCycle) -> Row:
    far = 0.5 * FAR * max(game.marks.joint)
    changes, lengths, unprofitable = [], [], []
    for one in cycle_responses(game, session.strategies, cycle, horizon=2):
        for i in range(FIRMS):
            before, after = one.prices[:2, i]
            if max(before, after) > far:
                continue
            if i == one.firm:
                unprofitable.append(one.value < one.value_before)
            else:
                changes.append((after - before) / before)
                lengths.append(float(one.length or 0))
    return {
        "answers": len(changes),
        "answer": float(np.mean(changes)) if changes else 0.0,
        "punishment": float(np.mean(lengths)) if lengths else 0.0,
        "deviations": len(unprofitable),
        "unprofitable": float(np.mean(unprofitable)) if unprofitable else 0.0,
    }


def entry_summary(rows: Sequence[Row]) -> Row:
    """Means over sessions with their standard errors, by the names of `measures.summary`.

    `gain` is over the sessions that have it, `with_exits` how many these are.
    """
    found: Row = {"sessions": len(rows), "converged": sum(row["converged"] for row in rows)}
    for name in ("gain", "gain_in"):
        having = [row for row in rows if row[name] is not None]
        found |= mean_over(having, name) if having else {name: float("nan"), f"{name}_se": float("nan")}
    found["with_exits"] = sum(row["gain"] is not None for row in rows)
    for name in ("time", "equilibrium"):
        found |= mean_over(rows, name)
    for name, counted in (("answer", "answers"), ("punishment", "answers"), ("unprofitable", "deviations")):
        found |= mean_over(rows, name, np.array([row[counted] for row in rows], dtype=np.float64))
    return found
