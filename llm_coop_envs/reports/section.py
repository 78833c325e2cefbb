"""A scenario's section of reports and its figures: one class that reads every episode once and shows what it kept."""

from __future__ import annotations

import base64
import functools
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.scenario import Row, Scenario
from llm_coop_envs.core.settings import plain
from llm_coop_envs.measures.process import ABOUT
from llm_coop_envs.measures.topics import PREFIX
from llm_coop_envs.render.charts.curves import Curve, MarkedLine, Panel
from llm_coop_envs.render.charts.style import picture
from llm_coop_envs.reports.citation import Paper
from llm_coop_envs.reports.page_parts import Cell, Excerpt, ReportTable, TableRow, episodes_text, interval_cell
from llm_coop_envs.runs.tables import EpisodeTables, without_flagged
from llm_coop_envs.statistics.intervals import mean_interval, mean_intervals
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.studies.study_file import EVERY_EPISODE
from llm_coop_envs.util.references import load

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The longest title that is not cut, in characters.
TITLE = 36
#: The longest name of a vertical line that is not cut, in characters, and how many share one.
MARK, MARKS = 34, 3
_ANNOUNCED = (
    "By rules: an announcement is the number or option that the last of a player's messages in a round names without "
    "doubt. Hints, threats and words that stand for numbers are not seen."
)
EXCERPTS = 2
#: The most conditions that stand in columns; more stand in rows, if the measures are fewer.
MOST_COLUMNS = 6
Floats = NDArray[np.float64]
E = TypeVar("E")


class NotDrawn(Exception):
    """The run does not hold what a figure shows; the message says what is missing."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """One figure.

    Attributes:
        name: its files' name without ending.
        caption: what can be seen, with the sources of published values; some sentences.
        alt: what kind of picture it is and where its numbers are, for those who cannot see it.
        figure: the figure.
        published: whether values that were published of language models are drawn in it.
    """

    name: str
    caption: str
    alt: str
    figure: Figure
    published: bool = False

    @functools.cached_property
    def png(self) -> bytes:
        """The image."""
        return picture(self.figure)

    @property
    def uri(self) -> str:
        """The image as a data URI."""
        return "data:image/png;base64," + base64.b64encode(self.png).decode()

    @property
    def width(self) -> int:
        """The natural width in a page, in CSS pixels."""
        return round(96 * self.figure.get_figwidth())


@dataclass(frozen=True, kw_only=True)
class FigureKind:
    """A figure by the name that `llm-coop figures` gives it.

    Attributes:
        name: the name.
        about: what it shows, in a few words.
        draw: draws it, as one drawing or several; raises `NotDrawn`.
    """

    name: str
    about: str
    draw: Callable[[], list[Drawing]]


@dataclass(kw_only=True)
class PlayedCondition(Generic[E]):
    """A condition with what is kept of its finished episodes; all lists are in the same order.

    Attributes:
        condition: the condition.
        who: who played, such as `"scripted"`.
        color: its colour in figures.
        seeds: the episodes' seeds.
        episodes: what the scenario's section keeps of each.
        metrics: the measures of each.
        lengths: how many rounds each had.
        said: round and text of the messages of each that are not empty.
        excerpt: a piece of the first conversation, if anybody spoke.
        choices: how many choices counted.
        flagged: how many of them were flagged: illegal or missing, and replaced by the environment's own.
        unflagged: the same without the flagged ones, as far as anything is left; `None` without any.
        invalid: why it is no result of its models; empty if it is one.
    """

    condition: Condition
    who: str
    color: str
    seeds: list[int] = field(default_factory=list)
    episodes: list[E] = field(default_factory=list)
    metrics: list[Row] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    said: list[list[tuple[int, str]]] = field(default_factory=list)
    excerpt: Excerpt | None = None
    invalid: str = ""
    choices: int = 0
    flagged: int = 0
    unflagged: PlayedCondition[E] | None = None

    def add(self, episode: EpisodeTables, read: Callable[[EpisodeTables], E]) -> None:
        """Keep what is needed of an episode, of which `read` gives the section's part."""
        self._keep(episode, read(episode))
        choices = episode.by_type["choice"]
        self.choices += len(choices)
        self.flagged += sum([bool(event["flags"]) for event in choices])
        if self.unflagged is None:
            condition = replace(self.condition, title=f"{self.condition.title}, without flagged choices")
            self.unflagged = PlayedCondition(condition=condition, who=self.who, color=self.color)
        rest = without_flagged(episode)
        if rest is not None:
            self.unflagged._keep(rest, self.episodes[-1] if rest is episode else read(rest))

    def end(self, who: str, invalid: str = "") -> None:
        """All episodes are there; `who` played them, and they are no result if there is a reason, `invalid`."""
        if not self.flagged or (self.unflagged is not None and not self.unflagged.seeds):
            self.unflagged = None
        for one in filter(None, (self, self.unflagged)):
            one.who, one.invalid = who, invalid

    def _keep(self, episode: EpisodeTables, kept: E) -> None:
        self.seeds.append(episode.seed)
        self.episodes.append(kept)
        self.metrics.append(episode.metrics)
        self.lengths.append(len(episode.by_type["round"]))

    @property
    def label(self) -> str:
        """The condition's name in legends, with who played and the number of episodes."""
        return f"here, {self.who}: {self.title} (n = {len(self.seeds)})"

    @property
    def title(self) -> str:
        """The condition's title, cut if it is too long for a legend or the head of a panel."""
        return self.cut_title(TITLE)

    def cut_title(self, most: int) -> str:
        """The condition's title in at most so many characters, and that it is invalid."""
        return _cut(self.condition.title, most) + " (invalid)" * bool(self.invalid)

    @property
    def below(self) -> str:
        """Below the condition's title in tables: who played, how many episodes, flagged choices, and if invalid."""
        flagged = f", {self.flagged:,} of {self.choices:,} choices flagged" if self.flagged else ""
        return f"{self.who}, n = {len(self.seeds)}{flagged}{', invalid' * bool(self.invalid)}"

    def row(self, cells: Sequence[Cell], **more: Any) -> TableRow:
        """A table's row of the condition's own numbers."""
        about: dict[str, Any] = {"name": self.condition.title, "below": self.below, "bad": bool(self.invalid), **more}
        return TableRow(cells=cells, conditions=(self.condition.name,), **about)

    @property
    def talk(self) -> bool:
        """Whether players could speak."""
        return bool(self.condition.settings["talk"])


