"""What one player may know, as plain values: the part that all scenarios share."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from llm_coop_envs.interface.question import Question
from llm_coop_envs.util.quoting import quoted


@dataclass(frozen=True, kw_only=True)
class Heard:
    """One message as its listener knows it.

    Attributes:
        speaker: the speaker's agent name.
        text: what was said.
        own: whether the listener said it itself.
        to: to whom alone it was said, by name; empty if all who hear the speaker heard it.
    """

    speaker: str
    text: str
    own: bool
    to: tuple[str, ...] = ()

    @functools.cached_property
    def quotation(self) -> str:
        """What was said, between quotation marks on one line; see `quoted`."""
        return quoted(self.text)

    @functools.cached_property
    def line(self) -> str:
        """The speaker's name and what was said, as one line of a conversation."""
        return f"{self.speaker}{self.address}: {self.quotation}"

    @property
    def address(self) -> str:
        """To whom alone it was said, such as `" -> firm_2"`; empty if to all who hear the speaker."""
        return f" -> {', '.join(self.to)}" if self.to else ""


@dataclass(frozen=True, kw_only=True)
class Slots:
    """What every player may know in every scenario; scenarios add their own fields.

    Values are plain (numbers, strings, tuples, other slots), so that slots compare with `==`.

    Class attributes:
        CONSTANT: the names of slots that hold the same immutable objects in round after round. Whatever a text says of
            these alone is kept, and not put into words anew. A value that does change costs time, nothing else.

    Attributes:
        me: this player's agent name.
        phase: the phase of this step.
        on_turn: whether this player's submission counts in this step.
        may_talk: whether players can send messages in this round.
        message_length: the longest message in characters.
        question: what is asked of this player now; `None` off turn.
        notice: what a regulator's notice says to this player, in words; empty without one.
        informed: whether this player learns what others do, as the scenario shows it; else only its own part.
        memory: of how many of its latest rounds this player still knows something; `None` for all that are shown.
        mechanism: what this player knows of the game's mechanism, a `mechanisms.slots.MechanismSlots`; `None` without
            one, or where the scenario's own slots say it all.
        role: what kind of player this is, such as `"seller"`.
    """

    CONSTANT: ClassVar[frozenset[str]] = frozenset({"me", "may_talk", "message_length", "informed", "memory", "role"})

    me: str
    phase: str
    on_turn: bool
    may_talk: bool
    message_length: int
    question: Question | None
    notice: str = ""
    informed: bool = True
    memory: int | None = None
    mechanism: Any = None
    role: str = ""

    def series(self) -> dict[str, list[tuple[float, float]]]:
        """Numbers of the past that this player knows, by name, as (round, number) points; for a chart."""
        return {}


S = TypeVar("S", bound=Slots)


def blank_slots(kind: type[S]) -> S:
    """Make slots that hold nothing but their defaults; whoever asked fills in all others by `vars(slots).update(...)`.

    A frozen dataclass's constructor sets its fields one by one, which was most of the time to gather what a player may
    know.
    """
    slots = object.__new__(kind)
    vars(slots).update(_defaults(kind))  # type: ignore[arg-type]  # a class can be hashed
    return slots


@functools.cache
def _defaults(kind: type[Slots]) -> dict[str, Any]:
    fields = dataclasses.fields(kind)
    return {field.name: field.default for field in fields if field.default is not dataclasses.MISSING}


def constant_names(kinds: type[Slots] | Mapping[str, type[Slots]]) -> frozenset[str]:
    """The names of a scenario's slots that seldom change, for all its roles; see `Slots.CONSTANT`."""
    by_role = kinds.values() if isinstance(kinds, Mapping) else (kinds,)
    return frozenset[str].intersection(*(kind.CONSTANT for kind in by_role))
