"""Orders of users to a run while it is played, and the status that they see."""

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
from llm_coop_envs.runs.devices import describe_devices
from llm_coop_envs.runs.notify import PAUSED, RESUMED


@dataclass(kw_only=True)
class Steering:
    """Connects a run's socket with the loop that plays it.

    The socket's thread calls `obey`; the loop reads the attributes several times a second.

    Attributes:
        stop: asks the run to stop as the first Ctrl-C does; nothing paid is lost.
        stopping: whether the run was asked to stop.
        paused: whether nothing new may be begun or asked; what is under way is finished.
        limit: the number of requests, or of episodes without a model, that may be under way; `None` for the run's own.
        ceiling: the most requests, or episodes, that the session can have under way; `None` if that is not known.
        progress: further fields of the status, as plain data; replaced as a whole, never changed.
        events: the events of each episode that is played in this process, by its name; lists that only grow.
        since: when the session began, in seconds since 1970.
        workers: names of the sockets of this session's worker processes.
        notice: called when the run is paused or goes on; see `Watcher.notice`.
    """

    stop: Callable[[], None] = lambda: None
    stopping: Callable[[], bool] = lambda: False
    paused: bool = False
    limit: int | None = None
    ceiling: int | None = None
    progress: Mapping[str, Any] = field(default_factory=dict)
    events: dict[str, list[Event]] = field(default_factory=dict)
    since: float = field(default_factory=time.time)
    workers: Sequence[str] = ()
    notice: Callable[[str, str], None] = lambda kind, sentence: None

    def concurrency(self) -> float:
        """The number of episodes that may be played at the same time; infinite without a limit."""
        return 0 if self.paused else math.inf if self.limit is None else self.limit

    def obey(self, order: Mapping[str, Any]) -> dict[str, Any]:
        """Obey an order from the socket, and return the answer.

        Raises:
            RunError: there is no such order, or its argument is impossible.
        """
        action = order.get("do")
        if action in ("pause", "resume"):
            self._pause(action == "pause")
        elif action == "stop":
            self.stop()
        elif action == "limit":
            limit = order.get("most")
            if not isinstance(limit, int) or isinstance(limit, bool) or limit < 1:
                raise RunError(f"limit {limit!r}: must be an integer of 1 or more")
            if self.ceiling is not None and limit > self.ceiling:
                holds = self.ceiling if self.limit is None else min(self.limit, self.ceiling)
                raise RunError(
                    f"limit {limit}: is more than the {self.ceiling} at a time that this session was begun with; "
                    f"{holds} hold as before. To allow more, stop the run and continue it with a higher --in-flight "
                    "(language models) or --workers (rules)"
                )
            self.limit = limit
        elif action == "events":
            return self._events(str(order.get("episode")), int(order.get("first", 0)), int(order.get("most", 0)))
        elif action != "status":
            raise RunError(f"{action!r}: is no order; there are pause, resume, stop and limit")
        return self.status()

    def _pause(self, is_paused: bool) -> None:
        changed = self.paused != is_paused
        self.paused = is_paused
        if changed:
            self.notice(*((PAUSED, "paused") if is_paused else (RESUMED, "going on")))

    def status(self) -> dict[str, Any]:
        """The status of the session, as plain data."""
        playing = {name: {"events": len(events)} for name, events in self.events.copy().items()}
        own = {"paused": self.paused, "stopping": self.stopping(), "most": self.limit, "since": self.since}
        return {**own, "playing": playing, "workers": self.workers, "devices": describe_devices(), **self.progress}

    @contextlib.contextmanager
    def follow_episode(self, episode: str) -> Iterator[Callable[[ScenarioEnv], None]]:
        """Show an episode in the status as long as the block lasts; yields a function to call at each of its steps.

        Before the first step it has no events: its players may still be learning.
        """
        self.events[episode] = []

        def follow(env: ScenarioEnv) -> None:
            self.events[episode] = env.events

        try:
            yield follow
        finally:
            del self.events[episode]

    def _events(self, episode: str, first: int, count: int) -> dict[str, Any]:
        events = self.events.get(episode)
        if events is None:
            raise RunError(f"{episode}: is not being played now")
        return {"events": events[max(0, first) : max(0, first) + max(1, count)], "there": len(events)}
