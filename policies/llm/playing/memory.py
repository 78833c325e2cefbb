"""A model player's private memory: plans, feelings, reasons and summaries. Other players never see it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import Self


@dataclass(frozen=True, slots=True)
class Note:
    """A text that the player wrote for itself.

    Attributes:
        round: the round in which it was written, as the environment counts.
        text: the text.
    """

    round: int
    text: str


@dataclass(slots=True)
class Memory:
    """One player's private memory in one episode.

    It holds only what the model wrote; the history of the game comes with the environment's slots.

    Attributes:
        notes: the notes, oldest first, by the call that asked for them.
        last_asked: of calls that are made once a round, the last round in which they were made.
        summary: the model's summary of the conversation's beginning, or `None`.
        summarised: how many messages the summary stands for.
    """

    notes: dict[str, list[Note]] = field(default_factory=dict)
    last_asked: dict[str, int] = field(default_factory=dict)
    summary: Note | None = None
    summarised: int = 0

    @property
    def empty(self) -> bool:
        """Whether nothing is remembered."""
        return not (self.notes or self.last_asked or self.summary or self.summarised)

    def write(self, call: str, note: Note, max_notes: int | None = None) -> None:
        """Add a note; with `max_notes` keep only so many of its call, at least one."""
        notes = self.notes.setdefault(call, [])
        notes.append(note)
        if max_notes is not None:
            del notes[: -max(1, max_notes)]

    def forget(self, first_round: int) -> None:
        """Drop notes from before `first_round`, and the summary, as the messages that it stands for may be gone."""
        recent = {call: [note for note in notes if note.round >= first_round] for call, notes in self.notes.items()}
        self.notes = {call: notes for call, notes in recent.items() if notes}
        self.summary, self.summarised = None, 0

    def latest(self, call: str, count: int) -> tuple[Note, ...]:
        """The latest notes of a call, oldest first, at most `count`."""
        return tuple(self.notes.get(call, ())[-count:]) if count else ()

    def last(self, call: str, round_: int | None = None) -> Note | None:
        """The latest note of a call; with `round_` only if it was written in that round."""
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
        """Rebuild the memory from what `to_json` gave."""
        return cls(
            notes={call: [Note(*note) for note in notes] for call, notes in data["notes"].items()},
            last_asked=dict(data["last_asked"]),
            summary=None if data["summary"] is None else Note(*data["summary"]),
            summarised=data["summarised"],
        )
