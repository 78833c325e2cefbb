"""The budget: every attempt is paid for in advance, at its most, and settled when it is over.

What an attempt may cost at most is set aside before it is sent; if that does not fit, it waits until others have
been settled, and if none is left to wait for, the run stops. So the budget is never passed, however many are in flight.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from llm_coop_envs.core.settings import Settings
from llm_coop_envs.policies.llm.chat import BudgetReached
from llm_coop_envs.util.checks import check_int, check_number


@dataclass(frozen=True, kw_only=True)
class Budget(Settings):
    """What a run may use; earlier sessions count, and all its parts.

    Attributes:
        usd: US dollars.
        calls: attempts sent to a provider, repeated ones included.
        tokens: tokens of questions and answers.
    """

    usd: float | None = None
    calls: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        check_number(self, "usd", 0, optional=True)
        check_int(self, "calls", 0, optional=True)
        check_int(self, "tokens", 0, optional=True)


class Used(NamedTuple):
    """What was used, or is set aside."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Reserved:
    """What was set aside for one attempt: the most it may use; 0 dollars where no money is counted."""

    tokens: int
    usd: float


class Ledger:
    """Keeps account of a budget.

    Attributes:
        others: calls, tokens and dollars of other parts of the run, with what they have set aside.
    """

    def __init__(self, budget: Budget, *, calls: int = 0, tokens: int = 0, usd: float = 0.0) -> None:
        self.budget = budget
        self.calls = calls  # with those of earlier sessions, and so on
        self.tokens = tokens
        self.usd = usd
        self.others = Used()
        self._open: set[Reserved] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._open_tokens = 0
        self._open_usd = 0.0

    async def reserve(self, tokens: int, usd: float) -> Reserved:
        """Set aside what an attempt may use at most.

        Raises:
            BudgetReached: it does not fit, and nothing is in flight that could leave something over.
        """
        while (why := self._obstacle(tokens, usd)) is not None:
            if not self._open:
                raise reached(why)
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        return self._set_aside(tokens, usd)

    def _set_aside(self, tokens: int, usd: float) -> Reserved:
        reserved = Reserved(tokens, usd)
        self.calls += 1
        self._open.add(reserved)
        self._open_tokens += tokens
        self._open_usd += usd
        return reserved

    def settle(self, reserved: Reserved, *, tokens: int, usd: float) -> None:
        """Close a reservation with what was used."""
        self._open.remove(reserved)
        self._open_tokens -= reserved.tokens
        self._open_usd = self._open_usd - reserved.usd if self._open else 0.0  # no rounding errors are carried on
        self.tokens += tokens
        self.usd += usd
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)

    def cancel(self, reserved: Reserved, *, sent: bool) -> None:
        """Close a reservation whose attempt was not worked on; if it was sent, it stays counted as a call."""
        if not sent:
            self.calls -= 1
        self.settle(reserved, tokens=0, usd=0.0)

    def forfeit(self, reserved: Reserved) -> None:
        """Close a reservation whose attempt brought nothing and may be on the bill: it counts in full."""
        self.settle(reserved, tokens=reserved.tokens, usd=reserved.usd)

    def _obstacle(self, tokens: int, usd: float) -> str | None:
        """Why an attempt does not fit now, or `None`."""
        budget, others = self.budget, self.others
        calls, used, spent = self.calls + others.calls, self.tokens + others.tokens, self.spent
        if budget.calls is not None and calls + 1 > budget.calls:
            return f"{calls} of {budget.calls} calls are used"
        if budget.tokens is not None and used + self._open_tokens + tokens > budget.tokens:
            return f"{used} of {budget.tokens} tokens are used, and the next question may take up to {tokens}"
        if budget.usd is not None and spent + self._open_usd + usd > budget.usd:
            return f"${spent:.4f} of ${budget.usd:.4f} are used, and the next question may cost up to ${usd:.4f}"
        return None

    @property
    def spent(self) -> float:
        """Dollars used, as far as is known here."""
        return self.usd + self.others.usd

    # What a ledger that several processes share does besides.

    @property
    def place(self) -> tuple[int | None, int]:
        """Which of the processes that play the run this is, from 0 (`None`: it waits for a share); and their number."""
        return 0, 1

    async def look(self) -> bool:
        """Wait until `place` has changed; whether it ever may again."""
        return False

    def close(self) -> None:
        """Nothing will be set aside any more."""


def reached(why: str) -> BudgetReached:
    """The budget is used up."""
    return BudgetReached(
        f"stopped at the budget: {why}; every answer so far is kept, run again with a larger budget to continue"
    )
