"""The result of reading an answer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

#: The answer was read.
OK = "ok"
#: The answer is empty.
EMPTY = "empty"
#: The model refused to answer.
REFUSED = "refused"
#: The answer was cut before its number, option or message.
TRUNCATED = "truncated"
#: The answer does not answer the question.
UNREADABLE = "unreadable"
#: Several numbers or options in it could be the answer.
AMBIGUOUS = "ambiguous"
#: The answer is clear, but not legal.
ILLEGAL = "illegal"

STATUSES = (OK, EMPTY, REFUSED, TRUNCATED, UNREADABLE, AMBIGUOUS, ILLEGAL)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """A value that was read from an answer, or why none could be.

    Attributes:
        status: one of `STATUSES`.
        value: the number, option or message; also of an `"illegal"` answer, where it is known; else `None`.
        rule: the rule that read it, such as `"label"`; empty if none did.
        flags: what was removed before; see `tokens`.
        named: all legal values that the answer mentions, where it is not clear which of them is the answer.
    """

    status: str
    value: T | None = None
    rule: str = ""
    flags: tuple[str, ...] = ()
    named: frozenset[Any] = field(default=frozenset(), compare=False)

    @property
    def ok(self) -> bool:
        """Whether there is a legal value."""
        return self.status == OK
