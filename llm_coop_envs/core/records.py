"""Reading recorded events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def start_of(events: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The `start` event of an episode.

    Raises:
        ValueError: there is none.
    """
    start = next((event for event in events if event["type"] == "start"), None)
    if start is None:
        raise ValueError("the events hold no 'start'; record the episode from its reset with record=True")
    return start


def of_type(events: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    """The events of one type, in order."""
    return [event for event in events if event["type"] == kind]


def flagged_choices(events: Sequence[Mapping[str, Any]]) -> dict[int, set[str]]:
    """Whose choices were flagged in each round that has such: illegal or missing, and replaced by the environment's."""
    flagged: dict[int, set[str]] = {}
    for event in of_type(events, "choice"):
        if event["flags"]:
            flagged.setdefault(event["round"], set()).add(event["agent"])
    return flagged
