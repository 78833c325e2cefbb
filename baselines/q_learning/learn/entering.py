"""Q-learning with random entry and exit of the third firm (Calvano et al. 2020, appendix; their program `entryexit`).

Three firms ask prices of the grid for three firms. In every period the third firm enters with probability `rate` if it
is out, and leaves with the same probability if it is in. Being out is one more "price" of the third firm and part of
the state. Its value is learned like a price's and may become the greedy one: then the firm leaves of its own accord.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from llm_coop_envs.baselines.q_learning.learn.game import Game
from llm_coop_envs.baselines.q_learning.learn.initial import against_uniform
from llm_coop_envs.baselines.q_learning.learn.sessions import Session, exploration
from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.core.settings import Settings
from llm_coop_envs.util.checks import check_number

FIRMS = 3
FAR = 100.0
"""The price of a firm that is out, as a multiple of the joint-profit price: nobody buys at it."""


@dataclass(frozen=True, kw_only=True)
class EntrySettings(Settings):
    """Settings of the learners; the defaults are the first of the paper's two experiments.

    Attributes:
        rate: the probability of an entry per period out, and of an exit per period in (their rho).
        points: number of prices of the grid.
        alpha: step of an update.
        beta: decay of exploration per period.
        delta: discount factor.
        window: number of periods without a changed greedy price that counts as convergence.
        max_periods: longest session.
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
        """The same learners without entry and exit; making them checks the other fields."""
        market = BertrandSettings.build("calvano", firms=FIRMS, grid_points=self.points)
        shared = {name: getattr(self, name) for name in ("alpha", "beta", "delta", "window", "max_periods")}
        return QLearningSettings(market=market, **shared)

    def game(self) -> Game:
        """The game as arrays, with being out as one more price."""
        learners = self.learners
        grids = [(*grid, FAR * price) for grid, price in zip(learners.grids, learners.equilibria.joint, strict=True)]
        return Game.tabulate(learners.market.market, learners.equilibria, grids, 1, learners.spread("delta"))


def run_entry(settings: EntrySettings, seed: int, number: int = 0, *, game: Game | None = None) -> Session:
    """Run one session; the same seed and number give the same session.

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
    # No firm may ask being out as a price. The third firm's value of it is kept in an array of its own, `values`.
    q[:, :, out] = -np.inf
    tables, luck = Tables.lay_out(game, q), chance.generate_state(1, np.uint64).astype(np.int64)
    first_greedy(tables.q, tables.records, tables.greedy, tables.names, FIRMS, digit_bits(out + 1), False, False, luck)
    first_choices = [int(out * uniform()) for _ in range(FIRMS)]
    if uniform() > 0.5:
        first_choices[-1] = out
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
        int(tables.names[game.action(first_choices)]),
    )
    strategies, table = tables.results()
    table[-1, :, out] = values[tables.names]
    last_state = int(np.searchsorted(tables.names, last))
    trace = np.zeros((0, FIRMS), dtype=np.int64)
    return Session(number, int(periods), bool(converged), last_state, strategies, table, trace)
