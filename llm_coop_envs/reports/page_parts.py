"""Parts of a report's page: cells, rows, tables, and excerpts of conversations."""

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
        text: its text.
        below: a second, smaller line.
        number: the number of the text, unrounded, with its interval if it has one; `None` where the text says it all.
    """

    text: str
    below: str = ""
    number: Interval | float | None = field(default=None, compare=False)


DASH = "\N{EN DASH}"
NOTHING = Cell(text=DASH)
"""A cell without a number."""


@dataclass(frozen=True, kw_only=True)
class TableRow:
    """A row of a table.

    Attributes:
        name: its name, in the first column.
        below: a second, smaller line below the name.
        cells: its cells.
        published: whether its numbers are published ones, and not computed from the run.
        bad: whether its numbers are those of an invalid condition.
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
        title: its title.
        head: the names of the columns; the first column holds the names of the rows.
        rows: its rows.
        notes: notes below it, with sources.
        lead: a paragraph above it on what was found.
        columns: the condition of each column but the first, where columns are conditions.
        brief: whether definitions of measures are left to another table, and shown here where a pointer rests.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[TableRow]
    notes: Sequence[str] = ()
    lead: str = ""
    columns: Sequence[str] = ()
    brief: bool = False


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """A piece of a conversation.

    Attributes:
        title: its condition and seed.
        messages: rows of the messages table.
        left_out: the number of the episode's other messages.
    """

    title: str
    messages: Sequence[Row]
    left_out: int


def fixed(value: float, decimals: int = 1) -> str:
    """Format a number with a fixed count of decimals; -0.04 gives "0.0", not "-0.0"."""
    return f"{round(value, decimals) + 0.0:.{decimals}f}"


def decimals_for(values: Sequence[float]) -> int:
    """Number of decimals that show two or three digits of the largest of some numbers; 0 if all are integers."""
    largest = max(abs(value) for value in values)
    if largest >= 100 or all(value == int(value) for value in values):
        return 0
    if largest < 0.01:
        return min(6, 2 + math.floor(-math.log10(largest)))
    return 1 if largest >= 10 else 2 if largest >= 1 else 3


def interval_cell(interval: Interval | None, decimals: int | None = None, *, of: int | None = None) -> Cell:
    """A cell with a mean, and its interval below.

    Args:
        interval: the mean with its interval; a dash stands for `None`.
        decimals: the number of decimals; by default it follows from the size of the numbers.
        of: the number of episodes; the cell says 'k of n' if fewer have a value.
    """
    if interval is None:
        return NOTHING
    below = [f"{interval.n} of {of}"] if of is not None and interval.n < of else []
    ends = [end for end in (interval.low, interval.high) if end is not None]
    if decimals is None:
        decimals = decimals_for([interval.mean, *ends])
    if ends and ends[0] == ends[1]:
        below.insert(0, "always")
    elif len(texts := {fixed(value, decimals) for value in (interval.mean, *ends)}) > 1:
        below.insert(0, " to ".join(fixed(end, decimals) for end in ends))
    elif ends:
        below.insert(0, f"{texts.pop()} when rounded")
    return Cell(text=fixed(interval.mean, decimals), below="; ".join(below), number=interval)


def count_text(count: int, noun: str) -> str:
    """A number of things in words, such as `"1 player"` or `"2,000 players"`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def in_words(names: Sequence[str]) -> str:
    """Names as a list in a sentence: "a", "a and b", "a, b and c"."""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def episodes_text(n: int) -> str:
    """A number of episodes in words, such as `"1 episode"`."""
    return "1 episode" if n == 1 else f"{n} episodes"


def excerpt(episode: EpisodeTables) -> Excerpt | None:
    """Quote the beginning and the end of an episode's conversation without repetitions; `None` if nobody spoke."""
    messages = [message for message in episode.messages if message["text"]]
    if not messages:
        return None
    first = {m["text"]: m for m in reversed(messages)}
    distinct = [m for m in messages if first[m["text"]] is m]
    half = EXCERPT_MESSAGES // 2
    quoted = distinct if len(distinct) <= EXCERPT_MESSAGES else [*distinct[:half], *distinct[-half:]]
    return Excerpt(
        title=f"{episode.condition.title}, seed {episode.seed}",
        messages=quoted,
        left_out=len(messages) - len(quoted),
    )
