"""The environment: in each round a thing is sold to the highest sealed bid, after talk that may be private."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.channels import everyone
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.interface.hooks import Over, Stage
from llm_coop_envs.interface.question import Number, Option, Options, Question
from llm_coop_envs.interface.slots import Heard, Slots


@dataclass(frozen=True, kw_only=True)
class AuctionSettings(ScenarioSettings):
    """Settings of the auction.

    Attributes:
        bidders: how many bid.
        highest: the largest value, and the highest bid.
        reserve: the lowest bid at which the thing is sold.
        rounds: how many things are sold, one in each round.
    """

    bounds: ClassVar[Any] = {"bidders": (2, 100), "rounds": (1, 10_000), "highest": (1, 1e6), "reserve": (0, 1e6)}

    bidders: int = 4
    highest: float = 100.0
    reserve: float = 10.0
    rounds: int = 10
    private_messages: int = 2


@dataclass(frozen=True, kw_only=True)
class AuctionSlots(Slots):
    """What one bidder may know: the rules, its own value, and who won earlier rounds at which price.

    Attributes:
        rules: the settings; everybody knows them.
        round: the round, from 1.
        value: what the thing of this round is worth to this bidder alone.
        bidding: who has entered this round's auction, once all have decided.
        history: (round, winner's name or empty, price) of the rounds so far.
        heard: what this bidder has heard and said in this round.
    """

    rules: AuctionSettings
    round: int
    value: float
    bidding: tuple[str, ...]
    history: tuple[tuple[int, str, float], ...]
    heard: tuple[Heard, ...]


class AuctionEnv(ScenarioEnv):
    """One thing is sold in each round to the highest sealed bid; each bidder's value is drawn, and known to it alone.

    Phases: `talk`, then `enter`, in which all decide at once whether to take part, then `bid`, in which those who do
    name a price or pass.

    Reward: value less price for the winner. Equal bids are drawn.

    Events: `nature` with the values, and `round`: `winner`, `price`, `bids` (`None` for a pass).
    """

    metadata: dict[str, Any] = {**ScenarioEnv.metadata, "name": "auction_v0", "render_fps": 2}
    settings_type = AuctionSettings
    slots_type = AuctionSlots
    role = "bidder"
    act_phases = ("enter", "bid")
    home = Path(__file__).parent
    kept = ("values", "entered", "history")

    def _setup(self) -> None:
        self.n_players = self.settings.bidders
        self.feature_names, self._feature_bounds = ("round", "value"), (0.0, 1.0)

    def _moves(self) -> Mapping[str, Question]:
        options = tuple(Option(choice=k, name=name) for k, name in enumerate(("stay out", "enter")))
        bid = Number(name="bid", low=self.settings.reserve, high=self.settings.highest, passing=True)
        return {"enter": Options(name="decision", options=options), "bid": bid}

    def _begin(self, options: Mapping[str, Any]) -> None:
        self.values = np.zeros(self.n_players)
        self.entered: list[int] = []
        self.history: list[list[Any]] = []

    def _next_stage(self) -> Stage | Over:
        if self.phase == "enter" and self.entered:
            return Stage("bid", [self.entered])
        if self.phase == TALK and self.round > len(self.history):
            return Stage("enter", [self._everyone])
        if self.round == self.settings.rounds:
            return Over("all rounds played", truncated=True)
        self.round += 1
        self.entered = []
        self.values = self.nature("values").uniform(0, self.settings.highest, self.n_players)
        if self.record:
            self.emit("nature", purpose="values", drawn=self.values.tolist())
        self.conversation.forget()
        if self.settings.talks_in(self.round):
            return self._talk_stage([self.nature("order").permutation(self.n_players).tolist()], everyone())
        return Stage("enter", [self._everyone])

    def _apply(self, phase: str, who: NDArray[np.intp], choices: NDArray[Any]) -> None:
        if phase == "enter":
            self.entered = [int(i) for i in who[choices == 1]]
            if self.entered:
                return
        bids = {int(i): bid for i, bid in zip(who, choices, strict=True) if phase == "bid" and bid is not None}
        winner, price = "", max(bids.values(), default=0.0)
        if bids:
            best = [i for i, bid in bids.items() if bid == price]
            won = best[int(self.nature("tie").integers(len(best)))]
            winner = self.possible_agents[won]
            self._rewards[won] += self.values[won] - price
        self.history = [*self.history, [self.round, winner, price]]
        if self.record:
            self.emit("round", winner=winner, price=price, bids=[bids.get(i) for i in range(self.n_players)])

    def _features(self) -> NDArray[np.float32]:
        shared = np.full((self.n_players, 1), self.round / self.settings.rounds)
        return np.column_stack([shared, self.values / self.settings.highest]).astype(np.float32)

    def _slots(self, index: int, common: dict[str, Any]) -> AuctionSlots:
        return AuctionSlots(
            rules=self.settings,
            round=self.round,
            value=float(self.values[index]),
            bidding=tuple(self.possible_agents[i] for i in self.entered),
            history=tuple(map(tuple, self.history)),
            heard=self._heard(index, own=True),
            **common,
        )
