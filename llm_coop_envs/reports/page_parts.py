"""What a report's page is made of: numbers in cells, tables, and quoted talk."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from llm_coop_envs.core.scenario import Row
from llm_coop_envs.runs.tables import EpisodeTables
from llm_coop_envs.statistics.intervals import Interval

EXCERPT_MESSAGES = 8


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: what it says.
        below: what stands below it, smaller.
        number: what the text shows, unrounded, with its interval; `None` where the text says it all.
    """

    text: str
    below: str = ""
    number: Interval | float | None = field(default=None, compare=False)


DASH = "\N{EN DASH}"
NOTHING = Cell(text=DASH)
"""Where there is no number."""


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """A row of a table.

    Attributes:
        name: what it is about.
        below: more about it, smaller.
        cells: its cells.
        published: whether its numbers are somebody else's.
        bad: whether its numbers do not count.
        conditions: the names of the conditions whose episodes its numbers are computed from.
    """

    name: str
    cells: Sequence[Cell]
    below: str = ""
    published: bool = False
    bad: bool = False
    conditions: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class ReportTable:
    """A table.

    Attributes:
        title: what it shows.
        head: the columns' names; the first is that of the rows.
        rows: the rows.
        notes: what one should know, with sources.
        lead: what was found, in words.
        columns: for each column but the first the name of its condition, where columns are conditions.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[TableRow]
    notes: Sequence[str] = ()
    lead: str = ""
    columns: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """A piece of a conversation.

    Attributes:
        title: from where.
        messages: rows of the messages table.
        left_out: how many messages the episode has besides.
    """

    title: str
    messages: Sequence[Row]
    left_out: int


def fixed(value: float, decimals: int = 1) -> str:
    """A number with a fixed count of decimals; what rounds to nothing has no sign."""
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


def decimals_for(values: Sequence[float]) -> int:
    """How many decimals show two or three digits of the largest of some numbers; none if all are integers."""
    largest = max(abs(value) for value in values)
    if largest >= 100 or all(value == int(value) for value in values):
        return 0
    if largest < 0.01:
        return min(6, 2 + math.floor(-math.log10(largest)))
    return 1 if largest >= 10 else 2 if largest >= 1 else 3


def interval_cell(
    found: Interval | None,
    decimals: int | None = None,
    *,
    of: int | None = None,
    within: tuple[float | None, float | None] = (None, None),
) -> Cell:
    """A mean with its interval below.

    Args:
        found: the mean; a dash stands for none.
        decimals: how many, else they follow from the numbers' size.
        of: how many episodes there are; 'k of n' is said if fewer have a value.
        within: the least and most that a value can be; the interval ends there.
    """
    if found is None:
        return NOTHING
    found = found.within(*within)
    below = [f"{found.n} of {of}"] if of is not None and found.n < of else []
    ends = [end for end in (found.low, found.high) if end is not None]
    if decimals is None:
        decimals = decimals_for([found.mean, *ends])
    if ends and ends[0] == ends[1]:
        below.insert(0, "always")
    elif len(shown := {fixed(value, decimals) for value in (found.mean, *ends)}) > 1:
        below.insert(0, " to ".join(fixed(end, decimals) for end in ends))
    elif ends:
        below.insert(0, f"{shown.pop()} when rounded")
    return Cell(text=fixed(found.mean, decimals), below="; ".join(below), number=found)


def episodes_text(n: int) -> str:
    """How many episodes, in words."""
    return "1 episode" if n == 1 else f"{n} episodes"


def excerpt(episode: EpisodeTables) -> Excerpt | None:
    """The beginning of an episode's conversation and its end, without repetitions; `None` if nobody said anything."""
    said = [message for message in episode.messages if message["text"]]
    if not said:
        return None
    first = {m["text"]: m for m in reversed(said)}
    told = [m for m in said if first[m["text"]] is m]
    half = EXCERPT_MESSAGES // 2
    shown = told if len(told) <= EXCERPT_MESSAGES else [*told[:half], *told[-half:]]
    return Excerpt(
        title=f"{episode.condition.title}, seed {episode.seed}",
        messages=shown,
        left_out=len(said) - len(shown),
    )
