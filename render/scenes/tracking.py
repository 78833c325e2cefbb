"""Trackers, which follow an episode event by event and make its scenes.

Scenes of a running environment and of a recorded one are made in the same way: a tracker takes the events, and makes
the scene of the moment at any time. That costs little, because histories are shared: a scene holds a read-only view of
a growing array.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.mechanisms.settings import MECHANISM_PHASES
from llm_coop_envs.render.scenes.base import OVER, SETTLED, START, Said, Scene

Event = Mapping[str, Any]
SceneType = TypeVar("SceneType", bound=Scene)


class Growing:
    """A growing array: rows are only appended, so that views of earlier rows stay valid.

    Args:
        shape: the shape of a row.
        dtype: the type of its numbers.
    """

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self._rows: NDArray[Any] = np.empty((8, *shape), dtype=dtype)
        self._count = 0

    def __len__(self) -> int:
        """The number of rows."""
        return self._count

    def append(self, row: Any) -> None:
        """Add a row."""
        if self._count == len(self._rows):
            larger = np.empty((2 * len(self._rows), *self._rows.shape[1:]), dtype=self._rows.dtype)
            larger[: self._count] = self._rows
            self._rows = larger
        self._rows[self._count] = row
        self._count += 1

    def view(self, last: int | None = None) -> NDArray[Any]:
        """All rows so far, or the last few, read-only."""
        first = 0 if last is None else max(0, self._count - last)
        view: NDArray[Any] = self._rows[first : self._count].view()
        view.flags.writeable = False
        return view


def frozen(values: NDArray[Any]) -> NDArray[Any]:
    """A read-only copy."""
    copy: NDArray[Any] = values.copy()
    copy.flags.writeable = False
    return copy


class Tracker(ABC, Generic[SceneType]):
    """Follows one episode from its `start` event on; its attributes have the names of a scene's fields.

    Args:
        start: the `start` event.
    """

    #: Whether the messages of a round are forgotten when the next one begins.
    forgets = True

    def __init__(self, start: Event) -> None:
        self.agents: tuple[str, ...] = tuple(start["agents"])
        self.scenario: str = start["scenario"]
        self.index = {name: i for i, name in enumerate(self.agents)}
        self.settings: Mapping[str, Any] = start["settings"]
        self.step: int = start["step"]
        self.round: int = start["round"]
        self.doing = START
        self.reason = ""
        self.said: tuple[Said, ...] = ()

    def add(self, event: Event) -> None:
        """Take the next event."""
        kind = event["type"]
        if event["round"] != self.round and kind != "end":
            self.round = event["round"]
            if self.forgets:
                self.said = ()
            self._enter()
        self.step = event["step"]
        if kind == "message":
            hearers = event["hearers"]
            message = Said(
                speaker=self.index[event["agent"]],
                text=event["text"],
                round=event["round"],
                hearers=None if hearers is None else tuple(self.index[name] for name in hearers),
                private=event.get("private", False),
            )
            self.said = (*self.said, message)
            self.doing = "talk"
        elif kind == "choice":
            self.doing = event["phase"]
            if event["phase"] not in MECHANISM_PHASES:
                self._choose(self.index[event["agent"]], event["phase"], event["choice"])
        elif kind == "round":
            self._settle(event)
            self.doing = SETTLED
        elif kind == "end":
            self.reason = event["reason"]
            self.doing = OVER
        else:
            self._other(event)

    @abstractmethod
    def scene(self) -> SceneType:
        """The present scene."""

    def common(self) -> dict[str, Any]:
        """The fields that every scene has."""
        return {field.name: getattr(self, field.name) for field in fields(Scene)}

    def _enter(self) -> None:
        """A new round begins."""

    def _choose(self, player: int, phase: str, choice: Any) -> None:
        """Somebody chose."""

    @abstractmethod
    def _settle(self, event: Event) -> None:
        """A round was settled; the event holds its numbers."""

    def _other(self, event: Event) -> None:
        """An event of a kind that only this scenario has; unknown kinds are ignored."""
