"""What a model player remembers by itself: plans, feelings, reasons, notes of a conversation. Never seen by others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


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
        plans: its plans for setting prices, oldest first.
        planned: the last round in which it was asked for one; 0 before.
        feeling: the latest feeling (evacuation), or `None`.
        evaluation: the latest judgement of the exits, or `None`.
        reasons: its reasons for numbers, oldest first.
        summary: its notes of the conversation's beginning, or `None`.
        summarised: how many messages they stand for.
    """

    plans: list[Note] = field(default_factory=list)
    planned: int = 0
    feeling: Note | None = None
    evaluation: Note | None = None
    reasons: list[Note] = field(default_factory=list)
    summary: Note | None = None
    summarised: int = 0

    def to_json(self) -> dict[str, Any]:
        """The memory as plain data."""
        return {
            "plans": [[note.round, note.text] for note in self.plans],
            "planned": self.planned,
            "feeling": _plain(self.feeling),
            "evaluation": _plain(self.evaluation),
            "reasons": [[note.round, note.text] for note in self.reasons],
            "summary": _plain(self.summary),
            "summarised": self.summarised,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Memory:
        """The memory that `to_json` described."""
        return cls(
            plans=[Note(*note) for note in data["plans"]],
            planned=data["planned"],
            feeling=_note(data["feeling"]),
            evaluation=_note(data["evaluation"]),
            reasons=[Note(*note) for note in data["reasons"]],
            summary=_note(data["summary"]),
            summarised=data["summarised"],
        )


def _plain(note: Note | None) -> list[Any] | None:
    return None if note is None else [note.round, note.text]


def _note(data: Any) -> Note | None:
    return None if data is None else Note(*data)
