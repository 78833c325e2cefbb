"""Q-learners that set prices in turn: Klein (2021, RAND Journal of Economics 52(3)), another clock than the rest here.

Two firms sell the same good; of 1 - p customers the cheaper firm has all, and equal prices share them. A firm moves in
every second period and holds its price in the other; what it sees is its rival's price. So a price earns twice before
it is chosen anew, and an update of what was asked two periods ago looks two periods ahead:

    Q(s, p) <- (1 - alpha) Q(s, p) + alpha (profit + delta profit' + delta^2 max Q(s', .))

Exploration falls as (1 - theta)^t, so that it is 1/1000 half-way and 1/1,000,000 at the end; there is no test of
convergence. Periods count both firms' moves, and the first prices are drawn. The paper could not be read here, only
its abstract: its protocol was taken from public notes on it. The market is the environment's preset `klein`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from llm_coop_envs.baselines.q_learning.learn.game import Floats, Game, Ints
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.core.settings import Settings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.util.checks import check_number

LAST = 1_000
"""Periods at the end that profits are averaged over (their equation 7)."""

EXACT = 1e-5
"""How far a value may lie from the best reply's and count as one, as a share (page 547)."""


@dataclass(frozen=True, kw_only=True)
class SequentialSettings(Settings):
    """What learns; the defaults are the paper's.

    Attributes:
        intervals: k: prices are 0, 1/k, ..., 1.
        alpha: step of an update.
        delta: discount factor per period.
        periods: T, how long they learn.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {"intervals": (2, 100), "periods": (2 * LAST, 10**9)}

    intervals: int = 6
    alpha: float = 0.3
    delta: float = 0.95
    periods: int = 500_000

    def __post_init__(self) -> None:
        """Check every field."""
        super().__post_init__()
        check_number(self, "alpha", 0.0, 1.0, above=True)
        check_number(self, "delta", 0.0, 1.0)
        if self.delta == 1.0:
            raise SettingsError("delta", self.delta, "must be below 1")

    def game(self) -> Game:
        """The market as arrays."""
        market = BertrandSettings.build("klein", grid_points=self.intervals + 1)
        return Game.of(market.market, market.marks, market.grids, 1, (self.delta, self.delta))


@dataclass(frozen=True, eq=False)
class SequentialRun:
    """What a run ended with.

    Attributes:
        q: (2, m, m) each firm's values by the rival's price and its own.
        prices: (LAST, 2) price indices in force in the last periods.
        profits: (2,) means over them.
        optimality: (2,) the value of each firm's price against the rival's, as a share of the best that could be had
            against the rival's greedy strategy (their Gamma, equation 8).
        cycle: (length,) the price indices that the firms name one after another, over and over, once nobody explores;
            the length is even.
    """

    q: Floats
    prices: Ints
    profits: Floats
    optimality: Floats
    cycle: Ints

    @property
    def equilibrium(self) -> bool:
        """Whether both replied best (their definition of a Nash equilibrium)."""
        return bool((np.abs(self.optimality - 1.0) <= EXACT).all())

    @property
    def focal(self) -> bool:
        """Whether the lower price stood still in the last hundred periods but for exploration."""
        low = self.prices[-100:].min(axis=1)
        return bool((low == np.bincount(low).argmax()).mean() > 0.95)

    @property
    def edgeworth(self) -> bool:
        """Whether firms end in a cycle of undercutting and rises: two cuts of the rival's price or more for a rise."""
        steps = np.sign(self.cycle - np.roll(self.cycle, 1))
        return bool((steps < 0).sum() >= 2 * (steps > 0).sum() > 0)


def run_sequential(settings: SequentialSettings, seed: int, number: int = 0, game: Game | None = None) -> SequentialRun:
    """Run once; the same seed and number give the same run.

    Args:
        settings: what learns.
        seed: of all runs.
        number: of this one.
        game: another market, the same one to both firms.

    Raises:
        MissingExtra: the compiler is not installed.
        SettingsError: an impossible number.
    """
    from llm_coop_envs.baselines.q_learning.learn.taking_turns import learn_in_turn

    game = game or settings.game()
    earned = np.ascontiguousarray(game.profits[:, 0].reshape(game.points, game.points))
    luck = np.random.SeedSequence(seed, spawn_key=(number,)).generate_state(1, np.uint64).astype(np.int64)
    q = np.zeros((2, game.points, game.points))
    prices = np.zeros((LAST, 2), dtype=np.int64)
    fall = 10.0 ** (-6.0 / settings.periods)
    learn_in_turn(q, earned, settings.alpha, settings.delta, fall, settings.periods, luck, prices)
    profits = np.array([earned[prices[:, i], prices[:, 1 - i]].mean() for i in (0, 1)])
    last = prices[-1]
    optimality = []
    for i in (0, 1):
        best = best_values(earned, q[1 - i].argmax(axis=1), settings.delta)[last[1 - i]].max()
        optimality.append(q[i, last[1 - i], last[i]] / best if best else 1.0)
    mover = settings.periods % 2
    cycle = greedy_cycle(q.argmax(axis=2), mover, int(last[1 - mover]))
    return SequentialRun(q, prices, profits, np.array(optimality), cycle)


def greedy_cycle(replies: Ints, mover: int, price: int) -> Ints:
    """The prices that are named one after another in the cycle that play ends in.

    Args:
        replies: (2, m) each firm's price by its rival's.
        mover: the firm on turn.
        price: its rival's price.
    """
    named: list[int] = []
    met: dict[tuple[int, int], int] = {}
    while (mover, price) not in met:
        met[mover, price] = len(named)
        price = int(replies[mover, price])
        named.append(price)
        mover = 1 - mover
    return np.array(named[met[mover, price] :])


def best_values(earned: Floats, reply: Ints, delta: float) -> Floats:
    """(m, m) the value of each price against the rival's, by the rival's, if it answers price p with `reply[p]`."""
    twice = earned.T + delta * earned[np.arange(len(earned)), reply]
    values = np.zeros(len(earned))
    while True:
        q = twice + delta**2 * values[reply]
        if np.abs(q.max(axis=1) - values).max() <= 1e-13:
            return np.asarray(q)
        values = q.max(axis=1)


def summary(runs: list[SequentialRun]) -> dict[str, Any]:
    """Means over runs, each with its standard error `..._se`.

    Returns:
        `profit` (per firm and period), `optimality`, shares of runs in `equilibrium`, of runs in equilibrium at joint
        profit (`joint`), with unequal profits (`asymmetric`), with a standing price (`focal`), and that undercut each
        other in cycles (`edgeworth`).
    """
    equal = [abs(one.profits[0] - one.profits[1]) < 0.005 for one in runs]
    columns = {
        "profit": [one.profits.mean() for one in runs],
        "optimality": [one.optimality.mean() for one in runs],
        "equilibrium": [one.equilibrium for one in runs],
        "joint": [one.equilibrium and bool((np.abs(one.profits - 0.125) < 0.0005).all()) for one in runs],
        "asymmetric": [not one for one in equal],
        "focal": [one.focal for one in runs],
        "edgeworth": [one.edgeworth for one in runs],
    }
    found: dict[str, Any] = {"runs": len(runs)}
    for name, values in columns.items():
        found[name] = float(np.mean(values))
        found[f"{name}_se"] = float(np.std(values, ddof=1) / len(runs) ** 0.5)
    return found
