"""What nature drew in an episode, from its events, and where the episodes of a pair part.

Arms of a comparison are said to differ in nothing but a treatment. That holds only if nature drew the same in both. A
game that draws the weather after a round of talk from the generator that also deals the order of talk has another
weather without talk.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from llm_coop_envs.core.scenario import Event

Drawn = dict[tuple[int, str], str]
"""A hash of each draw, by its round and its purpose."""


def nature_of(events: Sequence[Event], recorded: Mapping[str, Sequence[str]] | None) -> Drawn | None:
    """What nature drew: the `nature` events of an episode, and what its scenario records elsewhere.

    Args:
        events: the episode's events.
        recorded: the fields that nature drew, by type of event; `None` if the scenario does not say.

    Returns:
        The draws; `None` if the scenario neither records nature's draws nor says that there are none.
    """
    drawn: Drawn = {}
    for event in events:
        if event["type"] == "nature":
            drawn[event["round"], event["purpose"]] = _hash(event["drawn"])
        for name in (recorded or {}).get(event["type"], ()):
            if name in event:
                drawn[event["round"], name] = _hash(event[name])
    return drawn if drawn or recorded is not None else None


def first_parting(first: Drawn, second: Drawn) -> tuple[int, str] | None:
    """The round and the purpose of the first draw in which two episodes differ; `None` if all that both have agree."""
    return min((place for place in first.keys() & second.keys() if first[place] != second[place]), default=None)


def _hash(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()[:16]
