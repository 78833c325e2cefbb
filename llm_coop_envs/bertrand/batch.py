"""Price competition in batches: thousands of markets settled at once."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.bertrand.env import BertrandEnv
from llm_coop_envs.bertrand.rules import Floats, positions
from llm_coop_envs.bertrand.settings import IN_TURN, BertrandSettings
from llm_coop_envs.bertrand.settlement import Settlement
from llm_coop_envs.core.settings import OWN
from llm_coop_envs.util.many_streams import first_integers, first_uniforms
from llm_coop_envs.wrappers.batch import BatchEnv, Copies, Flags, Played, Rows

# Price combinations of a grid that are settled in advance: 15 prices of 3 firms are 3,375.
_TABLE = 20_000
# Random rounds on which compiled arithmetic must agree with the environment's before it is used.
_TRIALS = 256


class SettledRounds(NamedTuple):
    """What rounds come to in many markets.

    Attributes:
        profits: (rounds, firms).
        gains: (rounds, firms) normalised profits.
        rows: (rounds, firms, firms + 2) what firms see of them.
        together: (rounds,) whether prices were held together.
    """

    profits: Floats
    gains: Floats
    rows: Rows
    together: Flags


def one_by_one(settlement: Settlement, prices: Floats) -> SettledRounds:
    """Settle rounds of prices, (rounds, firms), by the environment's own arithmetic."""
    settled = [settlement.settle(tuple(row)) for row in prices.tolist()]
    return SettledRounds(
        np.array([one.outcome.profits for one in settled]),
        np.array([one.outcome.gains for one in settled]),
        np.array([one.features for one in settled]),
        np.array([one.outcome.together for one in settled], dtype=np.bool_),
    )


class Settler:
    """Settles rounds of prices, bit for bit as the environment does, with the compiler where it is installed.

    Where the compiler's exponential is not that of Python's library, rounds are settled one by one instead.

    Args:
        settlement: the environment's own.
        lowest: each firm's lowest price.
        highest: each firm's highest price.
    """

    def __init__(self, settlement: Settlement, lowest: Floats, highest: Floats) -> None:
        from llm_coop_envs.bertrand.settling import market_numbers, settle_rounds  # imports the compiler

        self._settlement = settlement
        self._settle_rounds = settle_rounds
        self._numbers = market_numbers(settlement.rivalry)
        if self._numbers is not None:
            trials = np.random.default_rng(0).uniform(lowest, highest, (_TRIALS, len(lowest)))
            pairs: Any = zip(self._at_once(trials), one_by_one(settlement, trials), strict=True)
            if not all(np.array_equal(ours, exact) for ours, exact in pairs):
                self._numbers = None

    def settle(self, prices: Floats) -> SettledRounds:
        """Settle rounds of prices, (rounds, firms)."""
        return one_by_one(self._settlement, prices) if self._numbers is None else self._at_once(prices)

    def _at_once(self, prices: Floats) -> SettledRounds:
        rounds, n = prices.shape
        profits, gains, together = np.empty((rounds, n)), np.empty((rounds, n)), np.empty(rounds, dtype=np.bool_)
        rows = np.empty((rounds, n, n + 2), dtype=np.float32)
        self._settle_rounds(self._numbers, prices, profits, gains, rows, together)
        return SettledRounds(profits, gains, rows, together)


