"""Settings of the Q-learners: the market, how they learn, and when they stop."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, ClassVar

import numpy as np
from typing_extensions import Self

from llm_coop_envs.baselines.q_learning.learn.game import Floats, Game
from llm_coop_envs.bertrand.rules import Equilibria, price_grid
from llm_coop_envs.bertrand.settings import IN_TURN, BertrandSettings
from llm_coop_envs.core.settings import Settings, added
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.util.checks import check_number

MAX_FIRMS = 4
MAX_MEMORY = 2
MAX_PRICES = 1000
MAX_PERIODS = 10**15

GIB = 2**30
_CELL = 8  # bytes of one Q value
_ROW = 8 + 4  # a row's largest value and its price


@dataclass(frozen=True, kw_only=True)
class QLearningSettings(Settings):
    """Settings of independent Q-learners that price against each other (Calvano et al. 2020).

    The defaults are the paper's representative experiment (alpha = 0.15, beta = 4e-6). Where its text and its code
    differ, the field says which is the default.

    Attributes:
        market: demand, costs and the grid of prices (`grid_points` is the paper's m, `grid_margin` its xi) of 2 to 4
            firms; talk, rounds and the firms' information play no role here.
        price_range: lowest and highest price of every firm's grid, instead of the ends that follow from `grid_margin`
            (the paper's variant with a lowest price of 0.99); `None` takes the market's own grid.
        shocks: stochastic demand: in every period the quality of buying nothing is drawn from `outside` - `shocks`,
            `outside` and `outside` + `shocks` with equal probability, unobserved by firms (the paper's appendix). The
            grid reaches from the lowest Nash to the highest joint-profit price of the three markets, and measures use
            expected profits. Logit demand only.
        memory: number of past rounds in a state, 0 to 2 (theirs: 1). Their code sets delta to 0 for learners without
            memory; here the caller has to do so.
        alpha: step of an update, in (0, 1]; a number or one per firm.
        beta: decay of exploration per period, eps_t = exp(-beta (t - 1)), in (0, 1]; a number or one per firm. Their
            inputs are per 25,000 periods: 0.1 there is 4e-6 here.
        delta: discount factor, in [0, 1); a number or one per firm.
        initial: the first Q table. `"uniform"`: rivals price uniformly for ever (baseline); `"nash"`: everybody asks
            the grid price nearest to Nash; `"grim"`: everybody asks the price nearest to joint profit as long as all
            did, else the one nearest to Nash; `"random"`: uniform over `initial_range`; `"constant"`: `initial_value`.
        initial_points: the price indices that stand for Nash and for joint profit in `"nash"` and `"grim"`; `None`: the
            nearest to these prices (their variant with xi = 0.5 takes the third price for Nash).
        initial_range: bounds for `"random"` (theirs: 0 and 10).
        initial_value: the value for `"constant"` (theirs: 5, and 10 without exploration).
        exploration: `"epsilon"` (uniform over all prices, the greedy one included), `"boltzmann"`, or `"none"`.
        temperature: Boltzmann only: the first temperature (their code: 1000).
        cooling: Boltzmann only: the factor on the temperature per period, in (0, 1) (theirs: 0.999961, which their
            input gives as 1 - 10^-4.41414).
        updates: `"asynchronous"`: only the visited cell (theirs), or `"synchronous"`: in the visited state, every price
            of a firm with what it would have brought against the rivals' actual prices (Asker, Fershtman and Pakes
            2021).
        ties: which of several equally valued prices is greedy: `"lowest"` (the paper's text; default) or `"random"`
            (their code: drawn when the greedy price's own value falls; an exact tie with the maximum does not switch).
            Beyond flat first tables exact ties practically never happen.
        window: number of periods without a change of any firm's greedy price in any state that counts as convergence
            (theirs: 100,000).
        max_periods: longest session (their code: 1.25e9, default; their text: 1e9).
        memory_limit: largest size of one session's tables in GiB; `None`: three quarters of this machine's memory.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "memory": (0, MAX_MEMORY),
        "initial_value": (-math.inf, math.inf),
        "window": (1, math.inf),
        "max_periods": (1, MAX_PERIODS),
    }
    allowed: ClassVar[Mapping[str, Collection[str]]] = {
        "initial": ("uniform", "nash", "grim", "random", "constant"),
        "exploration": ("epsilon", "boltzmann", "none"),
        "updates": ("asynchronous", "synchronous"),
        "ties": ("lowest", "random"),
    }

    market: BertrandSettings = field(default_factory=lambda: BertrandSettings.build("calvano"))
    price_range: tuple[float, float] | None = None
    shocks: float = added(0.0)
    memory: int = 1
    alpha: float | tuple[float, ...] = 0.15
    beta: float | tuple[float, ...] = 4e-6
    delta: float | tuple[float, ...] = 0.95
    initial: str = "uniform"
    initial_points: tuple[int, int] | None = None
    initial_range: tuple[float, float] = (0.0, 10.0)
    initial_value: float = 5.0
    exploration: str = "epsilon"
    temperature: float = 1000.0
    cooling: float = 1.0 - 10.0**-4.41414
    updates: str = "asynchronous"
    ties: str = "lowest"
    window: int = 100_000
    max_periods: int = 1_250_000_000
    memory_limit: float | None = None

    def __post_init__(self) -> None:
        """Check every field, and that fields fit together."""
        if not isinstance(self.market, BertrandSettings):
            raise SettingsError("market", self.market, "must be BertrandSettings")
        if not 2 <= self.market.firms <= MAX_FIRMS:
            raise SettingsError("firms", self.market.firms, f"Q-learning takes 2 to {MAX_FIRMS} firms")
        if self.market.prices != "grid":
            raise SettingsError("prices", self.market.prices, "Q-learning needs a grid of prices; set prices='grid'")
        if self.market.grid_points > MAX_PRICES:
            raise SettingsError("grid_points", self.market.grid_points, f"Q-learning takes at most {MAX_PRICES} prices")
        super().__post_init__()
        self._per_firm("alpha", "above 0 and at most 1", lambda x: 0.0 < x <= 1.0)
        self._per_firm("beta", "above 0 and at most 1", lambda x: 0.0 < x <= 1.0)
        self._per_firm("delta", "at least 0 and below 1", lambda x: 0.0 <= x < 1.0)
        if self.initial_points is not None:
            self._check_points()
        self._pair("initial_range", rising=False)
        check_number(self, "shocks", 0.0)
        if self.shocks and self.market.demand != "logit":
            raise SettingsError("shocks", self.shocks, "needs logit demand, which has a quality of buying nothing")
        check_number(self, "temperature", 0.0, above=True)
        check_number(self, "cooling", 0.0, 1.0, above=True)
        if self.cooling == 1.0:
            raise SettingsError("cooling", self.cooling, "must be below 1, or exploration never ends")
        check_number(self, "memory_limit", 0.0, above=True, optional=True)
        if self.market.moves == IN_TURN:
            reason = "learners of this kind move at the same time; those that move in turn are learn.sequential's"
            raise SettingsError("market.moves", IN_TURN, reason)
        self._check_grid()
        self._check_size()

    def _per_firm(self, name: str, bounds: str, inside: Callable[[float], bool]) -> None:
        """Check that a field is a number within bounds, or one per firm; a list becomes a tuple."""
        value = getattr(self, name)
        many = isinstance(value, list | tuple)
        numbers = value if many else (value,)
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
                raise SettingsError(name, value, "must be a number, or a list of one per firm")
            if not inside(number):
                raise SettingsError(name, value, f"must be {bounds}")
        if many:
            if len(numbers) != self.market.firms:
                raise SettingsError(name, value, f"has {len(numbers)} values for {self.market.firms} firms")
            object.__setattr__(self, name, tuple(float(number) for number in numbers))

    def _pair(self, name: str, *, rising: bool) -> None:
        """Check that a field is two finite ascending numbers (strictly if `rising`); a list becomes a tuple."""
        value = getattr(self, name)
        if (
            not isinstance(value, list | tuple)
            or len(value) != 2
            or any(isinstance(x, bool) or not isinstance(x, int | float) or not math.isfinite(x) for x in value)
        ):
            raise SettingsError(name, value, "must be two numbers, the lower one first")
        if value[0] > value[1] or (rising and value[0] == value[1]):
            raise SettingsError(name, value, "must have the lower number first")
        object.__setattr__(self, name, (float(value[0]), float(value[1])))

    def _check_points(self) -> None:
        value, highest = self.initial_points, self.market.grid_points - 1
        if (
            not isinstance(value, list | tuple)
            or len(value) != 2
            or any(isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= highest for k in value)
        ):
            raise SettingsError("initial_points", value, f"must be two price indices, 0 to {highest}")
        object.__setattr__(self, "initial_points", tuple(value))

    def _check_grid(self) -> None:
        """Check that the grid reaches from Nash to joint-profit price; otherwise nothing could be measured on it."""
        if self.price_range is not None:
            self._pair("price_range", rising=True)
            if self.price_range[0] < 0.0:
                raise SettingsError("price_range", self.price_range, "must not go below a price of 0")
        equilibria = self.equilibria
        for i, grid in enumerate(self.grids):
            for kind, price in (("Nash", equilibria.nash[i]), ("joint-profit", equilibria.joint[i])):
                if not grid[0] <= price <= grid[-1]:
                    reason = (
                        f"the grid from {grid[0]:g} to {grid[-1]:g} misses firm {i}'s {kind} price {price:g}; widen it"
                    )
                    raise SettingsError("price_range", self.price_range, reason)

    def _check_size(self) -> None:
        limit = self.memory_limit
        if limit is None:
            limit = 0.75 * machine_memory() / GIB
        size = self.table_bytes / GIB
        if size > limit:
            raise SettingsError(
                "memory",
                self.memory,
                f"{self.market.firms} firms with {self.market.grid_points} prices and a memory of {self.memory} have "
                f"{self.states:,} states, and the Q tables of one session would take {size:,.4g} GiB where at most "
                f"{limit:,.4g} GiB are allowed; take fewer prices, a shorter memory, or raise memory_limit",
            )

    @property
    def firms(self) -> int:
        """The number of firms."""
        return self.market.firms

    @property
    def states(self) -> int:
        """The number of states: m^(firms * memory)."""
        return int(self.market.grid_points ** (self.market.firms * self.memory))

    @property
    def table_bytes(self) -> int:
        """Bytes of one session's tables: Q, each row's maximum and its price, and the profits."""
        points, firms = self.market.grid_points, self.market.firms
        return firms * self.states * (points * _CELL + _ROW) + int(points**firms) * firms * _CELL

    @property
    def grids(self) -> tuple[tuple[float, ...], ...]:
        """Each firm's prices, ascending."""
        points = self.market.grid_points
        if self.price_range is not None:
            # A grid over `price_range` is the usual grid without margins.
            return (price_grid(*self.price_range, points, 0.0),) * self.market.firms
        if not self.shocks:
            return self.market.grids
        nash, joint = (
            np.array([getattr(market.equilibria, name) for market in self.markets]) for name in ("nash", "joint")
        )
        ends = zip(nash.min(axis=0).tolist(), joint.max(axis=0).tolist(), strict=True)
        return tuple(price_grid(low, high, points, self.market.grid_margin) for low, high in ends)

    @property
    def markets(self) -> tuple[BertrandSettings, ...]:
        """The markets, of which one is drawn in every period."""
        if not self.shocks:
            return (self.market,)
        step = self.shocks
        return tuple(replace(self.market, outside=self.market.outside + k * step) for k in (-1, 0, 1))

    @property
    def equilibria(self) -> Equilibria:
        """Nash and joint-profit prices and profits, expected where demand is stochastic."""
        every = [market.equilibria for market in self.markets]
        if len(every) == 1:
            return every[0]
        means = {
            field.name: tuple(
                np.mean([getattr(market_equilibria, field.name) for market_equilibria in every], axis=0).tolist()
            )
            for field in fields(Equilibria)
        }
        return Equilibria(**means)

    def spread(self, name: str) -> tuple[float, ...]:
        """The field `name` as one value per firm."""
        value = getattr(self, name)
        return value if isinstance(value, tuple) else (float(value),) * self.market.firms

    def game(self) -> Game:
        """The stage game as arrays; with expected profits where demand is stochastic."""
        game = Game.tabulate(self.market.market, self.equilibria, self.grids, self.memory, self.spread("delta"))
        return replace(game, profits=self.market_profits(game).mean(axis=0)) if self.shocks else game

    def market_profits(self, game: Game) -> Floats:
        """(markets, actions, firms) the profits in each of `markets`."""
        if not self.shocks:
            return game.profits[None]
        game_arguments = self.grids, self.memory, self.spread("delta")
        return np.array(
            [Game.tabulate(market.market, market.equilibria, *game_arguments).profits for market in self.markets]
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Make settings from fields by name; `market` may be a mapping of its own fields and a `preset`.

        Raises:
            SettingsError: a field is unknown, or a value is impossible.
        """
        market = data.get("market")
        own = {"market": BertrandSettings.build(**market)} if isinstance(market, Mapping) else {}
        return super().from_json({**data, **own})


def machine_memory() -> int:
    """The machine's memory in bytes; 8 GiB where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return 8 * GIB
