"""Messages to somebody: to whom a submitted message is said.

A speaker says it in the message itself, so that a person, a language model and a program can say it in the same words:

    Prices are too low.
    to firm_2: let us both ask 9
    to firm_0, firm_1: I agree with everybody

or as data: `{"message": "let us both ask 9", "to": "firm_2"}`, or a list of `{"text": ..., "to": ...}` as the message.
A text that seems to be meant for somebody who is not there is heard by nobody, rather than by all.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

UNREACHED = "unreached"
TOO_MANY = "too_many_messages"
"""Flags of a turn: somebody who was addressed cannot be reached; there were more messages than count."""

EVERYONE = frozenset(("all", "everyone", "everybody", "alle", "allen"))
_NAME = r"[\w-]+"
_HEAD = re.compile(
    rf"^[ \t*_]*(?:to|an)[ \t]+(?P<to>{_NAME}(?:(?:[ \t]*,[ \t]*|[ \t]+(?:and|und)[ \t]+){_NAME})*)[ \t*_]*:[ \t*_]*",
    re.IGNORECASE | re.MULTILINE,
)
_BETWEEN = re.compile(r"\s*,\s*|\s+(?:and|und)\s+")


@dataclass(frozen=True, slots=True)
class Letter:
    """One message of a turn.

    Attributes:
        text: what is said, as it was submitted.
        to: the names of those it is said to, in small letters; `None` for all who hear the speaker.
    """

    text: object
    to: tuple[str, ...] | None = None


def split_letters(raw: object, players: Sequence[str], groups: Collection[str] = ()) -> list[Letter]:
    """The messages of a turn, in order.

    Args:
        raw: what was submitted: a text, a mapping with `text` (or `message`) and `to`, or a list of these.
        players: the players' names.
        groups: the names of groups.
    """
    if isinstance(raw, list | tuple):
        return [letter for part in raw for letter in split_letters(part, players, groups)]
    if isinstance(raw, Mapping):
        to = _addressees(raw.get("to"), players)
        text = raw.get("text", raw.get("message"))
        return [Letter(text, to)] if to is not None else split_letters(text, players, groups)
    if not isinstance(raw, str):
        return [Letter(raw)] if raw is not None else []
    names = {name.lower() for name in (*players, *groups)} | EVERYONE
    heads = [head for head in _HEAD.finditer(raw) if _is_address(head["to"], names)]
    starts = [0, *(head.end() for head in heads)]
    ends = [*(head.start() for head in heads), len(raw)]
    said = [raw[start:end].strip() for start, end in zip(starts, ends, strict=True)] if heads else [raw]
    addressed = [None, *(_addressees(head["to"], players) for head in heads)]
    return [Letter(text, to) for text, to in zip(said, addressed, strict=True) if text]


def _is_address(text: str, names: Collection[str]) -> bool:
    """Whether what stands behind "to" are names: "to Bob:" is an address, "to summarise:" is none."""
    return any(name.lower() in names or re.search(r"[\d_]|^[A-Z]", name) for name in _BETWEEN.split(text))


def _addressees(to: Any, players: Sequence[str]) -> tuple[str, ...] | None:
    """Names in small letters, of a text, a list, or a point of the space (1 for each player addressed)."""
    if isinstance(to, np.ndarray):
        chosen = np.flatnonzero(to).tolist()
        return tuple(players[int(i)].lower() for i in chosen) if 0 < len(chosen) < len(players) else None
    if to is None:
        return None
    listed = _BETWEEN.split(to.strip()) if isinstance(to, str) else to if isinstance(to, list | tuple | set) else [to]
    names = tuple(dict.fromkeys(str(name).strip().lower() for name in listed))
    return None if not names or set(names) & EVERYONE else names


def reach(
    letter: Letter,
    speaker: int,
    players: Sequence[str],
    groups: Mapping[str, Iterable[int]],
    reachable: Collection[int],
) -> tuple[tuple[int, ...] | None, tuple[str, ...]]:
    """Who hears a message, and which of its addressees cannot be reached.

    Args:
        letter: the message.
        speaker: its speaker.
        players: the players' names.
        groups: the members of groups by name.
        reachable: who is in the game and hears the speaker at all.

    Returns:
        The hearers, ascending, `None` for whoever hears the speaker; and the names.
    """
    if letter.to is None:
        return None, ()
    members = {name.lower(): [i] for i, name in enumerate(players)}
    members |= {name.lower(): list(group) for name, group in groups.items()}
    reached = {name: [i for i in members.get(name, ()) if i in reachable and i != speaker] for name in letter.to}
    hearers = tuple(sorted({i for group in reached.values() for i in group}))
    return hearers, tuple(name for name, group in reached.items() if not group)
