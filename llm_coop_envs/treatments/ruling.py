"""What a regulator's seat decides, for the environment to apply."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from llm_coop_envs.interface.hooks import Event

Flags = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """Submissions that are no longer held back.

    Attributes:
        phase: the phase in which they were submitted.
        players: the players who were on turn, in order.
        submitted: the message as submitted, or the usable choice, by player.
        vetoed: the players whose submission was stopped.
        flags: the flags of the choices.
        fines: the fine of each player who was ruled to pay one; 0 if it was not detected.
    """

    phase: str
    players: list[int]
    submitted: dict[int, Any]
    vetoed: Collection[int]
    flags: dict[int, Flags]
    fines: dict[int, float]


@dataclass(slots=True)
class Ruling:
    """What follows from one step: the environment applies it in the order of the attributes.

    Attributes:
        flags: flags of this step's submissions, by seat.
        events: the fields of `regulation` events, in order.
        turn: the phase and the seats that are on turn next; `None` if the level that began the step is over.
        release: what was held back and counts now.
    """

    flags: dict[int, Flags] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    turn: tuple[str, list[int]] | None = None
    release: Release | None = None
