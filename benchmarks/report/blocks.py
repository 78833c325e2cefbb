"""What a report is made of, before it is a page: plain text, numbers in cells, and pictures."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle

from llm_coop_envs.benchmarks.run.tables import EpisodeTables
from llm_coop_envs.benchmarks.study.study import Condition
from llm_coop_envs.core.scenario import Row
from llm_coop_envs.core.statistics import Interval, bootstrap_mean
from llm_coop_envs.render.charts.style import BLUE, PALETTE, VERMILION

EXCERPT_MESSAGES = 8


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A cell of a table.

    Attributes:
        text: what stands in it.
        below: what stands below, smaller.
    """

    text: str
    below: str = ""


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
    """

    name: str
    cells: Sequence[Cell]
    below: str = ""
    published: bool = False
    bad: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table.

    Attributes:
        title: what it shows.
        head: the columns' names; the first is that of the rows.
        rows: the rows.
        notes: what one should know, with sources.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[TableRow]
    notes: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure.

    Attributes:
        name: its file's name without ending.
        alt: what can be seen, for those who cannot.
        png: the image.
    """

    name: str
    alt: str
    png: bytes

    @property
    def uri(self) -> str:
        """The image as a data URI."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode()


@dataclass(frozen=True, kw_only=True)
class Said:
    """One message of an excerpt.

    Attributes:
        when: the round, in words.
        speaker: who spoke.
        text: what was said, exactly.
    """

    when: str
    speaker: str
    text: str


@dataclass(frozen=True, kw_only=True)
class Excerpt:
    """A piece of a conversation.

    Attributes:
        title: from where.
        lines: the messages.
        left_out: how many messages the episode has besides.
    """

    title: str
    lines: Sequence[Said]
    left_out: int


@dataclass(kw_only=True)
class Section:
    """What the report says about one scenario.

    Attributes:
        name: the scenario.
        title: its heading.
        intro: paragraphs before the figures.
        pictures: the figures.
        picture_notes: what one should know about them.
        tables: the tables.
        excerpts: pieces of conversations.
        metrics: all other measures, or `None`.
        invalid: the titles of conditions whose numbers do not count, each with the reason.
    """

    name: str
    title: str
    intro: list[str] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    picture_notes: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    excerpts: list[Excerpt] = field(default_factory=list)
    metrics: Table | None = None
    invalid: list[tuple[str, str]] = field(default_factory=list)


def fixed(value: float, decimals: int = 1) -> str:
    """A number with a fixed count of decimals."""
    return f"{value:.{decimals}f}"


def decimals_for(values: Sequence[float]) -> int:
    """How many decimals show three digits of the largest of some numbers; none if all are whole."""
    largest = max(abs(value) for value in values)
    if largest >= 100 or all(value == int(value) for value in values):
        return 0
    return 1 if largest >= 10 else 2 if largest >= 1 else 3


def interval_cell(found: Interval | None, decimals: int | None = None) -> Cell:
    """A mean with its interval below; `decimals` fixes the decimals, else they follow from the numbers' size."""
    if found is None:
        return NOTHING
    if found.low is None or found.high is None:
        return Cell(text=fixed(found.mean, decimals_for([found.mean]) if decimals is None else decimals))
    if decimals is None:
        decimals = decimals_for([found.mean, found.low, found.high])
        if found.low == found.high:
            return Cell(text=fixed(found.mean, decimals), below="always")
    return Cell(
        text=fixed(found.mean, decimals), below=f"{fixed(found.low, decimals)}{DASH}{fixed(found.high, decimals)}"
    )


def colours(conditions: Sequence[Condition]) -> dict[str, str]:
    """A colour for each condition: blue for the first without talk, vermilion for the first with, others in turn."""
    rest = cycle(color for color in PALETTE if color not in (BLUE, VERMILION))
    first = {False: BLUE, True: VERMILION}
    chosen: dict[str, str] = {}
    for condition in conditions:
        talk = bool(condition.settings["talk"])
        chosen[condition.name] = first.pop(talk) if talk in first else next(rest)
    return chosen


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
        lines=[Said(when=f"round {m['round']}", speaker=m["speaker"], text=m["text"]) for m in shown],
        left_out=len(said) - len(shown),
    )


def metrics_table(rows: dict[str, list[Row]], conditions: Sequence[Condition], measures: Sequence[str]) -> Table | None:
    """All numeric metrics of a scenario, conditions side by side; those in `measures` come first.

    Args:
        rows: the metrics of each episode, by condition.
        conditions: the columns.
        measures: names to put first, in this order.
    """
    shown = [c for c in conditions if rows.get(c.name)]
    names = list(dict.fromkeys(name for c in shown for row in rows[c.name] for name in row))
    numeric = [
        n for n in names if n not in _NO_MEASURE and any(_is_number(r.get(n)) for c in shown for r in rows[c.name])
    ]
    ordered = [*(n for n in measures if n in numeric), *(n for n in numeric if n not in measures)]
    if not ordered:
        return None
    return Table(
        title="All measures",
        head=["measure", *(f"{c.title} ({episodes_text(len(rows[c.name]))})" for c in shown)],
        rows=[
            TableRow(name=n, cells=[interval_cell(bootstrap_mean(_values(rows[c.name], n))) for c in shown])
            for n in ordered
        ],
        notes=[
            "Means over episodes with 95 % bootstrap intervals. Yes/no measures are shares; episodes without a value "
            "are left out."
        ],
    )


_NO_MEASURE = ("seed", "talk")


def _is_number(value: object) -> bool:
    return isinstance(value, bool | int | float)


def _values(rows: Sequence[Row], name: str) -> list[float | None]:
    return [float(row[name]) if _is_number(row.get(name)) else None for row in rows]