class ScenarioSection(ABC, Generic[E]):
    """What reports and figures show of one scenario; a scenario's descriptor names its class as `report`.

    Attributes:
        papers: the papers that its texts may name.
        episode_caption: what the panels of single episodes show, in a sentence.
        overview_caption: what the panels of conditions show, without a full stop.
        episode_source: where the dashed curves in panels of episodes are from.
        overview_source: where those in panels of conditions are from.
        scenario: the scenario.
        conditions: its conditions with finished episodes, in the study's order.
        source: what the study says that it plays again; empty if it says nothing.
    """

    source: str = ""
    papers: ClassVar[tuple[Paper, ...]] = ()
    episode_caption: str
    overview_caption: str
    episode_source: str = ""
    overview_source: str = ""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.conditions: list[PlayedCondition[E]] = []

    @abstractmethod
    def read(self, episode: EpisodeTables) -> E:
        """What is kept of an episode."""

    @abstractmethod
    def intro(self) -> list[str]:
        """Paragraphs at the section's beginning."""

    @abstractmethod
    def figures(self) -> list[FigureKind]:
        """The scenario's own figures; their names begin with the scenario's."""

    @abstractmethod
    def tables(self) -> list[ReportTable]:
        """Tables, published values in rows of their own."""

    @abstractmethod
    def episode_panel(self, one: PlayedCondition[E], number: int) -> Panel:
        """One episode as a small panel, on the same axes as all others; `number` is its place in `one.episodes`."""

    @abstractmethod
    def overview_panel(self, conditions: Sequence[PlayedCondition[E]], temperature: float) -> Panel:
        """The main measure of some conditions in a small panel, on the same horizontal axis as all others.

        Args:
            conditions: one or more, all with talk or all without.
            temperature: that of their models.
        """

    def drawings(self) -> list[Drawing]:
        """The scenario's own figures, as far as the run holds what they show."""
        found: list[Drawing] = []
        for kind in self.figures():
            with suppress(NotDrawn):
                found += kind.draw()
        return found

    @property
    def rows(self) -> Iterator[PlayedCondition[E]]:
        """The conditions as rows of tables: each that has flagged choices is followed by itself without them."""
        return with_unflagged(self.conditions)

    def excerpts(self) -> list[Excerpt]:
        """Pieces of the conversations of the first conditions with talk, but for such as say the same."""
        told: dict[tuple[Any, ...], Excerpt] = {}
        for one in self.conditions:
            if one.excerpt is not None:
                told.setdefault(tuple((m["speaker"], m["text"]) for m in one.excerpt.messages), one.excerpt)
        return list(told.values())[:EXCERPTS]

    def measures(self, chosen: Sequence[str]) -> ReportTable | None:
        """Numeric measures with their definitions, conditions side by side: those that the study names, or all."""
        shown = list(self.rows)
        names = dict.fromkeys(name for one in shown for row in one.metrics for name in row if name not in _NO_MEASURE)
        title = "Measures that the study names" if chosen else "All measures"
        notes = ["All others are in episodes.csv."] if chosen else []
        return self._measures(title, shown, chosen or list(names), notes)

    def process(self) -> list[ReportTable]:
        """What players said and did, and what they spoke of, in the conditions in which somebody spoke."""
        shown = [one for told in self.conditions if any(told.said) for one in with_unflagged([told])]
        topics = [
            name
            for name in ABOUT
            if name.startswith(PREFIX) and any(value for one in shown for value in values_of(one.metrics, name))
        ]
        parts = (
            ("What was announced, agreed and used", [n for n in ABOUT if not n.startswith(PREFIX)], [_ANNOUNCED]),
            ("What was spoken of", topics, ["Topics that no message speaks of are left out."]),
        )
        found = (self._measures(title, shown, names, notes) for title, names, notes in parts if shown)
        return [table for table in found if table is not None]

    def _measures(
        self, title: str, shown: Sequence[PlayedCondition[E]], names: Sequence[str], notes: Sequence[str] = ()
    ) -> ReportTable | None:
        """The numeric ones among some measures, conditions side by side; `None` without any."""
        columns = {n: [values_of(one.metrics, n) for one in shown] for n in names}
        ordered = [n for n in names if any(value is not None for values in columns[n] for value in values)]
        if not ordered:
            return None
        told = [
            "Means over episodes with 95 % intervals. Yes/no measures are shares; episodes without a "
            "value are left out, and 'k of n' says how many have one.",
            *notes,
            *self.flag_notes(),
        ]
        if len(shown) > max(MOST_COLUMNS, len(ordered)):
            return ReportTable(
                title=title,
                head=["", *ordered],
                rows=[one.row([self.mean_cell(one, n) for n in ordered]) for one in shown],
                notes=[*(f"{n}: {about}" for n in ordered if (about := self.define(n))), *told],
            )
        return ReportTable(
            title=title,
            head=[
                "measure",
                *(
                    f"{one.condition.title} ({episodes_text(len(one.metrics))}{', invalid' * bool(one.invalid)})"
                    for one in shown
                ),
            ],
            columns=[one.condition.name for one in shown],
            rows=[
                TableRow(
                    name=n,
                    below=self.define(n),
                    cells=[self.mean_cell(one, n) for one in shown],
                )
                for n in ordered
            ],
            notes=told,
        )

    def mean_cell(self, one: PlayedCondition[E], name: str) -> Cell:
        """A measure's mean over the episodes of a condition."""
        return interval_cell(mean_interval(values_of(one.metrics, name)), of=len(one.seeds), within=self.bounds(name))

    def bounds(self, name: str) -> tuple[float | None, float | None]:
        """The least and most that a measure can be; `None` where there is no bound, or its definition says none."""
        like = re.match(r"As (\w+), ", self.define(name))
        return bounds(self.define(like[1] if like else name))

    def define(self, name: str) -> str:
        """What a measure means."""
        after = getattr(load(self.scenario.after), "about", {})
        return self.scenario.measured.define(name) or after.get(name) or EVERY_EPISODE.get(name, "")

    def flag_notes(self) -> list[str]:
        """What is left out of the rows and columns without flagged choices; nothing if there are none."""
        flagged = [one for one in self.conditions if one.flagged]
        if not flagged:
            return []
        none = [one.condition.title for one in flagged if one.unflagged is None]
        left = f" Nothing is left without them in: {', '.join(none)}." if none else ""
        return [
            "Flagged choices were illegal or missing, and the environment's own stood in, which may lie on an "
            f"equilibrium. Without them: {self.scenario.measured.left_out}{left}"
        ]


