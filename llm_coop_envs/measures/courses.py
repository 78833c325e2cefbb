"""Courses of play: which episodes of an arm are copies of each other.

Seven seeds of firms that draw nothing are one game, played seven times. A test takes them for seven observations, and
finds whatever it is shown. What counts is therefore the number of distinct courses of play.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

from llm_coop_envs.core.scenario import Event
from llm_coop_envs.statistics.comparison import FEWEST_COURSES


def course_of(events: Sequence[Event]) -> str:
    """A hash of what was chosen and said: equal for episodes in which everybody chose the same in every round.

    Neither the order within a round counts, nor who said what was said in it: which of two equal firms speaks first is
    drawn, and changes nothing. Choices in rounds whose outcome was laid down (`forced`) are left out. Numbers are
    compared to nine digits, as sums in another order differ in the last ones.
    """
    return _digest(_steps(events))


def courses_by_round(events: Sequence[Event]) -> dict[int, str]:
    """The hash of what was chosen and said in each round, as `course_of`, by its number."""
    by_round: dict[int, list[Any]] = {}
    for step in _steps(events):
        by_round.setdefault(step[0], []).append(step)
    return {number: _digest(steps) for number, steps in by_round.items()}


def _steps(events: Sequence[Event]) -> list[Any]:
    laid_down = {event["round"] for event in events if event["type"] == "round" and event.get("forced")}
    steps: list[Any] = []
    for event in events:
        if event["type"] == "choice" and event["round"] not in laid_down:
            steps.append([event["round"], event["agent"], event["phase"], _rounded(event["choice"])])
        elif event["type"] == "message":
            steps.append([event["round"], event["text"]])
    steps.sort(key=json.dumps)
    return steps


def _digest(steps: Sequence[Any]) -> str:
    return hashlib.sha256(json.dumps(steps, ensure_ascii=False).encode()).hexdigest()[:16]


def count_courses(courses: Iterable[str]) -> int:
    """How many distinct courses there are."""
    return len(set(courses))


def too_few_courses(title: str, courses: Sequence[str]) -> str:
    """A sentence on an arm whose episodes are too often copies of each other; empty if they are not, or are few.

    Args:
        title: the arm's.
        courses: the course of each of its episodes.
    """
    distinct = count_courses(courses)
    if distinct >= FEWEST_COURSES or len(courses) == distinct:
        return ""
    return (
        f"'{title}' has {distinct} distinct {'course' if distinct == 1 else 'courses'} of play in {len(courses)} "
        f"episodes; with fewer than {FEWEST_COURSES} in an arm nothing is claimed"
    )


def _rounded(choice: Any) -> Any:
    return f"{choice:.9g}" if isinstance(choice, float) else choice
