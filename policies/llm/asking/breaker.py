"""The circuit breaker: an endpoint that answers nobody is left alone for a while, and its user is told."""

from __future__ import annotations

from dataclasses import dataclass

from llm_coop_envs.policies.llm.chat import ChatError

DEAD = frozenset({"server", "network", "timeout", "bad_reply"})
FAILURES = 12  # in a row, no answer between; with 30 % of attempts failing that happens once in two million
FIRST_PAUSE = 5.0
LONGEST_PAUSE = 120.0
GIVE_UP = 1800.0


@dataclass(frozen=True, slots=True)
class Paused:
    """The endpoint is being left alone.

    Attributes:
        until: when it is tried again.
        failures: failures in a row.
        dead_for: seconds since its last answer.
    """

    until: float
    failures: int
    dead_for: float

    @property
    def hopeless(self) -> bool:
        """Whether it has been dead for so long that the run stops."""
        return self.dead_for >= GIVE_UP


class Breaker:
    """Counts failures in a row; after `FAILURES` of them the endpoint is paused, then tried with single requests."""

    def __init__(self) -> None:
        self._failures = 0
        self._since: float | None = None
        self._pause = FIRST_PAUSE
        self._until = 0.0

    @property
    def open(self) -> bool:
        """Whether the endpoint is held for dead: nothing is sent, or one request to find out."""
        return self._failures >= FAILURES

    def answered(self) -> bool:
        """The endpoint answered or refused in an orderly way.

        Returns:
            Whether it was held for dead until now.
        """
        was_open = self.open
        self._failures = 0
        self._since = None
        self._pause = FIRST_PAUSE
        return was_open

    def failed(self, error: ChatError, now: float) -> Paused | None:
        """An attempt failed.

        Returns:
            A pause, if one begins now.
        """
        if error.kind not in DEAD:
            return None
        self._failures += 1
        if self._since is None:
            self._since = now
        if not self.open or now < self._until:
            return None
        self._until = now + self._pause
        self._pause = min(2 * self._pause, LONGEST_PAUSE)
        return Paused(self._until, self._failures, now - self._since)