def with_unflagged(conditions: Sequence[PlayedCondition[E]]) -> Iterator[PlayedCondition[E]]:
    """The conditions, each that has flagged choices followed by itself without them."""
    for one in conditions:
        yield one
        if one.unflagged is not None:
            yield one.unflagged


def marked(panel: Panel, conditions: Sequence[PlayedCondition[Any]]) -> Panel:
    """A panel over rounds, with a vertical line wherever something else begins or ceases to hold in a condition."""
    found: dict[int, list[str]] = {}
    for one in conditions:
        for when, what in one.condition.schedule:
            text = f"{one.title}: {what}" if len(conditions) > 1 else what
            found.setdefault(when.from_round, []).append(_cut(text, MARK))
            if when.until_round is not None:
                found.setdefault(when.until_round + 1, []).append(_cut(f"no longer {text}", MARK))
    drawn = [x for curve in panel.curves for x in curve.x] + [x for dots in panel.dots for x in dots.x]
    return replace(
        panel,
        marks=[
            MarkedLine(at=number - 0.5, label="\n".join([*told[:MARKS], *(["..."] if len(told) > MARKS else [])]))
            for number, told in sorted(found.items())
            if drawn and min(drawn) < number <= max(drawn)
        ],
    )


def marks_text(conditions: Iterable[PlayedCondition[Any]]) -> str:
    """What the vertical lines of `marked` mean, for a caption; nothing where nothing changes."""
    told = [f"'{one.condition.title}': {what} {when}" for one in conditions for when, what in one.condition.schedule]
    return f" Vertical lines: where something changes ({'; '.join(told)})." if told else ""


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1].rstrip() + "\N{HORIZONTAL ELLIPSIS}"


