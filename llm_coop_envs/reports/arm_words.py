"""Arms of a comparison in words: how a sentence says what was done in each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from llm_coop_envs.core.settings import plain
from llm_coop_envs.studies.conditions import Condition

_TALK = {True: "with talk", False: "without talk"}
#: Where a title may be parted.
_SEAM = re.compile("[,:] ")


def part_titles(titles: Sequence[str]) -> tuple[str, list[str]]:
    """Part titles into what all of them begin with and what tells them apart.

    "trust, contracting" and "trust, mediation" give "trust", and "contracting" and "mediation".
    """
    if len(titles) < 2:
        return "", list(titles)
    first = titles[0]
    seams = (seam.end() for seam in _SEAM.finditer(first))
    end = max((end for end in seams if all(title.startswith(first[:end]) for title in titles)), default=0)
    return first[: max(0, end - 2)], [title[end:] for title in titles]


def title_of_both(title: str, word: str, other: str) -> str:
    """Two arms in a title: "talk against no talk", or "trust, contracting against mediation"."""
    shared, (own, against) = part_titles([title, other])
    return ", ".join(filter(None, (shared, f"{own} {word} {against}")))


def arms_in_words(arm: Condition, other: Condition) -> tuple[str, str]:
    """Say what was done in two arms: "when firms can talk" and "when they cannot", or "in 'talk'" and "in 'no talk'".

    The study's own words go first. Without them, arms that differ in nothing but talk are told by that.
    """
    if arm.when and other.when:
        return arm.when, other.when
    if _but_talk(arm) == _but_talk(other) and arm.settings["talk"] != other.settings["talk"]:
        return _TALK[bool(arm.settings["talk"])], _TALK[bool(other.settings["talk"])]
    return f"in '{arm.title}'", f"in '{other.title}'"


def are_played_alike(arm: Condition, other: Condition) -> bool:
    """Whether two arms differ in nothing but what language models would be asked, of which none plays."""
    if arm.asks_a_model or arm.is_recorded or arm.settings["talk"] != other.settings["talk"]:
        return False
    return bool(_but_talk(arm) == _but_talk(other))


def _but_talk(condition: Condition) -> Any:
    """What is played in a condition, but for talk."""
    settings = {name: value for name, value in plain(condition.settings).items() if name != "talk"}
    players = [(pattern, [player.to_json() for player in own]) for pattern, own in condition.seats]
    return settings, players, [change.to_json() for change in condition.changes], condition.population