class BertrandBatch(BatchEnv):
    """Copies of a market without talk; see `BatchEnv`, and `BertrandEnv` for choices, rewards and features.

    Choices are grid indices, or prices in the market's money. On small grids all combinations of prices are settled in
    advance, by the environment's own arithmetic.

    Args:
        env: the market.
        copies: how many of them.
    """

    off: ClassVar[Mapping[str, Any]] = {**BatchEnv.off, "known": ()}
    kept = ("_rounds_played", "_streak", "_chosen", "_is_known")

    def __init__(self, env: BertrandEnv, copies: int) -> None:
        super().__init__(env, copies)
        self._settings: BertrandSettings = env.settings
        self._price_choices = env._price_choices
        n = self._settings.firms
        self._grids = np.array(self._price_choices.grids)
        self._costs = np.array(env._costs)
        self._floors, self._caps = np.array(self._price_choices.floors), np.array(self._price_choices.caps)
        self._near_cost = self._price_choices.indices_near_cost(np.arange(n)) if len(self._grids) else self._costs
        self._in_turn = self._settings.moves == IN_TURN
        self._settlement = env._settlement
        self._limit = min(self._settings.rounds, env._horizon or self._settings.rounds)
        self._tabulate(n)
        self._rounds_played = np.zeros(copies, dtype=np.int64)
        self._streak = np.zeros(copies, dtype=np.int64)
        self._chosen: NDArray[Any] = np.zeros(self._shape, dtype=np.int64 if len(self._grids) else np.float64)
        self._is_known = np.zeros(copies, dtype=np.bool_)
        self._start = self._as_choices(self._settings.start)

    @functools.cached_property
    def _settler(self) -> Settler:
        return Settler(self._settlement, self._floors, self._caps)

    def _tabulate(self, n: int) -> None:
        """Settle all combinations of grid prices, if they are few."""
        points = self._settings.grid_points
        self._table: SettledRounds | None = None
        if len(self._grids) and points**n <= _TABLE:
            self._strides = points ** np.arange(n - 1, -1, -1)
            prices = np.array(list(itertools.product(*self._grids.tolist())))
            settled = one_by_one(self._settlement, prices)
            self._table = settled._replace(rows=self._perceived(settled.rows))

    def _as_choices(self, prices: tuple[float, ...] | None) -> NDArray[Any] | None:
        """Fixed prices as choices: themselves, or their indices on the grids."""
        if prices is None or not len(self._grids):
            return None if prices is None else np.array(prices)
        return np.array([list(grid).index(price) for grid, price in zip(self._grids.tolist(), prices, strict=True)])

    def _begin(self, copies: Copies) -> None:
        self._rounds_played[copies] = self._streak[copies] = 0
        self._is_known[copies] = not self._settings.force_first_price
        self._chosen = self._chosen.copy()  # they may be the caller's own array
        if self._settings.initial_prices == "random":
            self._chosen[copies] = self._draw(copies)
        elif self._start is not None:
            self._chosen[copies] = self._start
        else:
            self._is_known[copies] = False
        if self._is_known[copies[0]]:
            self.observations[copies] = self._settle(self._chosen[copies])[1]
        else:
            self.observations[copies] = 0.0
            self.observations[copies, :, 0] = -1.0

    def _draw(self, copies: Copies) -> NDArray[Any]:
        """The first prices of some copies, drawn as `PriceChoices.draw` draws them."""
        seeds = self._episode_seeds(copies)
        if len(self._grids):
            return first_integers(seeds, self._settings.grid_points, len(self._grids))
        return first_uniforms(seeds, self._floors, self._caps)

    def _play(self, choices: NDArray[Any]) -> Played:
        chosen, illegal = self._usable(choices)
        if self._in_turn:
            turn = self.turn.astype(np.bool_)
            chosen, illegal = np.where(turn, chosen, self._chosen), illegal & turn
        elif self._settings.force_first_price:
            forced: Any = self._start
            chosen = np.where((self._rounds_played == 0)[:, None], forced, chosen)
        rewards, self.observations, together = self._settle(chosen)
        self._chosen = chosen
        self._is_known[:] = True
        self._rounds_played += 1
        truncated = self._rounds_played >= self._limit
        over = truncated
        window = self._settings.collusion_window
        if window:
            self._streak = (self._streak + 1) * together
            held = self._streak >= window
            over, truncated = held | truncated, truncated & ~held
        agents = self._shape[1]
        return Played(
            rewards,
            illegal,
            np.repeat(over & ~truncated, agents).reshape(self._shape),
            np.repeat(truncated, agents).reshape(self._shape),
            over,
        )

    def _usable(self, choices: NDArray[Any]) -> tuple[NDArray[Any], Flags]:
        """The choices with those replaced that cannot be used, and which these are."""
        if len(self._grids):
            # Seen as unsigned numbers, negative indices are large ones.
            points = self._settings.grid_points
            if choices.view(np.uint64).max() < points:
                return choices, np.zeros(self._shape, dtype=np.bool_)
            illegal = choices.view(np.uint64) >= points
            return np.where(illegal, self._near_cost, choices), illegal
        if choices.min() >= self._floors.max() and choices.max() <= self._caps.min():
            return choices, np.zeros(self._shape, dtype=np.bool_)
        legal = (choices >= self._floors) & (choices <= self._caps)
        usable = np.clip(np.where(np.isfinite(choices), choices, self._costs), self._floors, self._caps)
        return np.where(legal, choices, usable), ~legal

    def _settle(self, chosen: NDArray[Any]) -> tuple[Floats, Rows, Flags]:
        """Rewards, observations and whether prices were held together, of some copies' choices."""
        is_normalised = self._settings.reward == "normalised"
        if self._table is not None:
            at, table = chosen @ self._strides, self._table
            rewards = (table.gains if is_normalised else table.profits).take(at, axis=0)
            return rewards, table.rows.take(at, axis=0), table.together.take(at)
        settled = self._settler.settle(self._prices(chosen))
        return settled.gains if is_normalised else settled.profits, self._perceived(settled.rows), settled.together

    def _prices(self, chosen: NDArray[Any]) -> Floats:
        return self._grids[np.arange(len(self._grids)), chosen] if len(self._grids) else chosen

    def _perceived(self, rows: Rows) -> Rows:
        """What firms see of settled rounds if they see their own business alone, or forget it; changed in place."""
        if self._settings.information == OWN:
            rows[:, :, 0] = 0.0
            rows[:, :, 2:-1] = 0.0
        if self._settings.memory == 0:
            rows[:] = 0.0
            rows[:, :, 0] = -1.0
        return rows

    @property
    def turn(self) -> NDArray[np.int8]:
        """(copies, firms) 1 for each firm that sets its price now."""
        if not self._in_turn:
            return super().turn
        turn: NDArray[np.int8] = (self._rounds_played[:, None] % self._shape[1] == np.arange(self._shape[1])).astype(
            np.int8
        )
        return turn

    def masks(self) -> NDArray[np.int8] | None:
        """As `BatchEnv.masks`."""
        every: NDArray[np.int8] | None = super().masks()
        if every is None or not self._in_turn:
            return every
        masks: NDArray[np.int8] = every * self.turn[:, :, None]
        masks[:, :, 0] = 1
        return masks

    def _state(self) -> Floats:
        settings = self._settings
        filled = self._streak / settings.collusion_window if settings.collusion_window else np.zeros(self.copies)
        prices, equilibria = self._prices(self._chosen), self._settlement.rivalry.equilibria
        table = self._table
        gains = self._settler.settle(prices).gains if table is None else table.gains[self._chosen @ self._strides]
        levels = np.hstack([positions(prices, equilibria), gains])
        known = np.where(self._is_known, 1.0, -1.0)
        shown = np.where(self._is_known[:, None], levels, 0.0)
        return np.column_stack([self._rounds_played / settings.rounds, filled, known, shown])
