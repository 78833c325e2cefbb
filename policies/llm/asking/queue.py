"""The queue of questions to one model, and the interface of the dispatchers that take them, one for each address."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from llm_coop_envs.policies.llm.chat import ChatReply, ChatRequest, RequestKey, RunStopped
from llm_coop_envs.policies.llm.totals import RequestCounters


class Clock(Protocol):
    """The time of an event loop; tests advance it by hand."""

    def time(self) -> float:
        """Seconds since any fixed moment."""
        ...

    def call_later(self, delay: float, callback: Callable[[], None], /) -> asyncio.TimerHandle:
        """Call a function after `delay` seconds."""
        ...


@dataclass(eq=False, slots=True)
class Job:
    """A question that has not been answered yet.

    Attributes:
        key: the decision it belongs to.
        request: the question.
        digest: `request.digest()`.
        tokens: how many tokens it takes from a limit per minute.
        finish: called once with the answer, or with the error: a `ChatError` for the policy, or what stops the run.
        attempts: attempts begun in this session.
        failures: failed attempts, without those made while the breaker was open.
        began: when the first attempt began.
        paused_before: `Queue.paused_seconds` at that time.
    """

    key: RequestKey
    request: ChatRequest
    digest: str
    tokens: float
    finish: Callable[[ChatReply | Exception], None]
    attempts: int = 0
    failures: int = 0
    began: float | None = None
    paused_before: float = 0.0


class Taker(Protocol):
    """The interface of a dispatcher to its queue."""

    @property
    def load(self) -> float:
        """Attempts in flight, as a share of the limit."""
        ...

    @property
    def is_working(self) -> bool:
        """Whether the address has answered and its breaker is closed."""
        ...

    def may_send(self) -> bool:
        """Whether the next job may be sent now. If it may be sent later, a timer is set."""
        ...

    def start(self) -> None:
        """Take the next job and send it."""
        ...

    def halt(self) -> None:
        """Send nothing more; attempts in flight continue."""
        ...


class Queue:
    """The jobs of one model: first come, first served, but failed jobs go before those not tried yet.

    A model with several addresses has several takers. The one with the least load takes the next job. A dead address
    takes a single job now and then as a test; a job that fails there is retried by the next free taker.

    Attributes:
        ready: jobs that may be sent now.
        stopped: why nothing is sent any more.
        paused_seconds: seconds in which nothing could be sent, because every address or the whole run was paused.
        unpaused: is set unless the user has paused the run; and when nothing is sent any more.
    """

    def __init__(self, counters: RequestCounters, clock: Clock) -> None:
        self.ready: deque[Job] = deque()
        self.stopped: RunStopped | None = None
        self.paused_seconds = 0.0
        self.unpaused = asyncio.Event()
        self.unpaused.set()
        self._later: set[Job] = set()
        self._paused_since: float | None = None
        self._takers: list[Taker] = []
        self._counters = counters
        self._clock = clock

    def join(self, taker: Taker) -> None:
        """Let a dispatcher take jobs."""
        self._takers.append(taker)

    def has_other_working(self, taker: Taker) -> bool:
        """Whether another address is working."""
        return any(other.is_working for other in self._takers if other is not taker)

    def set_paused(self, paused: bool) -> None:
        """Pause or resume sending."""
        now = self._clock.time()
        if self._paused_since is None:
            if paused and self.stopped is None:
                self._paused_since = now
                self.unpaused.clear()
        elif not paused:
            self.paused_seconds += now - self._paused_since
            self._paused_since = None
            self.unpaused.set()
            self.pump()

    def submit(self, job: Job) -> None:
        """Queue a new job."""
        if self.stopped is not None:
            job.finish(self.stopped)
            return
        self.ready.append(job)
        self._counters.waiting += 1
        self.pump()

    def requeue(self, job: Job, pause: float) -> None:
        """Queue a job for its next attempt after `pause` seconds."""
        self._later.add(job)
        self._counters.waiting += 1

        def now_ready() -> None:
            if job in self._later:
                self._later.remove(job)
                self.ready.appendleft(job)
                self.pump()

        self._clock.call_later(pause, now_ready)

    def take(self) -> Job:
        """Remove the next job and return it."""
        self._counters.waiting -= 1
        return self.ready.popleft()

    def pump(self) -> None:
        """Start all jobs that may be sent now."""
        while self.ready:
            free = [taker for taker in self._takers if taker.may_send()]
            if not free:
                return
            min(free, key=lambda taker: taker.load).start()

    def halt(self, reason: RunStopped) -> None:
        """Send nothing more; waiting jobs fail with `reason`, attempts in flight continue."""
        self.stopped = reason
        self.unpaused.set()
        waiting = [*self.ready, *self._later]
        self.ready.clear()
        self._later.clear()
        self._counters.waiting -= len(waiting)
        for taker in self._takers:
            taker.halt()
        for job in waiting:
            job.finish(reason)
