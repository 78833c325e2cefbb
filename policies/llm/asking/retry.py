"""How often, how long and with what pauses a failed attempt is repeated."""

from __future__ import annotations

import random
from dataclasses import dataclass

from llm_coop_envs.core.settings import check_int, check_number
from llm_coop_envs.policies.llm.chat import ChatError


@dataclass(frozen=True, kw_only=True)
class Retry:
    """The one retry loop's settings; clients and SDKs do not retry.

    Attributes:
        attempts: the most attempts at one question. Twelve are enough that with 30 % of attempts failing one
            question in two million fails for good.
        first_pause: seconds; the pause after the n-th failure is drawn evenly from 0 to `first_pause * 2**(n - 1)`
            ("full jitter": requests that failed together do not come back together).
        longest_pause: seconds; no drawn pause is longer.
        total: seconds from the first attempt after which a question is given up. Time in which the whole endpoint
            is paused does not count.
    """

    attempts: int = 12
    first_pause: float = 0.5
    longest_pause: float = 60.0
    total: float = 1800.0

    def __post_init__(self) -> None:
        """Check the fields."""
        check_int(self, "attempts", 1, 1000)
        check_number(self, "first_pause", 0)
        check_number(self, "longest_pause", 0)
        check_number(self, "total", 0, above=True)

    def pause(self, failures: int, error: ChatError, generator: random.Random) -> float:
        """Seconds to wait after the `failures`-th failed attempt (from 1); at least what the provider asked for."""
        # Beyond 2**40 the pause has long reached its cap; the exponent must not overflow.
        most = min(self.longest_pause, self.first_pause * 2.0 ** min(failures - 1, 40))
        return max(generator.uniform(0.0, most), error.retry_after or 0.0)

    def goes_on(self, failures: int, spent: float, error: ChatError) -> bool:
        """Whether another attempt is made.

        Args:
            failures: failed attempts so far.
            spent: seconds since the first attempt, pauses of the whole endpoint left out.
            error: how the last attempt failed.
        """
        return (
            error.may_retry
            and failures < self.attempts
            and spent < self.total
            and (error.retry_after or 0.0) <= self.total
        )
