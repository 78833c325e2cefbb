"""Faults: which requests go wrong, and how. They are drawn from a seed, whatever the order of arrival."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.util.checks import check_int, check_number

# Faults of the request: a client asks again, and gets every answer in the end.
TRANSPORT = (
    "rate_limit",
    "rate_limit_after",
    "server_error",
    "unavailable",
    "timeout",
    "reset",
    "half_body",
    "broken_json",
    "wrong_json",
    "empty_choice",
)
# Faults of the answer: it arrives, and the policy has to deal with it.
CONTENT = ("refusal", "truncated", "garbage", "huge")
# Faults that only take longer.
SLOW = ("slow_bytes",)
KINDS = TRANSPORT + CONTENT + SLOW


@dataclass(frozen=True, kw_only=True)
class Faults:
    """Shares of requests that go wrong.

    Attributes:
        shares: share of requests, from 0 to 1, by kind of fault (`KINDS`): `rate_limit` (429 without Retry-After),
            `rate_limit_after` (429 with it), `server_error` (500), `unavailable` (503), `timeout` (no answer until
            the client leaves, or `hang` seconds), `reset` (the connection is cut), `slow_bytes` (the answer trickles
            in over `slow` seconds), `half_body` (and then the connection is cut), `broken_json` (a page of HTML),
            `wrong_json` (JSON that is no completion), `empty_choice`, `refusal`, `truncated` (half the answer, finish
            reason `length`), `garbage` (noise for an answer), `huge` (an answer of `huge` bytes).
        seed: seed of the draw. A request's fault depends on the seed, on its idempotency key (or its body) and on how
            often it was asked before, and on nothing else.
        retry_after: seconds that `rate_limit_after` asks to wait.
        hang: seconds.
        slow: seconds.
        huge: bytes.
    """

    shares: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    retry_after: float = 0.01
    hang: float = 30.0
    slow: float = 0.05
    huge: int = 1_000_000

    def __post_init__(self) -> None:
        """Check the fields."""
        for kind, share in self.shares.items():
            if kind not in KINDS:
                raise SettingsError("shares", kind, "is no kind of fault; they are " + ", ".join(KINDS))
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                raise SettingsError("shares", share, f"the share of {kind} must be between 0 and 1")
        if math.fsum(self.shares.values()) > 1 + 1e-9:
            raise SettingsError("shares", dict(self.shares), "must sum to 1 at most")
        for name in ("retry_after", "hang", "slow"):
            check_number(self, name, 0)
        check_int(self, "huge", 1)

    @classmethod
    def evenly(cls, share: float, kinds: tuple[str, ...] = TRANSPORT, *, seed: int = 0, hang: float = 30.0) -> Faults:
        """Faults in a share of all requests, each kind equally often."""
        return cls(shares=dict.fromkeys(kinds, share / len(kinds)), seed=seed, hang=hang)

    def draw_fault(self, question: str, attempt: int) -> str | None:
        """Draw the fault of a question's attempt (counted from 0); `None` if there is none."""
        if not self.shares:
            return None
        digest = hashlib.blake2b(f"{self.seed} {attempt} {question}".encode(), digest_size=8).digest()
        drawn = int.from_bytes(digest, "big") / 2**64
        for kind, share in self.shares.items():
            if drawn < share:
                return kind
            drawn -= share
        return None
