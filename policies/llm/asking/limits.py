"""How many requests may be under way: found by trying, and kept under what the user states per minute.

Time is always passed in, so that nothing here waits or reads a clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from llm_coop_envs.policies.llm.chat import ChatError
from llm_coop_envs.policies.llm.clients.endpoint import Limits

SHRINK = 0.8
GROW = 1.05
DOUBLE = 2
COOL_DOWN = 15.0  # seconds: refusals that arrive within it belong to one episode
WORTH = 1.1  # a limit that is half as large again must bring at least a tenth more answers per second
STEP = 1.5
HOLD = 60.0  # seconds until growth that brought nothing is tried again
EVIDENCE = 20  # requests from which a share of refusals is believed
ALIVE = 0.1  # an endpoint that answers no larger share is full or down, not flaky
HELPED = 0.8  # fewer in flight have helped if the share of refusals fell below so much of what it was
MINUTE = 60.0

# Of the breaker.
DEAD = frozenset({"server", "network", "timeout", "bad_reply"})
FAILURES = 12  # in a row, no answer between; with 30 % of attempts failing that happens once in two million
FIRST_PAUSE = 5.0
LONGEST_PAUSE = 120.0
GIVE_UP = 1800.0


class InFlight:
    """The limit on requests in flight, found by trying.

    It doubles from round to round (a round is as many answers as the limit) until the provider first says "too many"
    or growth stops paying; then it grows by 5 % a round. A refusal or time-out shrinks it to 0.8 of what was in
    flight, once per episode of 15 s; a server error keeps it from growing for as long. (The scheme of the UK AI
    Security Institute's Inspect, with a check that growth pays: a local server that answers four at a time
    gets no faster from 400 requests, they only time out.)

    Some refusals have nothing to do with our number: a quota shared with others, a flaky gateway. If fewer in flight
    bring no fewer of them, the limit goes back to what it was, and such a share of refusals shrinks it no more.
    """

    def __init__(self, limits: Limits) -> None:
        self.limit = limits.start
        self._most = self._given = limits.most
        self._found = 0  # the limit that had been found when it was capped, while the provider does not refuse it
        self._slow_start = True
        self._frozen_until = 0.0
        self._shrunk_until = 0.0
        self._answers = 0
        self._round_began: float | None = None
        self._full = False
        self._span = 1
        self._paid: tuple[int, float] | None = None
        self._episode = _Outcomes()
        self._before: tuple[int, float] | None = None  # limit, and share of refusals, before it was last shrunk
        self._endured: float | None = None  # a share of refusals that does not depend on the limit

    def cap(self, most: int) -> None:
        """Keep the limit at or below `most` from now on, and below what was given at first; with 0 nothing is sent."""
        self._found = max(self._found, self.limit)
        self._most = min(self._given, most)
        self.limit = min(self._found, self._most)

    def sent(self, now: float, in_flight: int) -> None:
        """A request was sent; `in_flight` includes it."""
        if self._round_began is None:
            self._round_began = now
        if in_flight >= self.limit:
            self._full = True

    def answered(self, now: float) -> None:
        """A request was answered; at the end of a clean round in which the limit was reached, it grows."""
        self._answers += 1
        self._episode.answered += now < self._shrunk_until
        if self._answers < self.limit * self._span:
            return
        began = self._round_began if self._round_began is not None else now
        rate = self._answers / max(now - began, 1e-9)
        if self._full and now >= self._frozen_until:
            if self._paid is None or self.limit >= STEP * self._paid[0]:
                if self._paid is not None and rate < WORTH * self._paid[1]:
                    if self._span == 1:
                        self._span = 2  # answers come in waves: a second round is counted before it is given up
                        return
                    self.limit = min(self._paid[0], self._most)
                    self._paid = None
                    self._slow_start = False
                    self._frozen_until = now + HOLD
                    self._new_round(now)
                    return
                self._paid = (self.limit, rate)
            self._grow()
        self._new_round(now)

    def refused(self, now: float, in_flight: int) -> None:
        """A request was refused (429) or timed out; `in_flight` includes it."""
        if now < self._shrunk_until:
            self._episode.refused += 1
            return
        self._found = 0
        # An episode that ended long ago says nothing about this refusal.
        share = self._episode.share if now < self._shrunk_until + COOL_DOWN else None
        self._episode = _Outcomes()
        self._shrunk_until = now + COOL_DOWN
        if share is not None and self._endured is not None and share <= self._endured / HELPED:
            self._endured = min(share, self._endured)
            return
        if share is not None and self._before is not None and share >= HELPED * self._before[1]:
            self.limit, self._endured, self._before = min(self._before[0], self._most), share, None
            self._frozen_until = now
            self._new_round(now)
            return
        # While a share is endured the limit grows, so that what was counted belongs to no one limit.
        self._before = None if share is None or self._endured is not None else (self.limit, share)
        self._endured = None
        self.limit = min(self._most, max(1, int(SHRINK * min(self.limit, in_flight))))
        self._slow_start = False
        self._paid = None
        self._frozen_until = max(self._frozen_until, now + COOL_DOWN)
        self._new_round(now)

    def faltered(self, now: float) -> None:
        """The server failed otherwise: no growth for a while."""
        self._frozen_until = max(self._frozen_until, now + COOL_DOWN)
        self._new_round(now)

    def _grow(self) -> None:
        grown = self.limit * DOUBLE if self._slow_start else max(self.limit + 1, int(self.limit * GROW))
        self.limit = min(grown, self._most)

    def _new_round(self, now: float) -> None:
        self._answers = 0
        self._span = 1
        self._round_began = now
        self._full = False


@dataclass(slots=True)
class _Outcomes:
    """What became of the requests that ended in an episode."""

    answered: int = 0
    refused: int = 0

    @property
    def share(self) -> float | None:
        """The share of refusals; `None` if it is no reason to endure them: none, too few requests, hardly an answer."""
        total = self.answered + self.refused
        known = self.refused > 0 and total >= EVIDENCE and self.answered > ALIVE * total
        return self.refused / total if known else None


class Bucket:
    """An amount per minute, given out evenly, with a second's worth at once; `None` for no limit."""

    def __init__(self, per_minute: int | None, now: float) -> None:
        self._rate = self._given = None if per_minute is None else per_minute / MINUTE
        self._parts = 1
        self._room = 0.0 if self._rate is None else max(1.0, self._rate)
        self._level = self._room
        self._at = now

    def wait(self, amount: float, now: float) -> float:
        """Seconds until `amount` may be taken; 0 if now.

        An amount larger than a second's worth waits for a full bucket and leaves a debt.
        """
        if self._rate is None:
            return 0.0
        self._fill(now)
        missing = min(amount, self._room) - self._level
        # A rounding error must not turn into a wait of 1e-17 s that changes nothing.
        return missing / self._rate if missing > 1e-9 else 0.0

    def divide(self, parts: int, now: float) -> None:
        """Give out no more than one of so many parts of what was given at first."""
        if self._given is not None and parts != self._parts:
            self._fill(now)
            self._rate = self._given / parts
            self._room = max(1.0, self._rate)
            self._level = min(self._level * self._parts / parts, self._room)
            self._parts = parts

    def take(self, amount: float, now: float) -> None:
        """Take an amount, into debt if need be; a negative one gives back."""
        if self._rate is not None:
            self._fill(now)
            self._level = min(self._level - amount, self._room)

    def _fill(self, now: float) -> None:
        if self._rate is not None:
            self._level = min(self._room, self._level + (now - self._at) * self._rate)
            self._at = now


class Breaker:
    """Counts failures in a row; after `FAILURES` of them the endpoint is paused, then tried with single requests.

    It is tried again at `until`; `dead_for` are the seconds from the first of these failures to the last.
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
    def open(self) -> bool:
        """Whether the endpoint is held for dead: nothing is sent, or one request to find out."""
        return self.failures >= FAILURES

    @property
    def hopeless(self) -> bool:
        """Whether it has been dead for so long that the run stops."""
        return self.dead_for >= GIVE_UP

    def answered(self) -> bool:
        """The endpoint answered or refused in an orderly way; says whether it was held for dead until now."""
        was_open = self.open
        if self.failures:
            self._reset()
        return was_open

    def failed(self, error: ChatError, now: float) -> bool:
        """An attempt failed; says whether a pause begins now."""
        if error.kind not in DEAD:
            return False
        self.failures += 1
        if self._since is None:
            self._since = now
        if not self.open or now < self.until:
            return False
        self.dead_for = now - self._since
        self.until = now + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return True


def divided(total: int, parts: int, number: int) -> int:
    """What one of several gets of a total that is divided as evenly as it can be; `number` counts them from 0."""
    return total // parts + (number < total % parts)
