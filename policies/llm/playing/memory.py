"""What a model player remembers by itself: plans, feelings, reasons, notes of a conversation. Never seen by others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import Self


@dataclass(frozen=True, slots=True)
class Note:
    """Something the player wrote for itself.

    Attributes:
        round: when, as the environment counts.
        text: what.
    """

    round: int
    text: str


@dataclass(slots=True)
class Memory:
    """One player's private memory in one episode.

    The windows of what happened come with the environment's slots; here is only what a model wrote.

    Attributes:
        notes: what it wrote, oldest first, by the call that asked for it.
        last_asked: the last round in which a call was made that is made once a round.
        summary: its notes of the conversation's beginning, or `None`.
        summarised: how many messages they stand for.
    """

    notes: dict[str, list[Note]] = field(default_factory=dict)
    last_asked: dict[str, int] = field(default_factory=dict)
    summary: Note | None = None
    summarised: int = 0

    @property
    def empty(self) -> bool:
        """Whether nothing is remembered."""
        return not (self.notes or self.last_asked or self.summary or self.summarised)

    def write(self, call: str, note: Note, most: int | None = None) -> None:
        """Keep a note; with `most` only so many of its kind, at least one."""
        notes = self.notes.setdefault(call, [])
        notes.append(note)
        if most is not None:
            del notes[: -max(1, most)]

    def forget(self, before: int) -> None:
        """Drop what was noted before a round, and the summary, as the messages that it stands for may be gone."""
        notes = {call: [note for note in kept if note.round >= before] for call, kept in self.notes.items()}
        self.notes = {call: kept for call, kept in notes.items() if kept}
        self.summary, self.summarised = None, 0

    def latest(self, call: str, count: int) -> tuple[Note, ...]:
        """The latest notes of a kind, oldest first, at most so many."""
        return tuple(self.notes.get(call, ())[-count:]) if count else ()

    def last(self, call: str, round_: int | None = None) -> Note | None:
        """The latest note of a kind; with a round only if it is of that round."""
        notes = self.notes.get(call)
        return notes[-1] if notes and round_ in (None, notes[-1].round) else None

    def to_json(self) -> dict[str, Any]:
        """The memory as plain data."""
        return {
            "notes": {call: [[note.round, note.text] for note in notes] for call, notes in self.notes.items()},
            "last_asked": dict(self.last_asked),
            "summary": None if self.summary is None else [self.summary.round, self.summary.text],
            "summarised": self.summarised,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """The memory that `to_json` described."""
        return cls(
            notes={call: [Note(*note) for note in notes] for call, notes in data["notes"].items()},
            last_asked=dict(data["last_asked"]),
            summary=None if data["summary"] is None else Note(*data["summary"]),
            summarised=data["summarised"],
        )
