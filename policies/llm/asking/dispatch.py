"""The dispatcher of one address: a pool of workers over a queue, and the only retry loop.

A worker is a task that takes job after job; there are as many as attempts in flight, not as many as questions. A job
that has to wait before its next attempt goes back into the queue and holds no worker.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from llm_coop_envs.errors import LlmCoopError
from llm_coop_envs.policies.llm.asking.limits import LONGEST_PAUSE, Breaker, Bucket, InFlight
from llm_coop_envs.policies.llm.asking.queue import Clock, Job, Queue
from llm_coop_envs.policies.llm.chat import (
    BudgetReached,
    ChatError,
    ChatReply,
    EndpointStopped,
    RunStopped,
)
from llm_coop_envs.policies.llm.clients.endpoint import Limits, Retry
from llm_coop_envs.policies.llm.totals import RequestCounters

# Kinds that a policy can do something about; every other failure ends the run.
FOR_THE_POLICY = frozenset({"context_too_long"})
# Kinds of failure behind which there need not be a server that works.
_NO_SIGN = frozenset({"network", "timeout", "bad_reply"})
_EACH = 1.0  # seconds between attempts at an endpoint that has not answered anything yet
_FIRST_LOOK = (5.0, 20.0)  # seconds, at least and at most, until it is asked whether a silent one is there at all
_GO_ON = "every answer so far is kept, run again to continue"
_NOBODY = f"check the address, start the server, or give --wait SECONDS to start it later; {_GO_ON}"
_ADVICE = {
    "auth": "check the key",
    "quota": "check the account's credit",
    "not_found": "check the model's name and the address",
    "bad_request": "check the sampling settings against what the model takes",
}


@dataclass(kw_only=True)
class Dispatcher:
    """Sends jobs to one address.

    Args:
        queue: where jobs come from, and what is to be asked again goes.
        attempt: makes one attempt at a job: reserves, journals, asks, settles. Raises `ChatError` for a failed
            attempt; anything else that it raises stops the run.
        notify: is told in a sentence when the endpoint is paused and when it is back.
        stop: is called with the reason when no job of any endpoint shall be sent any more.
        generator: draws the pauses between attempts.
        patience: seconds in which an endpoint that has not answered anything yet is tried; then the run stops.
        is_there: whether anybody answers at its address; asked when it took a question and is silent for that long.
    """

    queue: Queue
    attempt: Callable[[Job], Awaitable[ChatReply]]
    where: str
    limits: Limits
    retry: Retry
    counters: RequestCounters
    notify: Callable[[str], None]
    stop: Callable[[RunStopped], None]
    clock: Clock
    generator: random.Random
    patience: float = math.inf
    is_there: Callable[[], Awaitable[bool]] | None = None

    def __post_init__(self) -> None:
        """Start with nothing to do."""
        self._workers: set[asyncio.Task[None]] = set()
        self._active = 0
        self._in_flight = InFlight(self.limits)
        self._breaker = Breaker()
        now = self.clock.time()
        self._requests = Bucket(self.limits.requests_per_minute, now)
        self._tokens = Bucket(self.limits.tokens_per_minute, now)
        self._resume_at = 0.0
        self._timer: tuple[float, asyncio.TimerHandle] | None = None
        self._began: float | None = None
        self._heard = False
        self._missed: ChatError | None = None  # the last failure, while nothing was answered after it
        self._told = False
        self._looking: asyncio.Task[None] | None = None
        self.counters.limit += self._in_flight.limit
        self.queue.join(self)

    @property
    def load(self) -> float:
        """Attempts under way, as a share of the limit."""
        return self._active / self._in_flight.limit

    @property
    def works(self) -> bool:
        """Whether it has been answered and is not held for dead."""
        return self._heard and not self._breaker.open

    def cap(self, most: int, parts: int) -> None:
        """Keep at most so many attempts in flight from now on, and a share of the limits per minute."""
        self._limit_changes(lambda: self._in_flight.cap(most))
        for bucket in (self._requests, self._tokens):
            bucket.divide(parts, self.clock.time())

    def halt(self) -> None:
        """Send nothing any more; attempts under way go on."""
        if self._timer is not None:
            self._timer[1].cancel()
            self._timer = None

    async def drain(self) -> None:
        """Wait until no attempt is under way."""
        if self._looking is not None:
            self._looking.cancel()
        while self._workers:
            await asyncio.wait(set(self._workers))

    def abandon(self) -> None:
        """Break off the attempts under way; their answers, if paid for, are lost."""
        for worker in self._workers:
            worker.cancel()

    def start(self) -> None:
        """Start a worker with the next job."""
        self._active += 1
        worker = asyncio.get_running_loop().create_task(self._work(self._take()))
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)

    def may_send(self) -> bool:
        """Whether the next job may be sent now; sets an alarm if it may later."""
        if not self.queue.ready or self.queue.held:
            return False
        alone = self._breaker.open or (self._missed is not None and not self._heard)
        limit = 1 if alone else self._in_flight.limit
        if self._active >= limit:
            return False
        now = self.clock.time()
        wait = self._resume_at - now
        if wait <= 0:
            wait = max(self._requests.wait(1, now), self._tokens.wait(self.queue.ready[0].tokens, now))
        if wait > 0:
            self._wake(now + wait)
            return False
        return True

    def _take(self) -> Job:
        now = self.clock.time()
        job = self.queue.take()
        self._requests.take(1, now)
        self._tokens.take(job.tokens, now)
        return job

    async def _work(self, job: Job) -> None:
        """Make attempt after attempt, as long as something may be sent."""
        try:
            while True:
                await self._try(job)
                self._active -= 1
                if not self.may_send():
                    break
                self._active += 1
                job = self._take()
                self.queue.pump()  # the limit may have grown
        except asyncio.CancelledError:
            self._active -= 1
            raise
        self.queue.pump()

    async def _try(self, job: Job) -> None:
        """One attempt, and what follows from it."""
        counters, now = self.counters, self.clock.time()
        if self._began is None:
            self._began = now
            if math.isfinite(self.patience):
                self.clock.call_later(min(max(self.patience, _FIRST_LOOK[0]), _FIRST_LOOK[1]), self._look)
        if job.began is None:
            job.began, job.paused_before = now, self.queue.paused
        if job.attempts:
            counters.retries += 1
        job.attempts += 1
        counters.in_flight += 1
        self._in_flight.sent(now, self._active)
        try:
            reply = await self.attempt(job)
        except ChatError as error:
            self._failed(job, error)
        except asyncio.CancelledError:
            broken_off = RunStopped(f"{self.where}: the run was broken off; run it again to continue")
            job.done(self.queue.stopped or broken_off)
            raise
        except RunStopped as stopped:
            reason: RunStopped = stopped
            if isinstance(stopped, BudgetReached) and self._missed is not None and self._dead:
                # The budget is not what is in the way.
                reason = EndpointStopped(f"{self._missed}; no further attempt fits into the budget; {_GO_ON}")
            job.done(reason)
            self.stop(reason)
        except LlmCoopError as error:  # the journal cannot be written, say
            job.done(error)
            self.stop(RunStopped(str(error)))
        except Exception as error:
            # A mistake of ours: whoever asked is shown it, and the run does not go on as if nothing had been asked.
            job.done(error)
            self.stop(RunStopped(f"{job.key}: {type(error).__name__}: {error}"))
        else:
            self._answered(job, reply)
        finally:
            counters.in_flight -= 1

    def _answered(self, job: Job, reply: ChatReply) -> None:
        now = self.clock.time()
        self.heard()
        self._tokens.take(reply.usage.prompt_tokens + reply.usage.completion_tokens - job.tokens, now)
        self._limit_changes(lambda: self._in_flight.answered(now))
        job.done(reply)

    def _failed(self, job: Job, error: ChatError) -> None:
        now = self.clock.time()
        spent = now - (job.began or now) - (self.queue.paused - job.paused_before)
        self.counters.errors[error.kind] += 1
        self._missed = error
        if error.kind not in _NO_SIGN:
            self._heard = True
        elif not self._heard and math.isfinite(self.patience) and not _is_late(error):
            if not self._told:
                self._told = True
                self.notify(f"{error}; tried again for {self.patience:.0f} s (--wait says how long)")
            self._not_reached(job, error, now)
            return
        if error.kind == "form" and self.queue.stopped is None:
            self.queue.again(job, 0.0)
            return
        if not self._breaker.open:
            job.failures += 1
        if error.kind in ("rate_limit", "timeout"):
            self._limit_changes(lambda: self._in_flight.refused(now, self._active))
        elif error.may_retry:
            self._in_flight.faltered(now)
        if error.kind == "rate_limit" and error.retry_after:
            self._pause(now + error.retry_after, f"{self.where} asks to wait")
        breaker = self._breaker
        if breaker.failed(error, now):
            self._pause(breaker.until, f"{self.where} does not answer")
            self.notify(
                f"{self.where} does not answer ({breaker.failures} failures in a row, the last: {error}); "
                f"paused for {breaker.until - now:.0f} s, then tried again"
            )
            if breaker.hopeless and not self.queue.others_work(self):
                minutes = f"{breaker.dead_for / 60:.0f} minutes"
                self.stop(EndpointStopped(f"{self.where} has not answered for {minutes} {_last(error)}"))
        elif error.kind == "rate_limit" or not error.may_retry:
            self._in_order(now)
        if error.kind in FOR_THE_POLICY:
            job.done(error)
            return
        if not goes_on(self.retry, job.failures, spent, error):
            if error.may_retry and (error.retry_after or 0.0) > self.retry.total:
                most = f"more than the {self.retry.total:.0f} s that are waited at most"
                reason = EndpointStopped(f"{error}; it asks to wait {error.retry_after:.0f} s, {most}; {_GO_ON}")
            elif error.may_retry:
                tried = f"{job.failures} attempts over {spent:.0f} s"
                reason = EndpointStopped(f"{job.key}: no answer in {tried} {_last(error)}")
            else:
                advice = _ADVICE.get(error.kind, "correct what it names")
                reason = EndpointStopped(f"{error}; {advice}, then run again to continue (every answer so far is kept)")
            job.done(reason)
            self.stop(reason)
        elif self.queue.stopped is not None:
            job.done(self.queue.stopped)
        else:
            self.queue.again(job, pause_after(self.retry, job.failures, error, self.generator))

    def _not_reached(self, job: Job, error: ChatError, now: float) -> None:
        """An attempt failed at an endpoint that has not answered anything yet: it is tried, by one, for a while."""
        waited = now - (self._began or now)
        if self.queue.stopped is not None:
            job.done(self.queue.stopped)
        elif waited >= self.patience and self.queue.others_work(self):
            self._pause(now + LONGEST_PAUSE, str(error))
            self.notify(f"{error}; the other addresses go on, and it is tried again in {LONGEST_PAUSE:.0f} s")
            self.queue.again(job, 0.0)
        elif waited >= self.patience:
            reason = EndpointStopped(f"{error}, and has not answered anything for {waited:.0f} s; {_NOBODY}")
            job.done(reason)
            self.stop(reason)
        else:
            self._pause(now + _EACH, str(error))
            self.queue.again(job, 0.0)

    def _look(self) -> None:
        """Look after an endpoint that took a question long ago and has not answered anything."""
        if not self._heard and self._active and self.queue.stopped is None:
            self._looking = asyncio.get_running_loop().create_task(self._look_after())

    async def _look_after(self) -> None:
        there = self.is_there is None or await self.is_there()
        if self._heard or self.queue.stopped is not None or self.queue.others_work(self):
            return
        waited = self.clock.time() - (self._began or 0.0)
        silent = f"{self.where} has not answered its first question for {waited:.0f} s"
        if there:
            self.notify(f"{silent}; it is there, and may be loading its model: it is waited for (--timeout)")
        elif waited < self.patience:
            self.notify(f"{silent}, nor anything else; it is waited for {self.patience:.0f} s (--wait)")
            self.clock.call_later(self.patience - waited, self._look)
        else:
            self.stop(EndpointStopped(f"{silent}, nor anything else; {_NOBODY}"))
            self.abandon()

    @property
    def _dead(self) -> bool:
        return not self.works and not self.queue.others_work(self)

    def heard(self) -> None:
        """The endpoint has answered, whatever becomes of the answer."""
        if not self._heard and self._told:
            self.notify(f"{self.where} answers now")
        self._heard, self._missed = True, None
        self._in_order(self.clock.time())

    def _in_order(self, now: float) -> None:
        """The endpoint works."""
        if self._breaker.answered():
            self._resume_at = min(self._resume_at, now)
            self.counters.paused = None
            self.notify(f"{self.where} answers again")

    def _pause(self, until: float, why: str) -> None:
        """Send nothing until then."""
        if until > self._resume_at:
            now = self.clock.time()
            if not self.queue.others_work(self):
                self.queue.paused += until - max(now, self._resume_at)
            self._resume_at = until
            self.counters.paused = why
            self._wake(until)

    def _wake(self, at: float) -> None:
        """Have a look again at a time; an alarm that is set for earlier stands."""
        if self._timer is not None:
            if self._timer[0] <= at:
                return
            self._timer[1].cancel()

        def wake() -> None:
            self._timer = None
            if not self._breaker.open and self.clock.time() >= self._resume_at:
                self.counters.paused = None
            self.queue.pump()

        self._timer = (at, self.clock.call_later(max(0.0, at - self.clock.time()), wake))

    def _limit_changes(self, change: Callable[[], Any]) -> None:
        before = self._in_flight.limit
        change()
        self.counters.limit += self._in_flight.limit - before


def pause_after(retry: Retry, failures: int, error: ChatError, generator: random.Random) -> float:
    """Seconds to wait after the `failures`-th failed attempt (from 1); at least what the provider asked for."""
    # Beyond 2**40 the pause has long reached its cap; the exponent must not overflow.
    most = min(retry.longest_pause, retry.first_pause * 2.0 ** min(failures - 1, 40))
    return max(generator.uniform(0.0, most), error.retry_after or 0.0)


def _last(error: ChatError) -> str:
    return f"(the last failure: {error}); {_GO_ON}"


def _is_late(error: ChatError) -> bool:
    """Whether an attempt arrived and was not answered in time."""
    return error.kind == "timeout" and error.maybe_paid


def goes_on(retry: Retry, failures: int, spent: float, error: ChatError) -> bool:
    """Whether another attempt is made; `spent` are seconds since the first, pauses of the whole endpoint left out."""
    in_time = spent < retry.total and (error.retry_after or 0.0) <= retry.total
    return error.may_retry and failures < retry.attempts and in_time
