"""Scenes of a beauty contest, and how they follow from its events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_coop_envs.render.scenes.base import FloatArray, Scene
from llm_coop_envs.render.scenes.tracking import Event, Tracker


@dataclass(frozen=True, kw_only=True, eq=False)
class KbcDecision:
    """One decision of the beauty contest.

    Attributes:
        round: k in a nested session, else from 1.
        choices: (players,) numbers, NaN for players who have left.
        mean: the mean from which the target was computed.
        target: the target.
        winners: indices of the winners.
        prize: what each winner got.
        variance: the variance of the choices (of the whole population, as the papers' figures).
    """

    round: int
    choices: FloatArray
    mean: float
    target: float
    winners: tuple[int, ...]
    prize: float
    variance: float


@dataclass(frozen=True, kw_only=True, eq=False)
class KbcScene(Scene):
    """A moment of the beauty contest.

    Attributes:
        low: the lowest number that may be named.
        high: the highest.
        ratio: the target's factor, in words such as `"2/3"`.
        statistic: what it multiplies, in a word: `"mean"`, `"median"` or `"maximum"`.
        offset: the number added to the mean's share, in words; `"0"` for nothing.
        session: `"single"`, `"nested"` or `"repeated"`.
        all_decisions: how many decisions the episode has.
        decisions: the decisions so far, oldest first.
    """

    low: float
    high: float
    ratio: str
    statistic: str
    offset: str
    session: str
    all_decisions: int
    decisions: tuple[KbcDecision, ...]

    @property
    def last(self) -> KbcDecision | None:
        """The last decision made."""
        return self.decisions[-1] if self.decisions else None


STATISTIC_WORDS = {"mean": "mean", "median": "median", "max": "maximum"}


class KbcTracker(Tracker[KbcScene]):
    """Follows a beauty contest decision by decision."""

    forgets = False

    def __init__(self, start: Event) -> None:
        super().__init__(start)
        settings = self.settings
        self._decisions: tuple[KbcDecision, ...] = ()
        counts = {"single": 1, "nested": settings["exchanges"] + 1, "repeated": settings["rounds"]}
        self._rules: dict[str, Any] = {
            **{name: settings[name] for name in ("low", "high", "session")},
            **{name: str(settings[name]) for name in ("ratio", "offset")},
            "statistic": STATISTIC_WORDS[settings.get("statistic", "mean")],
            "all_decisions": int(counts[settings["session"]]),
        }

    def scene(self) -> KbcScene:
        """The current scene."""
        return KbcScene(**self.common(), **self._rules, decisions=self._decisions)

    def _settle(self, event: Event) -> None:
        choices = np.array(event["choices"], dtype=np.float64)
        choices.flags.writeable = False
        fields = {name: event[name] for name in ("round", "mean", "target", "prize")}
        winners, variance = tuple(event["winners"]), float(np.nanvar(choices))
        self._decisions += (KbcDecision(**fields, choices=choices, winners=winners, variance=variance),)
