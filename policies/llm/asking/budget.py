"""The budget: the highest cost of every attempt is reserved before it is sent, and settled when it is over.

An attempt that does not fit waits until others have been settled; if none is in flight, the run stops. So the budget
is never exceeded, however many attempts are in flight.
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
    """Limits on what a run may use, over all its sessions and parts; `None` for no limit.

    Attributes:
        usd: US dollars.
        calls: attempts sent to a provider, including repeated ones.
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
    """Amounts used or reserved."""

    calls: int = 0
    tokens: int = 0
    usd: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Reserved:
    """The reservation of one attempt: the most it may use. Dollars are 0 if no money is counted."""

    tokens: int
    usd: float


class Ledger:
    """Keeps account of a budget.

    Attributes:
        budget: the limits.
        calls: attempts sent, earlier sessions included.
        tokens: tokens used, likewise.
        usd: US dollars used, likewise.
        others: what other parts of the run have used and reserved.
    """

    def __init__(self, budget: Budget, *, calls: int = 0, tokens: int = 0, usd: float = 0.0) -> None:
        self.budget = budget
        self.calls = calls
        self.tokens = tokens
        self.usd = usd
        self.others = Used()
        self._open: set[Reserved] = set()
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._open_tokens = 0
        self._open_usd = 0.0

    async def reserve(self, tokens: int, usd: float) -> Reserved:
        """Reserve the most that an attempt may use; wait while other attempts may still give something back.

        Raises:
            BudgetReached: it does not fit, and nothing is in flight.
        """
        while (obstacle := self._obstacle(tokens, usd)) is not None:
            if not self._open:
                raise budget_reached(obstacle)
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

    def _take_back(self, reserved: Reserved) -> None:
        """Undo `_set_aside`, as if nothing had been reserved."""
        self.calls -= 1
        self._open.remove(reserved)
        self._open_tokens -= reserved.tokens
        self._open_usd = self._open_usd - reserved.usd if self._open else 0.0

    def settle(self, reserved: Reserved, *, tokens: int, usd: float) -> None:
        """Replace a reservation by what was used."""
        self._open.remove(reserved)
        self._open_tokens -= reserved.tokens
        self._open_usd = self._open_usd - reserved.usd if self._open else 0.0  # rounding errors must not add up
        self.tokens += tokens
        self.usd += usd
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)

    def cancel(self, reserved: Reserved, *, sent: bool) -> None:
        """Drop the reservation of an attempt that is not billed; if it was sent, it still counts as a call."""
        if not sent:
            self.calls -= 1
        self.settle(reserved, tokens=0, usd=0.0)

    def forfeit(self, reserved: Reserved) -> None:
        """Count a reservation in full, for an attempt that got no answer and may be billed."""
        self.settle(reserved, tokens=reserved.tokens, usd=reserved.usd)

    def _obstacle(self, tokens: int, usd: float) -> str | None:
        """Why an attempt does not fit into the budget now; `None` if it does."""
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
        """US dollars used by all parts, as far as known to this process."""
        return self.usd + self.others.usd

    # The following methods do more in a ledger that several processes share.

    @property
    def position(self) -> tuple[int | None, int]:
        """This process's number among those that play the run, from 0, and their count.

        The number is `None` while the process waits for its share of the limits.
        """
        return 0, 1

    async def look(self) -> bool:
        """Wait until `position` has changed.

        Returns:
            Whether it may change again.
        """
        return False

    def close(self) -> None:
        """Give back what is not used; nothing is reserved any more."""


def budget_reached(obstacle: str) -> BudgetReached:
    """The error that stops a run at its budget."""
    return BudgetReached(
        f"stopped at the budget: {obstacle}; every answer so far is kept, run again with a larger budget to continue"
    )
