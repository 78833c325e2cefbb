"""Scenes: the content of a picture as plain data, made by an environment or from recorded events.

A scene knows no environment and no drawing library. Its arrays are read-only and may be shared between scenes; an
array with a history ends at the moment of the scene. A scenario may have scenes of its own, beside its rules;
`render.scenes.table` has those of all others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: What had just happened, if not a phase such as `"talk"`: the episode or a round began, a round was settled, or the
#: episode ended.
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
    """One message.

    Attributes:
        speaker: the index of the player who sent it.
        text: the text.
        round: the round in which it was sent.
        hearers: the indices of the players who heard it; `None` for all.
        private: whether its speaker said it to these alone.
    """

    speaker: int
    text: str
    round: int
    hearers: tuple[int, ...] | None = None
    private: bool = False

    def heard_by(self, listener: int) -> bool:
        """Whether a player other than the speaker heard it."""
        return listener != self.speaker and (self.hearers is None or listener in self.hearers)


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """The fields of every scene.

    Attributes:
        scenario: the environment's name with its version.
        agents: the players' names, in index order.
        step: how many steps had been played.
        round: the round, counted as in the scenario's paper.
        doing: what had just happened: `"start"`, `"opened"`, a phase such as `"talk"`, `"settled"` or `"over"`.
        reason: why the episode ended; empty while it runs.
        said: the messages of the round, or of the whole episode if the scenario forgets none, oldest first.
    """

    scenario: str
    agents: tuple[str, ...]
    step: int
    round: int
    doing: str
    reason: str = ""
    said: tuple[Said, ...] = ()

    def known_to(self, players: Collection[int]) -> Scene | None:
        """The scene without what these players may not know, for human players.

        `None`, unless the scenario overrides it: humans then read their observations as text instead.
        """
        return None

    def state(self, **wordings: str) -> str:
        """Why the episode ended, or what had just happened.

        Args:
            **wordings: a scenario's own wording by the value of `doing`, such as `act="naming prices"`.
        """
        return self.reason or {**_DOING, **wordings}.get(self.doing, self.doing)
