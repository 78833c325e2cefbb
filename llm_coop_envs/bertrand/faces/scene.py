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
    """A moment of price competition: histories of all firms, and the market's benchmarks for each firm.

    Attributes:
        rounds: after how many rounds play ends.
        first_round: the round of the first row of the histories.
        prices: (rounds so far, firms), as demand and profits.
        together: (rounds so far,) whether the prices were close to each other between Nash and joint-profit price.
        nash: the Nash price of each firm in the market, and `nash_profit` what it earns there.
        joint: likewise where their joint profit is largest.
        cost: each firm's unit cost.
        left: the firms that have left the market, by index; their prices, sales and profits are NaN from then on.
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
    left: frozenset[int]
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
            "left": frozenset(),
            "initial_prices": None if initial is None else tuple(initial),
            "rounds": self.settings["rounds"],
        }

    def scene(self) -> BertrandScene:
        """The scene of the moment."""
        histories: dict[str, Any] = {name: rows.view() for name, rows in self._histories.items()}
        return BertrandScene(**self.common(), **self._market, **histories, first_round=self._first_round)

    def _settle(self, event: Event) -> None:
        if not len(self._histories["prices"]):
            self._first_round = event["round"]
        for name, rows in self._histories.items():
            rows.append(event[name])

    def _other(self, event: Event) -> None:
        if event["type"] == "left":
            gone = {self.index[name] for name in event["agents"]}
            self._market |= {**_market(event), "left": self._market["left"] | gone}


def _market(event: Event) -> dict[str, Any]:
    """The benchmarks and the band of the firms in the market, from the event that tells them."""
    names = ("nash", "joint", "nash_profit", "joint_profit")
    found = {name: tuple(value for value in event[name] if value is not None) for name in names}
    low, high, _ = event["band"]
    nash, joint = np.array(found["nash"]), np.array(found["joint"])
    band = float((nash + low * (joint - nash)).min()), float((nash + high * (joint - nash)).max())
    return {**found, "band": band}
