"""Questions on their way: what waits to be asked of a model, and the dispatchers that take it, one for each address."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from llm_coop_envs.policies.llm.chat import ChatReply, ChatRequest, RequestKey, RunStopped
from llm_coop_envs.policies.llm.totals import RequestCounters


class Clock(Protocol):
    """Time, as an event loop gives it; tests turn it by hand."""

    def time(self) -> float:
        """Seconds, from any start."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None], /) -> asyncio.TimerHandle:
        """Call after some seconds."""
        ...


@dataclass(eq=False, slots=True)
class Job:
    """A question on its way to an answer.

    Attributes:
        digest: `request.digest()`.
        tokens: its share of a limit on tokens per minute.
        done: is called once with the answer, or with what stands in its way: a `ChatError` for the policy, or what
            stops the run.
        attempts: attempts begun in this session.
        failures: those of them that failed, without those that only showed that the endpoint is dead.
        began: when its first attempt began.
        paused_before: `Queue.paused` at that time.
    """

    key: RequestKey
    request: ChatRequest
    digest: str
    tokens: float
    done: Callable[[ChatReply | Exception], None]
    attempts: int = 0
    failures: int = 0
    began: float | None = None
    paused_before: float = 0.0


class Taker(Protocol):
    """A dispatcher, as its queue knows it."""

    @property
    def load(self) -> float:
        """Attempts under way, as a share of the limit."""
        ...

    @property
    def works(self) -> bool:
        """Whether it has been answered and is not held for dead."""
        ...

    def may_send(self) -> bool:
        """Whether it would send the next job now; it sets an alarm if it will later."""
        ...

    def start(self) -> None:
        """Take the next job and send it."""
        ...

    def halt(self) -> None:
        """Send nothing any more; attempts under way go on."""
        ...


class Queue:
    """Jobs of one model, first come, first served; what failed goes before what has not been tried.

    A model with several addresses has several takers. The one with the least load takes a job; one that is dead takes a
    single job now and then, to find out, and what fails there is asked again by whoever is next.

    Attributes:
        ready: what may be sent now.
        stopped: why nothing is sent any more.
        paused: seconds in which nothing could be sent: every address was paused, or the user held the run.
    """

    def __init__(self, counters: RequestCounters, clock: Clock) -> None:
        self.ready: deque[Job] = deque()
        self.stopped: RunStopped | None = None
        self.paused = 0.0
        self._later: set[Job] = set()
        self._held_since: float | None = None
        self._takers: list[Taker] = []
        self._counters = counters
        self._clock = clock

    def join(self, taker: Taker) -> None:
        """Let a dispatcher take jobs."""
        self._takers.append(taker)

    def others_work(self, taker: Taker) -> bool:
        """Whether there is another address that answers."""
        return any(one.works for one in self._takers if one is not taker)

    @property
    def held(self) -> bool:
        """Whether nothing new is sent for now."""
        return self._held_since is not None

    def hold(self, held: bool) -> None:
        """Send nothing new while `held`."""
        now = self._clock.time()
        if self._held_since is None:
            self._held_since = now if held else None
        elif not held:
            self.paused += now - self._held_since
            self._held_since = None
            self.pump()

    def submit(self, job: Job) -> None:
        """Queue a job."""
        if self.stopped is not None:
            job.done(self.stopped)
            return
        self.ready.append(job)
        self._counters.waiting += 1
        self.pump()

    def again(self, job: Job, pause: float) -> None:
        """Queue a job for its next attempt, after a pause in seconds."""
        self._later.add(job)
        self._counters.waiting += 1

        def now_ready() -> None:
            if job in self._later:
                self._later.remove(job)
                self.ready.appendleft(job)
                self.pump()

        self._clock.call_later(pause, now_ready)

    def take(self) -> Job:
        """The next job."""
        self._counters.waiting -= 1
        return self.ready.popleft()

    def pump(self) -> None:
        """Start what may be sent now."""
        while self.ready:
            free = [taker for taker in self._takers if taker.may_send()]
            if not free:
                return
            min(free, key=lambda taker: taker.load).start()

    def halt(self, reason: RunStopped) -> None:
        """Send nothing any more; what waits fails with `reason`, attempts under way go on."""
        self.stopped = reason
        waiting = [*self.ready, *self._later]
        self.ready.clear()
        self._later.clear()
        self._counters.waiting -= len(waiting)
        for taker in self._takers:
            taker.halt()
        for job in waiting:
            job.done(reason)
