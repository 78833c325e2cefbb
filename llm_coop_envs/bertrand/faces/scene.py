"""Scenes of price competition, and how they follow from its events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.render.scenes.base import FloatArray, Scene
from llm_coop_envs.render.scenes.tracking import Event, Growing, Tracker


@dataclass(frozen=True, kw_only=True, eq=False)
class BertrandScene(Scene):
    """A moment of price competition: the history of all firms, and the equilibria of those in the market.

    Attributes:
        rounds: the number of rounds after which play is cut.
        first_round: the round of the first row of the histories.
        prices: (rounds so far, firms), as demand and profits.
        together: (rounds so far,) whether prices were held together.
        nash: the Nash price of each firm in the market, and `nash_profit` what it earns there.
        joint: likewise for the joint-profit price.
        cost: each firm's unit cost.
        departed: the firms that have left the market, by index; their prices, sales and profits are NaN from then on.
        band: lowest and highest price of the collusion band.
        initial_prices: the prices before round 1, if there were any.
    """

    rounds: int
    first_round: int
    prices: FloatArray
    demand: FloatArray
    profits: FloatArray
    together: NDArray[np.bool_]
    nash: tuple[float, ...]
    joint: tuple[float, ...]
    nash_profit: tuple[float, ...]
    joint_profit: tuple[float, ...]
    cost: tuple[float, ...]
    departed: frozenset[int]
    band: tuple[float, float]
    initial_prices: tuple[float, ...] | None


class BertrandTracker(Tracker[BertrandScene]):
    """Follows price competition round by round."""

    def __init__(self, start: Event) -> None:
        super().__init__(start)
        firms = len(self.agents)
        self._first_round = 1
        self._histories = {name: Growing((firms,), np.float64) for name in ("prices", "demand", "profits")}
        self._histories["together"] = Growing((), np.bool_)
        initial = start["initial_prices"]
        self._market: dict[str, Any] = {
            **_market(start),
            "cost": tuple(start["cost"]),
            "departed": frozenset(),
            "initial_prices": None if initial is None else tuple(initial),
            "rounds": self.settings["rounds"],
        }

    def scene(self) -> BertrandScene:
        """The current scene."""
        histories: dict[str, Any] = {name: rows.view() for name, rows in self._histories.items()}
        return BertrandScene(**self.common(), **self._market, **histories, first_round=self._first_round)

    def _settle(self, event: Event) -> None:
        if not len(self._histories["prices"]):
            self._first_round = event["round"]
        for name, rows in self._histories.items():
            rows.append(event[name])

    def _other(self, event: Event) -> None:
        if event["type"] == "left":
            departed = {self.index[name] for name in event["agents"]}
            self._market |= {**_market(event), "departed": self._market["departed"] | departed}


def _market(event: Event) -> dict[str, Any]:
    """The equilibria and the band of the firms in the market, from a `start` or `left` event."""
    names = ("nash", "joint", "nash_profit", "joint_profit")
    equilibria = {name: tuple(value for value in event[name] if value is not None) for name in names}
    low, high, _ = event["band"]
    nash, joint = np.array(equilibria["nash"]), np.array(equilibria["joint"])
    band = float((nash + low * (joint - nash)).min()), float((nash + high * (joint - nash)).max())
    return {**equilibria, "band": band}