def comparable(condition: Condition, *published: Mapping[str, Any]) -> bool:
    """Whether published values can stand beside a condition.

    Each of `published.json`'s entries may say under `comparable` what it takes: all settings of a `preset` but those in
    `except`, and the values in `settings`.
    """
    return all(_fits(condition, entry.get("comparable", {})) for entry in published)


def _fits(condition: Condition, rule: Mapping[str, Any]) -> bool:
    wanted = dict(rule.get("settings", {}))
    like = condition.spec.settings_type.build(rule.get("preset")).to_json()
    # Plain data leave out younger settings at their defaults, which no paper departs from.
    if condition.settings.keys() - like.keys() - wanted.keys() - set(rule.get("except", ())):
        return False
    if "preset" in rule:
        wanted = {**{name: value for name, value in like.items() if name not in rule["except"]}, **wanted}
    # A setting that is younger than the run had its default there.
    return all(plain(condition.settings.get(name, value)) == plain(value) for name, value in wanted.items())


_BOUNDS = re.compile(
    r"(?:[,;] |count |cent |numbers |points )from (?P<from>\d+)(?: to (?P<to>\d+)\b)?"
    r"|(?:[,;]|above|cut to) (?P<low>-?\d+) to (?P<high>\d+)\b"
)


def bounds(definition: str) -> tuple[float | None, float | None]:
    """The least and most that a measure can be, as its definition says: `"..., 0 to 1"`, `"a count from 0"`."""
    found = _BOUNDS.search(definition)
    low, high = (None, None) if found is None else (found["from"] or found["low"], found["to"] or found["high"])
    return (None if low is None else float(low)), (None if high is None else float(high))


def concerns(entry: Mapping[str, Any], source: str, condition: str = "") -> bool:
    """Whether a published value concerns a study, besides that the game is the same.

    Args:
        entry: the value; its `study` is a part of the `source` of those studies that it concerns, its `conditions` are
            the names of these studies' arms. It concerns every study that names no source.
        source: what the study says that it plays again.
        condition: a condition's name.
    """
    if not source:
        return True
    return entry.get("study", "") in source and (not condition or condition in entry.get("conditions", (condition,)))


def mean_curve(
    label: str,
    x: Sequence[float],
    table: Floats,
    color: str,
    *,
    within: tuple[float | None, float | None] = (None, None),
    **look: Any,
) -> Curve:
    """The mean over episodes with its interval, or without one if there is a single episode.

    Args:
        label: the curve's name.
        x: (points,) where.
        table: (episodes, points) without missing values.
        color: its colour.
        within: the least and most that a value can be; the interval ends there.
        **look: more attributes of `Curve`.
    """
    found = mean_intervals(table)
    mean, low, high = (row.tolist() for row in (found if within == (None, None) else np.clip(found, *within)))
    band = {"low": low, "high": high} if len(table) > 1 else {}
    return Curve(label=label, x=x, y=mean, color=color, **band, **look)


_NO_MEASURE = ("seed", "talk")


def values_of(rows: Sequence[Row], name: str) -> list[float | None]:
    """A column's numbers, `bool` for yes and no; `None` where there is no number."""
    return [value if isinstance(value := row.get(name), (bool, int, float)) else None for row in rows]
