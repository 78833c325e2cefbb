"""What users want of a run while it is played, and what they are told of it."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.scenario import Event
from llm_coop_envs.errors import RunError
from llm_coop_envs.runs.devices import devices


@dataclass(kw_only=True)
class Steering:
    """Stands between a run's socket, whose thread calls it, and whoever plays, who looks here several times a second.

    Attributes:
        stop: asks the run to stop as the first Ctrl-C does; nothing paid is lost.
        stopping: whether it was asked to.
        paused: whether nothing new is to be begun or asked; what is under way is finished.
        most: how many requests, or episodes without a model, may be under way; `None` for the run's own limit.
        told: what else is told of the run, as plain data; replaced, never changed.
        events: of the episodes that are played in this process, by name; lists that only grow.
        workers: names of the sockets of the processes that play for this one.
    """

    stop: Callable[[], None] = lambda: None
    stopping: Callable[[], bool] = lambda: False
    paused: bool = False
    most: int | None = None
    told: Mapping[str, Any] = field(default_factory=dict)
    events: dict[str, list[Event]] = field(default_factory=dict)
    since: float = field(default_factory=time.time)
    workers: Sequence[str] = ()

    def room(self) -> float:
        """How many episodes may be played at the same time."""
        return 0 if self.paused else math.inf if self.most is None else self.most

    def obey(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Do what a message on the socket says, and answer it.

        Raises:
            RunError: the message says nothing that can be done.
        """
        what = order.get("do")
        if what == "pause":
            self.paused = True
        elif what == "resume":
            self.paused = False
        elif what == "stop":
            self.stop()
        elif what == "limit":
            most = order.get("most")
            if not isinstance(most, int) or isinstance(most, bool) or most < 1:
                raise RunError(f"limit {most!r}: must be an integer of 1 or more")
            self.most = most
        elif what == "events":
            return self._events(str(order.get("episode")), int(order.get("first", 0)), int(order.get("most", 0)))
        elif what != "status":
            raise RunError(f"{what!r}: is no order; there are pause, resume, stop and limit")
        return self.status()

    def status(self) -> dict[str, Any]:
        """What is told of the run."""
        playing = {name: {"events": len(events)} for name, events in self.events.copy().items()}
        own = {"paused": self.paused, "stopping": self.stopping(), "most": self.most, "since": self.since}
        return {**own, "playing": playing, "workers": self.workers, "devices": devices(), **self.told}

    @contextlib.contextmanager
    def following(self, episode: str) -> Iterator[Callable[[ScenarioEnv], None]]:
        """Tell of an episode as long as the block lasts; yields what is to be called as it goes on.

        Before the first call it has no events: those who play it may be learning still.
        """
        self.events[episode] = []

        def follow(env: ScenarioEnv) -> None:
            self.events[episode] = env.events

        try:
            yield follow
        finally:
            del self.events[episode]

    def _events(self, episode: str, first: int, most: int) -> dict[str, Any]:
        events = self.events.get(episode)
        if events is None:
            raise RunError(f"{episode}: is not being played now")
        return {"events": events[max(0, first) : max(0, first) + max(1, most)], "there": len(events)}
