"""The environment: in each round sellers name asks and buyers bids, after talk among sellers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.channels import everyone, grouped
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.hooks import Over, Stage
from llm_coop_envs.interface.question import Number, Question
from llm_coop_envs.interface.slots import Heard, Slots
from market.rules import Trade, matched

SELLER, BUYER = "seller", "buyer"
CALL, DOUBLE = "call", "double"
SELLERS, SIDES, ALL = "sellers", "sides", "all"


@dataclass(frozen=True, kw_only=True)
class MarketSettings(ScenarioSettings):
    """Settings of the market.

    Attributes:
        rule: `"call"`, all quote at once, and the best asks and bids trade at the midpoint of the two; or `"double"`,
            a continuous double auction: traders come one after another in random order, a quote stands until its owner
            replaces it or the round is over, and whoever accepts a standing quote trades at its price.
        sellers: how many sell, each one unit in a round.
        buyers: how many buy, each one unit in a round.
        rounds: how many rounds there are.
        passes: how often everybody who has not traded yet may quote in a round of the double auction.
        highest: the highest price; the lowest is 0.
        costs: what a unit costs each seller; if empty, drawn evenly from 0 to `highest` in each episode.
        values: what a unit is worth to each buyer; if empty, drawn likewise.
        talkers: who talks: `"sellers"`, among themselves; `"sides"`, each side among itself; or `"all"`.
        shown: of how many of the last rounds quotes and trades are shown.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        **{name: (1, 100) for name in ("sellers", "buyers", "passes")},
        "rounds": (1, 10_000),
        "highest": (1, 1e6),
        "shown": (1, 100),
    }
    allowed: ClassVar[Mapping[str, Collection[str]]] = {"rule": (CALL, DOUBLE), "talkers": (SELLERS, SIDES, ALL)}
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "sealed": {},
        "five": {
            **{"sellers": 5, "buyers": 5, "rounds": 30, "highest": 200.0, "shown": 5},
            **{"costs": [80.0] * 5, "values": [100.0] * 5},
        },
        "continuous": {"rule": DOUBLE, "sellers": 6, "buyers": 6, "passes": 25},
    }

    rule: str = CALL
    sellers: int = 3
    buyers: int = 3
    rounds: int = 8
    passes: int = 3
    highest: float = 100.0
    costs: tuple[float, ...] = ()
    values: tuple[float, ...] = ()
    talkers: str = SELLERS
    shown: int = 3
    private_messages: int = 2

    def __post_init__(self) -> None:
        """Check costs and values; lists become tuples."""
        super().__post_init__()
        for name, count in (("costs", self.sellers), ("values", self.buyers)):
            numbers: Any = getattr(self, name)
            if not isinstance(numbers, list | tuple) or len(numbers) not in (0, count):
                raise SettingsError(name, numbers, f"must be a list of {count} numbers, or empty to have them drawn")
            for number in numbers:
                if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number <= self.highest:
                    raise SettingsError(name, number, f"must be a number from 0 to {self.highest:g}")
            object.__setattr__(self, name, tuple(float(number) for number in numbers))


@dataclass(frozen=True, kw_only=True)
class TraderSlots(Slots):
    """What every trader may know; costs and values are not among it.

    Attributes:
        rule: whether all quote at once, `"call"`, or one after another, `"double"`.
        sellers: how many sell.
        buyers: how many buy.
        rounds: how many rounds there are.
        highest: the highest price.
        talkers: who talks with whom.
        round: the round, from 1.
        asks: the asks that stand now, lowest first.
        bids: the bids that stand now, highest first.
        history: (round, asks, bids) of the last rounds, asks from the lowest on and bids from the highest.
        trades: (round, seller, buyer, price) of the last rounds and of this one.
        heard: what this trader has heard and said in this round.
    """

    rule: str
    sellers: int
    buyers: int
    rounds: int
    highest: float
    talkers: str
    round: int
    asks: tuple[float, ...]
    bids: tuple[float, ...]
    history: tuple[tuple[int, tuple[float, ...], tuple[float, ...]], ...]
    trades: tuple[tuple[int, str, str, float], ...]
    heard: tuple[Heard, ...]

    def series(self) -> dict[str, list[tuple[float, float]]]:
        """The prices of trades."""
        return {"price": [(number, price) for number, _, _, price in self.trades]}


@dataclass(frozen=True, kw_only=True)
class SellerSlots(TraderSlots):
    """What a seller may know.

    Attributes:
        cost: what a unit costs this seller alone.
    """

    cost: float


