"""Settings of the price competition scenario.

Sources, by the names used below: Calvano, Calzolari, Denicolo and Pastorello (2020), American Economic Review 110(10),
and their replication package; Fish, Gonczarowski and Shorrer (2024), arXiv 2404.00806; EconEvals (2025), arXiv
2503.18825; Singh and Vives (1984), RAND Journal of Economics 15(4); Wu et al. (2024), "Shall We Team Up", and the code
published with it, which differs from its text in places that are named.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from llm_coop_envs.bertrand.demand import LinearMarket, LogitMarket, Market
from llm_coop_envs.bertrand.presets import PRESETS
from llm_coop_envs.bertrand.rules import Band, Equilibria, Rivalry, find_equilibria, nearest, outcome, price_grid
from llm_coop_envs.core.settings import PERCEPTION, ScenarioSettings, added
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.question import Number
from llm_coop_envs.mechanisms.matching import FIXED, check_groups
from llm_coop_envs.mechanisms.stage_game import StageGame
from llm_coop_envs.util.checks import check_choice, check_int, check_number, suggestion
from llm_coop_envs.util.digits import six_digits

MAX_FIRMS = 1000
MAX_GRID_POINTS = 100_000

CAP = "cap "
RIVAL_COSTS, DEMAND, ROUNDS = "rival_costs", "demand", "rounds"
KNOWABLE = (RIVAL_COSTS, DEMAND, ROUNDS)
AT_ONCE, IN_TURN = "simultaneous", "alternating"
AROUND_EQUILIBRIA, FLOOR_TO_CAP = "benchmarks", "floor_to_cap"
ABOVE_NASH, FROM_NASH = "above_nash", "from_nash"
NASH_PLAY = 0.1
"""Up to this position on the scale from Nash (0) to joint profit (1) a price counts as Nash play. The papers give no
number; the published runs end at 0.5 and above."""


@dataclass(frozen=True, kw_only=True)
class BertrandSettings(ScenarioSettings):
    """Who competes in which market, what they see, and when it ends.

    The defaults are the market of Calvano et al. (2020) with continuous prices and the talk, information and stopping
    rule of Wu et al. (2024). Money in `cost`, `quality`, `outside` and `mu` is in units of `price_unit`;
    `initial_prices`, `price_floor` and `price_cap` are prices as the firms see them.

    With `group_size` firms sell to the same customers in groups, and to others in each round (`matching`). They are all
    alike then, and a firm is shown its own past alone, besides what a mechanism says of its present rivals.

    With `information="own"` a firm is not told the others' prices. `observation_noise` is a share of the price seen;
    a mean over a block is off by as much as that of independent errors. `memory` is how many rounds are shown at most,
    one by one or in blocks.

    A firm that is no longer `present` sells nothing, and customers choose among the goods of the others: demand, Nash
    and joint-profit prices, profit gain and collusion are theirs from then on, a last firm's those of a monopoly.

    Attributes:
        firms: how many firms. One is a monopoly (Fish et al., preliminary test): it needs `talk=False`, its Nash price
            is the monopoly price, and prices and profits are measured as shares of the monopoly's.
        cost: cost of one unit; a number, or one per firm (Calvano et al.: 1; Wu et al.: 2).
        quality: `a` of both demand systems; a number, or one per firm (Calvano et al.: 2; Wu et al., linear:
            14).
        demand: `"logit"` (Calvano et al. 2020) or `"linear"` (Singh and Vives 1984; the code of Wu et al.
            2024).
        outside: logit only: a_0, quality of buying nothing (Calvano et al.: 0).
        mu: logit only: horizontal differentiation (Calvano et al.: 1/4).
        scale: logit only: number of customers (Calvano et al.: 1; Fish et al. 2024: 100).
        beta: linear only: own slope of inverse demand (Wu et al., code: 1/150).
        d: linear only: cross slope of inverse demand, 0 < d <= beta (Wu et al., code: 1/300). `d == beta`:
            identical goods.
        price_unit: alpha of Fish et al. 2024 (1, 3.2, 10): the unit of money, without any other effect.
        prices: `"grid"` (a choice is the index of a price) or `"continuous"` (a choice is the price).
        grid_points: points of the grid (Calvano et al.: m = 15).
        grid_margin: how far the grid reaches beyond Nash and joint-profit price (Calvano et al.: xi = 0.1); with one
            firm, beyond cost and monopoly price.
        grid_span: the ends of the grid: `"benchmarks"` (Nash and joint-profit price with `grid_margin`, Calvano et
            al.) or `"floor_to_cap"` (lowest price and `price_cap`, Klein 2021).
        benchmark_decimals: round Nash and joint-profit price to so many decimals (Calvano et al.: 5). `None` keeps
            them exact.
        initial_prices: prices before the first round: `None`, `"random"` (uniform; Calvano et al.'s first
            state), a number, or one per firm (Wu et al., code: 2). On a grid the nearest point is taken.
        force_first_price: settle round 1 at `initial_prices` (authors' code of Wu et al.). Otherwise they are
            what the firms know as the last prices when round 1 opens.
        price_floor: the lowest price (continuous), or `"cost"`: each firm's own cost (authors' code of Wu et
            al. lifts to it).
        price_cap: the highest price (continuous). `None`: for linear demand the highest `quality`, at which
            nobody buys; for logit demand 1.5 times the highest joint-profit price (the range named to the models
            in EconEvals 2025), to 2 decimals where that is 1 or more.
        truncate_profit: cut profits to integers (authors' code of Wu et al.).
        clamp_demand: linear only: nobody sells less than nothing. The authors' code of Wu et al. does not
            clamp.
        reward: `"profit"` of the round, or `"normalised"`: 0 at Nash, 1 at joint profit (see
            `rules.normalised_profits`).
        known: what else firms are told: a list of `"rival_costs"`, `"demand"` (the demand function with its numbers)
            and `"rounds"` (the longest number of rounds). In all sources firms are
            told nothing of that. `changes` may tell it to some of them, from a round on.
        history_window: rounds shown one by one (Wu et al.: 20; Fish et al.: 100).
        bin_size: rounds averaged in one bin of the statistics (Wu et al.: 20).
        bins: how many bins are shown at most (Wu et al.: 20, hence 400 rounds); 0 shows none. As published,
            bins are complete blocks counted from round 1, and the last one may repeat rounds that are also
            shown one by one.
        statistics: when bins are shown: `"every_round"` (Wu et al., text) or `"planning_rounds"` (their
            code).
        moves: `"simultaneous"`: all firms set prices in each round; `"alternating"`: in turn, beginning with firm 0
            (Klein 2021, RAND Journal of Economics 52(3)). The others' prices stand meanwhile. What stands before a
            firm's first turn are the initial prices.
        planning_period: firms may re-plan in rounds P + 1, 2 P + 1, ... (Wu et al., code: 20, hence 21, 41,
            ...). Planning is the policy's own affair, and so is whether it plans before or after it talks;
            the environment only tells the rounds.
        exchanges: how often everyone speaks before prices are set (Wu et al.: 3).
        opener: who speaks first: `"shuffled"` anew each round (Wu et al.) or `"fixed"`.
        rounds: the episode is cut after so many rounds (Wu et al.: 1200; Fish et al.: 300).
        collusion_window: end the episode after so many rounds with all prices close together and between Nash and
            joint-profit price (Wu et al., text: 200). 0 never ends it.
        collusion_tolerance: the largest distance between such prices, as a share of the distance from Nash to
            joint-profit price. The papers give no number; 0.1 is 0.2 in the market of Wu et al.
            and little more than one step of Calvano et al.'s grid.
        collusion_margin: how far above Nash all prices must be. `"above_nash"` leaves Nash play out (Wu et al. observe
            no collusion at the equilibrium price): 0.1 of the distance from Nash to joint-profit price, and on a grid
            half a step more, so that its prices on either side of Nash are out. `"from_nash"` counts Nash prices in, as
            the interval of the published definition, taken alone, does. A number is a share of the same distance.
            From a number, and from Nash, half a step of a grid is taken off: the grid price nearest to it counts.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = PRESETS
    sections: ClassVar[Mapping[str, str]] = {
        "firms": "The market",
        "prices": "Prices",
        "truncate_profit": "Profits and rewards",
        "known": "What a firm is told and shown",
        "moves": "The course of a round",
        "rounds": "The end of an episode",
    }
    forms: ClassVar[Mapping[str, str]] = {
        "initial_prices": 'Literal["random"] | float | Sequence[float] | None',
        "price_floor": 'Literal["cost"] | float',
        "known": 'Sequence[Literal["rival_costs", "demand", "rounds"]]',
        "collusion_margin": 'Literal["above_nash", "from_nash"] | float',
    }
    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "firms": (1, MAX_FIRMS),
        "outside": (-math.inf, math.inf),
        "grid_points": (2, MAX_GRID_POINTS),
        "grid_margin": (0, math.inf),
        "history_window": (0, math.inf),
        "bin_size": (1, math.inf),
        "bins": (0, math.inf),
        "planning_period": (1, math.inf),
        "exchanges": (1, math.inf),
        "rounds": (1, math.inf),
        "collusion_window": (0, math.inf),
        "collusion_tolerance": (0, math.inf),
    }
    small: ClassVar[Mapping[str, int]] = {"exchanges": 1}
    again: ClassVar[Mapping[str, str]] = {"rounds": "rounds", "remembered": "history_window"}
    has_groups: ClassVar[bool] = True
    changeable: ClassVar[Mapping[str, bool]] = {
        "history_window": True,
        "bins": True,
        "statistics": True,
        "exchanges": False,
        "known": True,
        **dict.fromkeys(PERCEPTION, True),
        "present": True,
    }
    fewest: ClassVar[int] = 1
    allowed: ClassVar[Mapping[str, Collection[str]]] = {
        "demand": ("logit", "linear"),
        "prices": ("grid", "continuous"),
        "reward": ("profit", "normalised"),
        "statistics": ("every_round", "planning_rounds"),
        "opener": ("shuffled", "fixed"),
        "moves": (AT_ONCE, IN_TURN),
        "grid_span": (AROUND_EQUILIBRIA, FLOOR_TO_CAP),
    }

    firms: int = 2
    cost: float | tuple[float, ...] = 1.0
    quality: float | tuple[float, ...] = 2.0
    demand: str = "logit"
    outside: float = 0.0
    mu: float = 0.25
    scale: float = 1.0
    beta: float = 1.0
    d: float = 0.5
    price_unit: float = 1.0
    prices: str = "continuous"
    grid_points: int = 15
    grid_margin: float = 0.1
    benchmark_decimals: int | None = None
    initial_prices: str | float | tuple[float, ...] | None = None
    force_first_price: bool = False
    price_floor: str | float = 0.0
    price_cap: float | None = None
    truncate_profit: bool = False
    clamp_demand: bool = False
    reward: str = "profit"
    history_window: int = 20
    bin_size: int = 20
    bins: int = 20
    statistics: str = "every_round"
    planning_period: int = 20
    exchanges: int = 3
    opener: str = "shuffled"
    rounds: int = 1200
    collusion_window: int = 200
    collusion_tolerance: float = 0.1
    collusion_margin: str | float = ABOVE_NASH
    moves: str = added(AT_ONCE)
    grid_span: str = added(AROUND_EQUILIBRIA)
    known: tuple[str, ...] = added(())

    def __post_init__(self) -> None:
        """Check every field, alone and with the others."""
        super().__post_init__()
        if self.firms == 1 and self.talk:
            raise SettingsError("talk", True, "a single firm has nobody to talk to; set talk=False")
        for name in ("cost", "quality"):
            self._per_firm(name)
        for name in ("mu", "scale", "price_unit", "beta"):
            check_number(self, name, 0.0, above=True)
        check_number(self, "d", 0.0, self.beta, above=True)
        check_int(self, "benchmark_decimals", 0, 15, optional=True)
        if isinstance(self.collusion_margin, str):
            check_choice(self, "collusion_margin", (ABOVE_NASH, FROM_NASH))
        else:
            check_number(self, "collusion_margin", 0.0, 1.0)
        self._check_groups()
        self._check_prices()
        self._read_known()
        if self.moves == IN_TURN and self.firms == 1:
            raise SettingsError("moves", IN_TURN, "a single firm has nobody to take turns with; leave it out")
        if self.moves == IN_TURN and (self.initial_prices is None or self.force_first_price):
            reason = "needs initial_prices that are not forced: prices of firms that are not on turn stand"
            raise SettingsError("moves", IN_TURN, reason)

    def stage_game(self) -> StageGame:
        """A round on the price grid: joint-profit prices cooperate, Nash prices compete, each to the nearest step.

        Raises:
            SettingsError: the firms have unlike grids, take turns, or do not set all prices themselves.
        """
        grids, equilibria = self.grids, self.equilibria
        alone = self.rivalry_among(range(self.together))
        if self.moves == IN_TURN or self.force_first_price or any(grid != grids[0] for grid in grids):
            reason = "needs firms that all choose among the same prices at once: the same cost and quality for all, "
            raise SettingsError("mechanism", "this", f"{reason}moves: simultaneous, and no forced first price")

        def worth(profile: Sequence[int]) -> Sequence[float]:
            prices = [grids[0][choice] for choice in profile]
            settled = outcome(alone.market, alone.equilibria, alone.band, prices)
            return settled.gains if self.reward == "normalised" else settled.profits

        return StageGame(
            players=self.together,
            actions=tuple(map(six_digits, grids[0])),
            cooperative=nearest(grids[0], equilibria.joint[0]),
            competitive=nearest(grids[0], equilibria.nash[0]),
            worth=worth,
            amounts=grids[0],
        )

    def check_order(self, order: str) -> None:
        """Require the order `"silence"`, or `"cap PRICE"` with a price above the lowest.

        Raises:
            SettingsError: the order is neither.
        """
        highest = self.price_ordered(order)
        if order.startswith(CAP) and (highest is None or not max(self.floors) < highest < math.inf):
            reason = f"must be '{CAP}' and a price above the lowest, {max(self.floors):g}"
            raise SettingsError("regulator.orders", order, reason)
        if highest is None:
            super().check_order(order)

    @staticmethod
    def price_ordered(order: str) -> float | None:
        """The price cap in a regulator's order such as `"cap 1.7"`; `None` for any other order."""
        try:
            return float(order.removeprefix(CAP)) if order.startswith(CAP) else None
        except ValueError:
            return None

    def _read_known(self) -> None:
        """Require names of what firms can be told; lists become tuples, in one order."""
        known: Any = self.known
        if not isinstance(known, list | tuple):
            raise SettingsError("known", known, f"must be a list of some of {', '.join(KNOWABLE)}")
        for fact in known:
            if fact not in KNOWABLE:
                raise SettingsError("known", fact, f"cannot be told; {suggestion(str(fact), KNOWABLE)}")
        if RIVAL_COSTS in known and self.firms == 1:
            raise SettingsError("known", RIVAL_COSTS, "a single firm has no rivals; leave it out")
        object.__setattr__(self, "known", tuple(fact for fact in KNOWABLE if fact in known))

    def _per_firm(self, name: str) -> None:
        """Require one finite number, or one per firm; costs must not be negative. Lists become tuples."""
        value = getattr(self, name)
        many = isinstance(value, list | tuple)
        numbers = value if many else (value,)
        for number in numbers:
            if isinstance(number, bool) or not isinstance(number, int | float) or not math.isfinite(number):
                raise SettingsError(name, value, "must be a finite number, or a list of one per firm")
            if name == "cost" and number < 0:
                raise SettingsError(name, value, "must not be negative")
        if many:
            if len(numbers) != self.firms:
                raise SettingsError(name, value, f"has {len(numbers)} values for {self.firms} firms; give one per firm")
            object.__setattr__(self, name, tuple(float(number) for number in numbers))

    def _check_groups(self) -> None:
        """Require what firms that sell in groups have to have in common, and refuse what knows of no groups."""
        if not self.group_size:
            return
        check_groups(self.firms, self.group_size, self.matching)
        if self.matching == FIXED:
            reason = "has the same firms meet in each round; set matching: random, or leave it out"
            raise SettingsError("group_size", self.group_size, reason)
        alone: dict[str, Any] = {
            **{"moves": AT_ONCE, "initial_prices": None, "observation_noise": 0.0, "regulator": None, "changes": ()},
            **{name: self._spread(getattr(self, name))[0] for name in ("cost", "quality")},
        }
        for name, needed in alone.items():
            if getattr(self, name) not in (needed, (needed,) * self.firms):
                raise SettingsError(name, getattr(self, name), "does not go with group_size, whose firms are all alike")

    @property
    def together(self) -> int:
        """How many firms sell to the same customers."""
        return self.group_size or self.firms

    def _check_prices(self) -> None:
        if self.clamp_demand and self.demand == "logit":
            raise SettingsError("clamp_demand", True, "has no effect on logit demand, which is never negative; drop it")
        # A market without Nash or joint-profit prices is refused here, not in the middle of an episode.
        _ = self.equilibria
        self._check_price_range()
        self._check_initial_prices()

    def _check_price_range(self) -> None:
        if self.price_floor != "cost":
            check_number(self, "price_floor", 0.0)
        spans_equilibria = self.prices == "grid" and self.grid_span == AROUND_EQUILIBRIA
        if self.price_cap is not None:
            check_number(self, "price_cap", 0.0, above=True)
            if spans_equilibria:
                reason = "has no effect on a grid of prices; drop it or use continuous prices"
                raise SettingsError("price_cap", self.price_cap, reason)
        if spans_equilibria:
            for i, (grid, floor) in enumerate(zip(self.grids, self.floors, strict=True)):
                if grid[0] < floor:
                    reason = (
                        f"takes firm {i}'s grid down to {grid[0]:g}, below the lowest price {floor:g}; make it smaller"
                    )
                    raise SettingsError("grid_margin", self.grid_margin, reason)
        elif self.cap <= max(self.floors):
            reason = f"{self.cap:g} is not above the lowest price {max(self.floors):g}"
            raise SettingsError("price_cap", self.price_cap, reason)

    def _check_initial_prices(self) -> None:
        if isinstance(self.initial_prices, str):
            if self.initial_prices != "random":
                reason = "must be 'random', a price, a list of one price per firm, or nothing"
                raise SettingsError("initial_prices", self.initial_prices, reason)
        elif self.initial_prices is not None:
            self._per_firm("initial_prices")
            if self.prices == "continuous" and max(self._spread(self.initial_prices)) > self.cap:
                reason = f"must not be above the highest price {self.cap:g}"
                raise SettingsError("initial_prices", self.initial_prices, reason)
        elif self.force_first_price:
            raise SettingsError("force_first_price", True, "needs initial_prices; say which prices round 1 has")

    def _spread(self, value: float | tuple[float, ...]) -> tuple[float, ...]:
        """One value per firm, from one value or a value per firm."""
        return value if isinstance(value, tuple) else (float(value),) * self.firms

    @property
    def market(self) -> Market:
        """The market these settings describe, in the money the firms see."""
        unit = self.price_unit
        firms: dict[str, Any] = {
            "cost": tuple(c * unit for c in self._spread(self.cost)),
            "quality": tuple(a * unit for a in self._spread(self.quality)),
            "truncate": self.truncate_profit,
        }
        if self.demand == "logit":
            return LogitMarket(**firms, outside=self.outside * unit, mu=self.mu * unit, scale=self.scale)
        return LinearMarket(**firms, beta=self.beta * unit, d=self.d * unit, clamp=self.clamp_demand)

    @property
    def equilibria(self) -> Equilibria:
        """Nash and joint-profit prices and profits of the market, or of each group's."""
        found = find_equilibria(self.market.restrict_to(range(self.together)), self.benchmark_decimals)
        groups = self.firms // self.together
        if groups == 1:
            return found
        return Equilibria(**{entry.name: getattr(found, entry.name) * groups for entry in fields(Equilibria)})

    @property
    def band(self) -> Band:
        """When a round's prices count as held together.

        On a grid half a step is added above, so that the grid price nearest to joint profit counts: that of Calvano et
        al. has the positions 0.929 and 1.014 there, of which 1.014 is within 1 + 0.086 / 2.
        """
        return self._band(self.grid_step)

    def rivalry_among(self, firms: Sequence[int]) -> Rivalry:
        """The market of some of the firms: their demand, Nash and joint-profit prices, and band.

        The choices stay those of all firms. A single firm is measured as a monopoly.

        Args:
            firms: their indices, ascending.

        Raises:
            SettingsError: these firms have no Nash or joint-profit prices.
        """
        market, is_all = self.market.restrict_to(firms), len(firms) == self.firms
        equilibria = self.equilibria if is_all else find_equilibria(market, self.benchmark_decimals)
        step = self.grid_step if is_all else self._grid_step(firms, equilibria)
        return Rivalry(firms=tuple(firms), market=market, equilibria=equilibria, band=self._band(step))

    def _band(self, grid_step: float) -> Band:
        margin = self.collusion_margin
        half = grid_step / 2.0 if self.prices == "grid" else 0.0
        named = {ABOVE_NASH: NASH_PLAY + half, FROM_NASH: -half}
        low = named[margin] if isinstance(margin, str) else margin - half
        return Band(low=low, high=1.0 + half, tolerance=self.collusion_tolerance)

    @property
    def grid_step(self) -> float:
        """The largest step of the firms' price grids, as a share of the distance from Nash to joint-profit price."""
        if self.grid_span == AROUND_EQUILIBRIA:
            return (1.0 + 2.0 * self.grid_margin) / (self.grid_points - 1)
        return self._grid_step(range(self.firms), self.equilibria)

    def _grid_step(self, firms: Sequence[int], equilibria: Equilibria) -> float:
        grids = self.grids
        return max(
            (grids[i][1] - grids[i][0]) / (joint - zero)
            for i, zero, joint in zip(firms, equilibria.zero, equilibria.joint, strict=True)
        )

    @property
    def grids(self) -> tuple[tuple[float, ...], ...]:
        """Each firm's grid of prices (whether or not `prices` is `"grid"`)."""
        if self.grid_span == FLOOR_TO_CAP:
            return tuple(price_grid(floor, self.cap, self.grid_points, 0.0) for floor in self.floors)
        equilibria = self.equilibria
        lowest = equilibria.nash if self.firms > 1 else self.market.cost
        return tuple(
            price_grid(low, high, self.grid_points, self.grid_margin)
            for low, high in zip(lowest, equilibria.joint, strict=True)
        )

    @property
    def floors(self) -> tuple[float, ...]:
        """Each firm's lowest price."""
        return self.market.cost if isinstance(self.price_floor, str) else (float(self.price_floor),) * self.firms

    @property
    def cap(self) -> float:
        """The highest continuous price."""
        if self.price_cap is not None:
            return float(self.price_cap)
        if self.demand == "linear":
            return max(self.market.quality)
        top = 1.5 * max(self.equilibria.joint)
        return round(top, 2) if top >= 1.0 else top

    @property
    def price_questions(self) -> tuple[Number, ...]:
        """The question to each firm: a price within a range, or one of the grid prices, listed with their indices."""
        if self.prices == "grid":
            grids = self.grids
            return tuple(
                Number(name="price", low=grid[0], high=grid[-1], listed=tuple(enumerate(grid))) for grid in grids
            )
        return tuple(Number(name="price", low=floor, high=self.cap) for floor in self.floors)

    @property
    def start(self) -> tuple[float, ...] | None:
        """The fixed initial prices, moved to the grid or lifted to the floor; `None` if none or drawn."""
        if self.initial_prices is None or isinstance(self.initial_prices, str):
            return None
        prices = self._spread(self.initial_prices)
        if self.prices == "grid":
            return tuple(grid[nearest(grid, p)] for grid, p in zip(self.grids, prices, strict=True))
        return tuple(max(p, floor) for p, floor in zip(prices, self.floors, strict=True))
