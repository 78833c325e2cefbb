"""How fast an endpoint is asked: limits on requests in flight and per minute, the circuit breaker, pauses to retry.

Time is always passed in; nothing here waits or reads a clock.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from llm_coop_envs.policies.llm.chat import ChatError
from llm_coop_envs.policies.llm.clients.endpoint import Limits, Retry

SHRINK = 0.8
GROW = 1.05
DOUBLE = 2
COOL_DOWN = 15.0  # seconds: refusals within this time belong to one episode
STEP = 1.5  # a limit this many times as large...
WORTH = 1.1  # ...must bring this many times as many answers per second, else it has not paid
HOLD = 60.0  # seconds until growth that has not paid is tried again
EVIDENCE = 20  # requests needed before a share of refusals counts as evidence
ALIVE = 0.1  # an endpoint that answers a smaller share is full or down, not flaky
HELPED = 0.8  # shrinking has helped if the share of refusals fell below this fraction of what it was
MINUTE = 60.0

# The circuit breaker.
DEAD = frozenset({"server", "network", "timeout", "bad_reply"})
FAILURES = 12  # in a row; with 30 % of attempts failing at random, that happens once in two million
FIRST_PAUSE = 5.0
LONGEST_PAUSE = 120.0
GIVE_UP = 1800.0


class InFlight:
    """The limit on requests in flight, found by trial.

    The limit doubles from round to round (a round is as many answers as the limit) until the provider first answers
    "too many requests" or growth stops paying. Then it grows by 5 % a round. A refusal or time-out shrinks it to 0.8
    of the requests in flight, once per episode of 15 s. A server error stops growth for 15 s.

    This is the scheme of Inspect (UK AI Security Institute), with a check that growth pays: a local server that
    answers four questions at a time gets no faster from 400; most of them time out.

    Some refusals do not depend on our requests, such as a quota shared with others or a flaky gateway. If fewer
    requests in flight do not reduce them, the limit goes back to what it was, and that share of refusals is endured.
    """

    def __init__(self, limits: Limits) -> None:
        self.limit = limits.start
        self._ceiling = self._configured = limits.most
        self._uncapped = 0  # the limit found before it was capped; 0 once the provider has refused it
        self._slow_start = True
        self._frozen_until = 0.0
        self._shrunk_until = 0.0
        self._answers = 0
        self._round_began: float | None = None
        self._was_full = False
        self._rounds = 1  # rounds whose answers are counted together
        self._paying: tuple[int, float] | None = None  # the last limit that paid, and its answers per second
        self._episode = _Outcomes()
        self._unshrunk: tuple[int, float] | None = None  # limit and share of refusals before it was last shrunk
        self._endured: float | None = None  # a share of refusals that does not depend on the limit

    def cap(self, ceiling: int) -> None:
        """Keep the limit at or below a ceiling, and below the configured one; a ceiling of 0 sends nothing."""
        self._uncapped = max(self._uncapped, self.limit)
        self._ceiling = min(self._configured, ceiling)
        self.limit = min(self._uncapped, self._ceiling)

    def record_sent(self, now: float, in_flight: int) -> None:
        """Record that a request was sent; `in_flight` includes it."""
        if self._round_began is None:
            self._round_began = now
        if in_flight >= self.limit:
            self._was_full = True

    def record_answer(self, now: float) -> None:
        """Record an answer. At the end of a round without failures in which the limit was reached, the limit grows."""
        self._answers += 1
        self._episode.answered += now < self._shrunk_until
        if self._answers < self.limit * self._rounds:
            return
        began = self._round_began if self._round_began is not None else now
        rate = self._answers / max(now - began, 1e-9)
        if self._was_full and now >= self._frozen_until:
            if self._paying is None or self.limit >= STEP * self._paying[0]:
                if self._paying is not None and rate < WORTH * self._paying[1]:
                    if self._rounds == 1:
                        self._rounds = 2  # answers come in waves: measure a second round before giving up
                        return
                    self.limit = min(self._paying[0], self._ceiling)
                    self._paying = None
                    self._slow_start = False
                    self._frozen_until = now + HOLD
                    self._new_round(now)
                    return
                self._paying = (self.limit, rate)
            self._grow()
        self._new_round(now)

    def record_refusal(self, now: float, in_flight: int) -> None:
        """Record that a request was refused (429) or timed out; `in_flight` includes it."""
        if now < self._shrunk_until:
            self._episode.refused += 1
            return
        self._uncapped = 0
        # An episode that ended long ago is no evidence about this refusal.
        share = self._episode.share if now < self._shrunk_until + COOL_DOWN else None
        self._episode = _Outcomes()
        self._shrunk_until = now + COOL_DOWN
        if share is not None and self._endured is not None and share <= self._endured / HELPED:
            self._endured = min(share, self._endured)
            return
        if share is not None and self._unshrunk is not None and share >= HELPED * self._unshrunk[1]:
            self.limit, self._endured, self._unshrunk = (
                min(self._unshrunk[0], self._ceiling),
                share,
                None,
            )
            self._frozen_until = now
            self._new_round(now)
            return
        # While a share of refusals is endured the limit grows, so the counts belong to several limits.
        self._unshrunk = None if share is None or self._endured is not None else (self.limit, share)
        self._endured = None
        self.limit = min(self._ceiling, max(1, int(SHRINK * min(self.limit, in_flight))))
        self._slow_start = False
        self._paying = None
        self._frozen_until = max(self._frozen_until, now + COOL_DOWN)
        self._new_round(now)

    def record_fault(self, now: float) -> None:
        """Record another failure of the server: the limit does not grow for a while."""
        self._frozen_until = max(self._frozen_until, now + COOL_DOWN)
        self._new_round(now)

    def _grow(self) -> None:
        grown = self.limit * DOUBLE if self._slow_start else max(self.limit + 1, int(self.limit * GROW))
        self.limit = min(grown, self._ceiling)

    def _new_round(self, now: float) -> None:
        self._answers = 0
        self._rounds = 1
        self._round_began = now
        self._was_full = False


@dataclass(slots=True)
class _Outcomes:
    """Outcomes of the requests that ended during an episode."""

    answered: int = 0
    refused: int = 0

    @property
    def share(self) -> float | None:
        """The share of refusals; `None` if there are none, too few requests, or hardly any answers."""
        total = self.answered + self.refused
        is_evidence = self.refused > 0 and total >= EVIDENCE and self.answered > ALIVE * total
        return self.refused / total if is_evidence else None


class Bucket:
    """A token bucket: an amount per minute, given out evenly; it holds one second's worth. `None` means no limit."""

    def __init__(self, per_minute: int | None, now: float) -> None:
        self._rate = self._configured = None if per_minute is None else per_minute / MINUTE
        self._parts = 1
        self._capacity = 0.0 if self._rate is None else max(1.0, self._rate)
        self._level = self._capacity
        self._filled_at = now

    def wait(self, amount: float, now: float) -> float:
        """Seconds until an amount may be taken.

        An amount larger than one second's worth waits for a full bucket and leaves a debt.
        """
        if self._rate is None:
            return 0.0
        self._fill(now)
        missing = min(amount, self._capacity) - self._level
        # A rounding error must not turn into a wait of 1e-17 s that changes nothing.
        return missing / self._rate if missing > 1e-9 else 0.0

    def divide(self, parts: int, now: float) -> None:
        """Give out one of `parts` equal shares of the configured rate."""
        if self._configured is not None and parts != self._parts:
            self._fill(now)
            self._rate = self._configured / parts
            self._capacity = max(1.0, self._rate)
            self._level = min(self._level * self._parts / parts, self._capacity)
            self._parts = parts

    def take(self, amount: float, now: float) -> None:
        """Take an amount, into debt if need be; a negative amount gives back."""
        if self._rate is not None:
            self._fill(now)
            self._level = min(self._level - amount, self._capacity)

    def _fill(self, now: float) -> None:
        if self._rate is not None:
            self._level = min(self._capacity, self._level + (now - self._filled_at) * self._rate)
            self._filled_at = now


