"""Q-learners that set prices in turn (Klein 2021, RAND Journal of Economics 52(3)).

Two firms sell the same good. At a lower price of p, 1 - p customers buy, all from the cheaper firm; equal prices share
them. A firm sets its price in every second period, when it observes its rival's price, and keeps it in the next. So a
price earns twice before it is chosen anew, and the update of a price asked two periods ago looks two periods ahead:

    Q(s, p) <- (1 - alpha) Q(s, p) + alpha (profit + delta profit' + delta^2 max Q(s', .))

Exploration falls as (1 - theta)^t, to 1/1000 half-way and 1/1,000,000 at the end; there is no test of convergence.
Periods count both firms' moves, and the first prices are drawn. Only the paper's abstract was available: its protocol
was taken from public notes on it. The market is the environment's preset `klein`.
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
"""The number of last periods that profits are averaged over (the paper's equation 7)."""

EXACT = 1e-5
"""How far a value may lie from the best reply's and still count as one, as a share (page 547)."""


@dataclass(frozen=True, kw_only=True)
class SequentialSettings(Settings):
    """Settings of the learners; the defaults are the paper's.

    Attributes:
        intervals: k: prices are 0, 1/k, ..., 1.
        alpha: step of an update.
        delta: discount factor per period.
        periods: T, the number of learning periods.
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
        return Game.tabulate(market.market, market.equilibria, market.grids, 1, (self.delta, self.delta))


@dataclass(frozen=True, eq=False)
class SequentialRun:
    """The result of a run.

    Attributes:
        q: (2, m, m) each firm's values by the rival's price and its own.
        prices: (LAST, 2) the price indices in force in the last periods.
        profits: (2,) mean profits over these periods.
        optimality: (2,) the value of each firm's price against the rival's, as a share of the best value against the
            rival's greedy strategy (the paper's Gamma, equation 8).
        cycle: (length,) the price indices that the firms ask in turn, over and over, once nobody explores; the length
            is even.
    """

    q: Floats
    prices: Ints
    profits: Floats
    optimality: Floats
    cycle: Ints

    @property
    def equilibrium(self) -> bool:
        """Whether both firms reply best (the paper's definition of a Nash equilibrium)."""
        return bool((np.abs(self.optimality - 1.0) <= EXACT).all())

    @property
    def focal(self) -> bool:
        """Whether the lower price was constant in the last hundred periods, apart from exploration (5 %)."""
        low = self.prices[-100:].min(axis=1)
        return bool((low == np.bincount(low).argmax()).mean() > 0.95)

    @property
    def edgeworth(self) -> bool:
        """Whether firms end in a cycle of undercutting and rises, with at least two cuts per rise."""
        steps = np.sign(self.cycle - np.roll(self.cycle, 1))
        return bool((steps < 0).sum() >= 2 * (steps > 0).sum() > 0)


def run_sequential(settings: SequentialSettings, seed: int, number: int = 0, game: Game | None = None) -> SequentialRun:
    """Run once; the same seed and number give the same run.

    Args:
        settings: the learners.
        seed: the seed of all runs.
        number: the number of this run.
        game: another market than `settings.game()`; it must look the same to both firms.

    Raises:
        MissingExtra: the compiler is not installed.
        SettingsError: a number is impossible.
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
    """The prices that firms ask in turn in the cycle in which greedy play ends.

    Args:
        replies: (2, m) each firm's price by its rival's.
        mover: the firm on turn.
        price: the price index of its rival.
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
    """(m, m) values by the rival's price and the own one, if the rival answers price p with `reply[p]`."""
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
        `profit` (per firm and period), `optimality`, and shares of runs: in `equilibrium`, in equilibrium at joint
        profit (`joint`), with unequal profits (`asymmetric`), with a constant price (`focal`), and with undercutting in
        cycles (`edgeworth`).
    """
    equal = [abs(run.profits[0] - run.profits[1]) < 0.005 for run in runs]
    columns = {
        "profit": [run.profits.mean() for run in runs],
        "optimality": [run.optimality.mean() for run in runs],
        "equilibrium": [run.equilibrium for run in runs],
        "joint": [run.equilibrium and bool((np.abs(run.profits - 0.125) < 0.0005).all()) for run in runs],
        "asymmetric": [not is_equal for is_equal in equal],
        "focal": [run.focal for run in runs],
        "edgeworth": [run.edgeworth for run in runs],
    }
    means: dict[str, Any] = {"runs": len(runs)}
    for name, values in columns.items():
        means[name] = float(np.mean(values))
        means[f"{name}_se"] = float(np.std(values, ddof=1) / len(runs) ** 0.5)
    return means