@dataclass(frozen=True, kw_only=True)
class BuyerSlots(TraderSlots):
    """What a buyer may know.

    Attributes:
        value: what a unit is worth to this buyer alone.
    """

    value: float


class MarketEnv(ScenarioEnv):
    """Sellers and buyers trade one unit each in a round; each knows its own cost or value, the same in all rounds.

    Phases: `talk`, then `act`, in which sellers name an ask and buyers a bid, or pass.

    Reset options: `costs` and `values` of this episode, in place of those of the settings, and for each round in `ties`
    who goes first of equal quotes in a call market, as numbers of all seats.

    Choice: a price from 0 to `highest`, or none. One that is missing or illegal is none, flagged.

    Reward: price less cost for a seller, value less price for a buyer.

    Events: `start` has `costs` and `values`, and `round` has `asks` and `bids`, the last quote of each or `None`, and
    `trades` as (seller, buyer, price).
    """

    metadata: dict[str, Any] = {**ScenarioEnv.metadata, "name": "market_v0", "render_fps": 2}
    settings_type = MarketSettings
    slots_type: ClassVar[type[Slots] | Mapping[str, type[Slots]]] = {SELLER: SellerSlots, BUYER: BuyerSlots}
    role = SELLER
    home = Path(__file__).parent
    kept = ("limits", "ties", "quotes", "standing", "trades", "waiting", "passes", "history", "past_trades")

    def _seats(self) -> Mapping[str, int]:
        return {SELLER: self.settings.sellers, BUYER: self.settings.buyers}

    def _setup(self) -> None:
        self.feature_names = ("is_seller", "limit", "round", "last_price")
        self._feature_bounds = (0.0, 1.0)

    def _moves(self) -> Mapping[str, Mapping[str, Question]]:
        names = {SELLER: "ask", BUYER: "bid"}
        price = {"low": 0.0, "high": self.settings.highest, "passing": True}
        return {"act": {role: Number(name=name, **price) for role, name in names.items()}}

    def _begin(self, options: Mapping[str, Any]) -> None:
        rules, costs, values = self.settings, options.get("costs"), options.get("values")
        drawn = self.np_random.uniform(0, rules.highest, self.n_players).round(2).tolist()
        costs, values = costs or rules.costs or drawn[: rules.sellers], values or rules.values or drawn[rules.sellers :]
        self.limits: list[float] = [*costs, *values]
        self.ties: list[list[int]] = options.get("ties", [])
        self.history: list[list[Any]] = []
        self.past_trades: list[list[Any]] = []
        self._open()

    def _start_event(self) -> dict[str, Any]:
        sellers = self.settings.sellers
        return {"costs": self.limits[:sellers], "values": self.limits[sellers:]}

    def _open(self) -> None:
        """Empty the book."""
        self.quotes: dict[int, float | None] = {}
        self.standing: dict[int, float] = {}
        self.trades: list[list[float]] = []
        self.waiting: list[int] = []
        self.passes = 0

    def _next_stage(self) -> Stage | Over:
        if self.phase == TALK and self.round > len(self.history):
            return self._act()
        if self.round and self.settings.rule == DOUBLE and self.round > len(self.history):
            if self._bring_in():
                return self._act()
            self._close()
        if self.round == self.settings.rounds:
            return Over("all rounds played", truncated=True)
        self.round += 1
        self._open()
        self._bring_in()
        self.conversation.forget()
        if self.settings.talks_in(self.round):
            sides = [np.arange(self.settings.sellers), np.arange(self.settings.sellers, self.n_players)]
            order = self.nature("order").permutation(self.n_players)
            speakers = order[order < self.settings.sellers] if self.settings.talkers == SELLERS else order
            heard = everyone() if self.settings.talkers == ALL else grouped([side.tolist() for side in sides])
            return self._talk_stage([speakers.tolist()], heard)
        return self._act()

    def _act(self) -> Stage:
        return Stage("act", [[self.waiting.pop(0)]] if self.settings.rule == DOUBLE else [self._everyone])

    def _bring_in(self) -> bool:
        """Say who comes next in the double auction, pass by pass. Returns whether there is anybody."""
        sold = self._sold()
        self.waiting = [i for i in self.waiting if i not in sold]
        free = [i for i in range(self.n_players) if i not in sold]
        can_trade = min(free, default=self.n_players) < self.settings.sellers <= max(free, default=0)
        if not self.waiting and can_trade and self.passes < self.settings.passes:
            self.passes += 1
            self.waiting = self.nature(f"arrivals {self.passes}").permutation(free).tolist()
        return bool(self.waiting) and can_trade

    def _sold(self) -> set[int]:
        sellers = self.settings.sellers
        return {int(i) for seller, buyer, _ in self.trades for i in (seller, sellers + buyer)}

    def _apply(self, phase: str, who: NDArray[np.intp], choices: NDArray[Any]) -> None:
        sellers = self.settings.sellers
        quotes = dict(zip(who.tolist(), choices.tolist(), strict=True))
        if self.settings.rule == DOUBLE:
            for i, price in quotes.items():
                if price is not None:
                    self._quote(i, price)
            return
        self.quotes = quotes
        # Of equal prices the one that is drawn first goes first.
        drawn = self.nature("tie").permutation(self.n_players).tolist()
        drawn = self.ties[self.round - 1] if self.ties else drawn
        named = {i: price for i in drawn if (price := quotes[i]) is not None}
        asks = {i: price for i, price in named.items() if i < sellers}
        self._trade(*matched(asks, {i - sellers: price for i, price in named.items() if i >= sellers}))
        self._close()

    def _quote(self, i: int, price: float) -> None:
        """Let a quote of the double auction meet the best one of the other side, or stand."""
        sellers, self.quotes[i] = self.settings.sellers, price
        self.standing.pop(i, None)
        if i < sellers:
            best = max((k for k in self.standing if k >= sellers), key=lambda k: self.standing[k], default=None)
            accepts = best is not None and self.standing[best] >= price
        else:
            best = min((k for k in self.standing if k < sellers), key=lambda k: self.standing[k], default=None)
            accepts = best is not None and self.standing[best] <= price
        if best is None or not accepts:
            self.standing[i] = price
            return
        seller, buyer = min(i, best), max(i, best)
        self._trade(Trade(seller, buyer - sellers, self.standing.pop(best)))

    def _trade(self, *trades: Trade) -> None:
        sellers = self.settings.sellers
        for seller, buyer, price in trades:
            self.trades.append([seller, buyer, price])
            self._rewards[seller] += price - self.limits[seller]
            self._rewards[sellers + buyer] += self.limits[sellers + buyer] - price

    def _close(self) -> None:
        """Settle the round."""
        sellers, names = self.settings.sellers, self.possible_agents
        quotes = [self.quotes.get(i) for i in range(self.n_players)]
        asks, bids = quotes[:sellers], quotes[sellers:]
        self.history = [*self.history, [self.round, _ranked(asks), _ranked(bids)[::-1]]]
        named = [[self.round, names[int(s)], names[sellers + int(b)], price] for s, b, price in self.trades]
        self.past_trades = [*self.past_trades, *named]
        if self.record:
            self.emit("round", asks=asks, bids=bids, trades=[list(trade) for trade in self.trades])

    def _features(self) -> NDArray[np.float32]:
        rules, ones = self.settings, np.ones(self.n_players)
        price = self.past_trades[-1][3] if self.past_trades else 0.0
        is_seller = np.arange(self.n_players) < rules.sellers
        columns = [is_seller, np.array(self.limits) / rules.highest, ones * self.round / rules.rounds]
        return np.column_stack([*columns, ones * price / rules.highest]).astype(np.float32)

    def _slots(self, index: int, common: dict[str, Any]) -> TraderSlots:
        rules, names, sellers = self.settings, self.possible_agents, self.settings.sellers
        since = self.round - rules.shown
        now = [[self.round, names[int(s)], names[sellers + int(b)], price] for s, b, price in self.trades]
        known = self.past_trades if self.round == len(self.history) else [*self.past_trades, *now]
        public = {name: getattr(rules, name) for name in ("rule", "sellers", "buyers", "rounds", "highest", "talkers")}
        shared: dict[str, Any] = {
            **public,
            **common,
            "round": self.round,
            "asks": tuple(sorted(price for i, price in self.standing.items() if i < sellers)),
            "bids": tuple(sorted((price for i, price in self.standing.items() if i >= sellers), reverse=True)),
            "history": tuple((k, tuple(asks), tuple(bids)) for k, asks, bids in self.history if k >= since),
            "trades": tuple(tuple(trade) for trade in known if trade[0] >= since),
            "heard": self._heard(index, own=True),
        }
        if index < sellers:
            return SellerSlots(cost=self.limits[index], **shared)
        return BuyerSlots(value=self.limits[index], **shared)


def _ranked(prices: list[float | None]) -> list[float]:
    return sorted(price for price in prices if price is not None)