class Breaker:
    """The circuit breaker: opens after `FAILURES` failures in a row.

    The endpoint is then paused and tried with single requests, in growing intervals.

    Attributes:
        until: when the endpoint is tried again.
        failures: failures in a row.
        dead_for: seconds from the first of these failures to the last.
    """

    def __init__(self) -> None:
        self.until = 0.0
        self._reset()

    def _reset(self) -> None:
        self.failures = 0
        self.dead_for = 0.0
        self._since: float | None = None
        self._pause = FIRST_PAUSE

    @property
    def is_open(self) -> bool:
        """Whether the endpoint is considered dead: it gets no request, or a single one as a test."""
        return self.failures >= FAILURES

    @property
    def is_hopeless(self) -> bool:
        """Whether the endpoint has been dead for so long that the run stops."""
        return self.dead_for >= GIVE_UP

    def record_answer(self) -> bool:
        """Close the breaker after an answer or an orderly refusal.

        Returns:
            Whether it was open until now.
        """
        was_open = self.is_open
        if self.failures:
            self._reset()
        return was_open

    def record_failure(self, error: ChatError, now: float) -> bool:
        """Count a failure, if it is of a kind that suggests a dead endpoint.

        Returns:
            Whether a pause begins now.
        """
        if error.kind not in DEAD:
            return False
        self.failures += 1
        if self._since is None:
            self._since = now
        if not self.is_open or now < self.until:
            return False
        self.dead_for = now - self._since
        self.until = now + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return True


def pause_after(retry: Retry, failures: int, error: ChatError, generator: random.Random) -> float:
    """Seconds to wait after the `failures`-th failed attempt (from 1), at least as many as the provider asks for."""
    # Beyond 2**40 the pause has long reached its cap; the exponent must not overflow.
    longest = min(retry.longest_pause, retry.first_pause * 2.0 ** min(failures - 1, 40))
    return max(generator.uniform(0.0, longest), error.retry_after or 0.0)


def goes_on(retry: Retry, failures: int, spent: float, error: ChatError) -> bool:
    """Whether to make another attempt.

    Args:
        retry: the limits on attempts.
        failures: failed attempts so far.
        spent: seconds since the first attempt, without pauses of the whole endpoint.
        error: the last failure.
    """
    in_time = spent < retry.total and (error.retry_after or 0.0) <= retry.total
    return error.may_retry and failures < retry.attempts and in_time


def divide_evenly(total: int, parts: int, number: int) -> int:
    """The share of part `number` (from 0) in a total divided as evenly as possible: 10 by 3 gives 4, 3, 3."""
    return total // parts + (number < total % parts)
