"""The circuit breaker: an endpoint that answers nobody is left alone for a while, and its user is told."""

from __future__ import annotations

from llm_coop_envs.policies.llm.chat import ChatError

DEAD = frozenset({"server", "network", "timeout", "bad_reply"})
FAILURES = 12  # in a row, no answer between; with 30 % of attempts failing that happens once in two million
FIRST_PAUSE = 5.0
LONGEST_PAUSE = 120.0
GIVE_UP = 1800.0


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
