"""What a picture shows, as plain data: a scene per moment, made by an environment or from recorded events.

A scene knows no environment and no drawing library. Arrays in it are read-only and may be shared between scenes; a
history array holds what had happened when the scene was taken, never more. Every scenario may have scenes of its own,
beside its rules; `render.scenes.table` has those of all others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: What had just happened when a scene was taken, besides the phases: the episode or a round opened, a round was
#: settled, it was over.
START, OPENED, SETTLED, OVER = "start", "opened", "settled", "over"
_DOING = {
    START: "before the first round",
    OPENED: "a round begins",
    "talk": "talking",
    "act": "choosing",
    SETTLED: "round over",
}

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    """One message of the running round, or of the whole episode where nothing is forgotten.

    Speaker and hearers are indices of players; without hearers everybody heard it.
    """

    speaker: int
    text: str
    round: int
    hearers: tuple[int, ...] | None = None

    def heard_by(self, listener: int) -> bool:
        """Whether somebody other than the speaker heard it."""
        return listener != self.speaker and (self.hearers is None or listener in self.hearers)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """What every scene has.

    Attributes:
        scenario: the environment's name with its version.
        agents: the players' names, in index order.
        step: how many steps had been played.
        round: the round, as the scenario's papers count.
        doing: what had just happened: `"start"`, `"opened"`, a phase such as `"talk"`, `"settled"` or `"over"`.
        reason: why the episode ended; empty while it runs.
        said: messages, oldest first.
    """

    scenario: str
    agents: tuple[str, ...]
    step: int
    round: int
    doing: str
    reason: str = ""
    said: tuple[Said, ...] = ()

    def known_to(self, players: Collection[int]) -> Scene | None:
        """The scene with nothing in it that these players may not know, for people who play.

        `None`, unless a scenario says otherwise: they then read what their texts say, and see no picture.
        """
        return None

    def state(self, **words: str) -> str:
        """Why the episode ended, or what had just happened: in these words, or in general ones."""
        return self.reason or {**_DOING, **words}.get(self.doing, self.doing)
