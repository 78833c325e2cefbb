"""What a reading of an answer gives."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

#: The answer was read.
OK = "ok"
#: Nothing was answered.
EMPTY = "empty"
#: The model would not answer.
REFUSED = "refused"
#: The answer was cut before what counts in it.
TRUNCATED = "truncated"
#: There is something, but nothing that answers the question.
UNREADABLE = "unreadable"
#: Several things in it could be the answer.
AMBIGUOUS = "ambiguous"
#: The answer is clear and not legal.
ILLEGAL = "illegal"

STATUSES = (OK, EMPTY, REFUSED, TRUNCATED, UNREADABLE, AMBIGUOUS, ILLEGAL)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Reading(Generic[T]):
    """How an answer was understood.

    Attributes:
        status: one of `STATUSES`.
        value: what was answered; also given with `"illegal"`, where it can be said; else `None`.
        rule: which rule read it, such as `"label"`; empty if none did.
        flags: what was taken away before: see `tokens`.
        named: all legal values that the answer names, meant or not, where it was not clear which is.
    """

    status: str
    value: T | None = None
    rule: str = ""
    flags: tuple[str, ...] = ()
    named: frozenset[Any] = field(default=frozenset(), compare=False)

    @property
    def ok(self) -> bool:
        """Whether the value can be used."""
        return self.status == OK
