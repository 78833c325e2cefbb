"""What one player may know, as plain values: the part that all scenarios share."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

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
