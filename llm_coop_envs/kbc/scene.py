"""Following a beauty contest."""

from __future__ import annotations

import numpy as np

from llm_coop_envs.render.scenes.base import KbcDecision, KbcScene
from llm_coop_envs.render.scenes.tracking import Event, Tracker


class KbcTracker(Tracker[KbcScene]):
    """Follows a beauty contest decision by decision.

    Args:
        start: the episode's `start` event.
    """

    forgets = False

    def __init__(self, start: Event) -> None:
        super().__init__(start)
        settings = self.settings
        self._decisions: tuple[KbcDecision, ...] = ()
        counts = {"single": 1, "nested": settings["exchanges"] + 1, "repeated": settings["rounds"]}
        self._all = int(counts[settings["session"]])

    def scene(self) -> KbcScene:
        """The scene of the moment."""
        settings = self.settings
        return KbcScene(
            **self.common(),
            low=settings["low"],
            high=settings["high"],
            ratio=str(settings["ratio"]),
            offset=str(settings["offset"]),
            session=settings["session"],
            all_decisions=self._all,
            decisions=self._decisions,
        )

    def _settle(self, event: Event) -> None:
        choices = np.array(event["choices"], dtype=np.float64)
        choices.flags.writeable = False
        groups = event["group_numbers"]
        decision = KbcDecision(
            round=event["round"],
            choices=choices,
            mean=event["mean"],
            target=event["target"],
            winners=tuple(event["winners"]),
            prize=event["prize"],
            variance=float(choices.var()),
            group_numbers=None if groups is None else tuple(groups),
        )
        self._decisions = (*self._decisions, decision)
