"""Following price competition."""

from __future__ import annotations

import numpy as np

from llm_coop_envs.render.scenes.base import BertrandScene
from llm_coop_envs.render.scenes.tracking import Event, Growing, Tracker


class BertrandTracker(Tracker[BertrandScene]):
    """Follows price competition round by round.

    Args:
        start: the episode's `start` event.
    """

    def __init__(self, start: Event) -> None:
        super().__init__(start)
        firms = len(self.agents)
        self._start = start
        self._first_round = 1
        self._prices, self._demand, self._profits = (Growing((firms,), np.float64) for _ in range(3))
        self._together = Growing((), np.bool_)
        low, high, _ = start["band"]
        nash, joint = np.array(start["nash"]), np.array(start["joint"])
        self._band = (float((nash + low * (joint - nash)).min()), float((nash + high * (joint - nash)).max()))

    def scene(self) -> BertrandScene:
        """The scene of the moment."""
        start = self._start
        initial = start["initial_prices"]
        return BertrandScene(
            **self.common(),
            rounds=self.settings["rounds"],
            first_round=self._first_round,
            prices=self._prices.view(),
            demand=self._demand.view(),
            profits=self._profits.view(),
            together=self._together.view(),
            nash=tuple(start["nash"]),
            joint=tuple(start["joint"]),
            nash_profit=tuple(start["nash_profit"]),
            joint_profit=tuple(start["joint_profit"]),
            cost=tuple(start["cost"]),
            band=self._band,
            initial_prices=None if initial is None else tuple(initial),
        )

    def _settle(self, event: Event) -> None:
        if not len(self._prices):
            self._first_round = event["round"]
        self._prices.append(event["prices"])
        self._demand.append(event["demand"])
        self._profits.append(event["profits"])
        self._together.append(event["together"])
