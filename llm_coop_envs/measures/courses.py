"""Courses of play: which episodes of an arm are copies of each other.

Seven seeds of firms that draw nothing are one game, played seven times. A test takes them for seven observations, and
finds whatever it is shown. What counts is therefore the number of distinct courses of play.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llm_coop_envs.core.scenario import Event
from llm_coop_envs.statistics.comparison import FEWEST_COURSES


def course_of(events: Sequence[Event]) -> str:
    """A hash of what was chosen and said: equal for episodes in which everybody chose the same in every round.

    Neither the order within a round counts, nor who said what was said in it: which of two equal firms speaks first is
    drawn, and changes nothing. Choices in rounds whose outcome was laid down (`forced`) are left out. Numbers are
    compared to nine digits, as sums in another order differ in the last ones.
    """
    return course_of_rounds(courses_by_round(events))


def course_of_rounds(by_round: Mapping[int, str]) -> str:
    """The hash of an episode of the hashes of its rounds, from `courses_by_round`."""
    return _digest(sorted(by_round.items()))


def courses_by_round(events: Sequence[Event]) -> dict[int, str]:
    """The hash of what was chosen and said in each round, as `course_of`, by its number."""
    laid_down = {event["round"] for event in events if event["type"] == "round" and event.get("forced")}
    by_round: dict[int, list[Any]] = {}
    for event in events:
        if event["type"] == "choice" and event["round"] not in laid_down:
            step = event["agent"], event["phase"], _rounded(event["choice"])
        elif event["type"] == "message":
            step = event["text"]
        else:
            continue
        by_round.setdefault(event["round"], []).append(step)
    # Sorted by `repr`: choices may be numbers, texts, lists or nothing.
    return {number: _digest(sorted(map(repr, steps))) for number, steps in by_round.items()}


def _digest(data: Sequence[Any]) -> str:
    return hashlib.sha256(repr(data).encode()).hexdigest()[:16]


def count_courses(courses: Iterable[str]) -> int:
    """How many distinct courses there are."""
    return len(set(courses))


def too_few_courses(*arms: tuple[str, Sequence[str]]) -> str:
    """A sentence on arms whose episodes are too often copies of each other; empty if they are not, or are few.

    Args:
        *arms: each arm's title, and the course of each of its episodes.
    """
    titles: dict[tuple[int, int], list[str]] = {}
    for title, courses in arms:
        distinct = count_courses(courses)
        if distinct < FEWEST_COURSES and distinct < len(courses):
            titles.setdefault((distinct, len(courses)), []).append(f"'{title}'")
    sentences = [
        f"{' and '.join(dict.fromkeys(alike))} {'has' if len(set(alike)) == 1 else 'each have'} {distinct} distinct "
        f"{'course' if distinct == 1 else 'courses'} of play in {episodes} episodes"
        for (distinct, episodes), alike in titles.items()
    ]
    if not sentences:
        return ""
    return f"{', '.join(sentences)}; with fewer than {FEWEST_COURSES} in an arm nothing is claimed"


def _rounded(choice: Any) -> Any:
    return f"{choice:.9g}" if isinstance(choice, float) else choice
