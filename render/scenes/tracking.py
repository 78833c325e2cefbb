"""Following an episode event by event: what every scenario's tracker shares.

A tracker is the one way to scenes, for a running environment and for a record alike: it takes events as the
environment records them, and gives the scene of the moment at any time. Taking one costs little, because histories
are shared: a scene holds a read-only view of a growing array.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.render.scenes.base import OVER, SETTLED, START, Said, Scene

Event = Mapping[str, Any]
SceneType = TypeVar("SceneType", bound=Scene)


class Growing:
    """Rows of one shape that are only ever appended; views of the first ones stay valid."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self._rows: NDArray[Any] = np.empty((8, *shape), dtype=dtype)
        self._count = 0

    def __len__(self) -> int:
        """How many rows there are."""
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
    """Follows one episode from its `start` event on; what it knows has the names of a scene's fields."""

    #: Whether what was said is dropped when a round opens.
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
            heard = None if hearers is None else tuple(self.index[name] for name in hearers)
            message = Said(speaker=self.index[event["agent"]], text=event["text"], round=event["round"], hearers=heard)
            self.said = (*self.said, message)
            self.doing = "talk"
        elif kind == "choice":
            self.doing = event["phase"]
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
        """The scene of the moment."""

    def common(self) -> dict[str, Any]:
        """The fields that every scene has."""
        return {field.name: getattr(self, field.name) for field in fields(Scene)}

    def _enter(self) -> None:
        """A new round begins."""

    def _choose(self, player: int, phase: str, choice: Any) -> None:
        """Somebody chose."""

    @abstractmethod
    def _settle(self, event: Event) -> None:
        """A round was settled."""

    def _other(self, event: Event) -> None:
        """An event of the scenario's own kind; unknown ones are passed over."""
