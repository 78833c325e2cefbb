"""A scenario's section of reports: a class that reads every episode once and makes figures and tables of it."""

from __future__ import annotations

import base64
import copy
import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from llm_coop_envs.core.scenario import Scenario, resolve_range
from llm_coop_envs.core.settings import plain
from llm_coop_envs.render.charts.panels import Curve, MarkedLine, Panel
from llm_coop_envs.render.charts.style import picture
from llm_coop_envs.reports.page_parts import Cell, Excerpt, ReportTable, interval_cell
from llm_coop_envs.reports.played import E, PlayedCondition, shorten, values_of
from llm_coop_envs.runs.citation import Paper
from llm_coop_envs.runs.tables import EpisodeTables
from llm_coop_envs.statistics.intervals import ANYTHING, Range, mean_interval
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.studies.study_file import EVERY_EPISODE, EVERY_EPISODE_RANGES
from llm_coop_envs.util.references import load

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The longest name of a vertical line that is not cut, in characters, and how many share one.
MARK, MARKS = 34, 3
EXCERPTS = 2


class NotDrawn(Exception):
    """The run does not hold what a figure shows; the message says what is missing."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """One figure.

    Attributes:
        name: the name of its files without ending.
        caption: some sentences on what it shows, with the sources of published values.
        alt: a text in place of the picture: its kind, and where its numbers are.
        figure: the matplotlib figure.
        published: whether it shows published values of language models.
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
        about: a few words on what it shows.
        draw: draws it, as one drawing or several, or raises `NotDrawn`.
    """

    name: str
    about: str
    draw: Callable[[], list[Drawing]]


class ScenarioSection(ABC, Generic[E]):
    """Base class of a scenario's figures and tables in reports; its descriptor names the class as `report`.

    Attributes:
        papers: the papers that its texts may name.
        episode_caption: a sentence on what the panels of single episodes show.
        overview_caption: the same for the panels of conditions, without a full stop.
        episode_source: the source of the dashed curves in panels of episodes.
        overview_source: the source of the dashed curves in panels of conditions.
        scenario: the scenario.
        conditions: its arms with finished episodes, in the study's order.
        source: the paper that the study plays again, in the study's words; empty if it names none.
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
        """Extract the data of an episode that figures and tables need.

        Nothing is kept here: another process may read it, in a section of its own.
        """

    @abstractmethod
    def intro(self) -> list[str]:
        """The paragraphs at the beginning of the section."""

    @abstractmethod
    def figures(self) -> list[FigureKind]:
        """The scenario's own figures, whose names begin with the scenario's name."""

    @abstractmethod
    def tables(self) -> list[ReportTable]:
        """The scenario's own tables, with published values in rows of their own."""

    @abstractmethod
    def episode_panel(self, arm: PlayedCondition[E], number: int) -> Panel:
        """One episode as a small panel, on the same axes as all others.

        Args:
            arm: the arm that it belongs to.
            number: its index in `arm.episodes`.
        """

    @abstractmethod
    def overview_panel(self, conditions: Sequence[PlayedCondition[E]], temperature: float) -> Panel:
        """The main measure of some arms in a small panel, on the same horizontal axis as all others.

        Args:
            conditions: one or more arms, all with talk or all without.
            temperature: the temperature of their models.
        """

    def limit_to(self, arms: Sequence[PlayedCondition[E]]) -> ScenarioSection[E]:
        """The same section of some arms alone."""
        section = copy.copy(self)
        section.conditions = list(arms)
        return section

    def drawings(self) -> list[Drawing]:
        """Draw the scenario's own figures, without those that need data that the run does not hold."""
        drawings: list[Drawing] = []
        for kind in self.figures():
            with suppress(NotDrawn):
                drawings += kind.draw()
        return drawings

    @property
    def rows(self) -> Iterator[PlayedCondition[E]]:
        """The arms as rows of tables; see `with_unflagged`."""
        return with_unflagged(self.conditions)

    def excerpts(self) -> list[Excerpt]:
        """Excerpts of the conversations of the first arms in which somebody spoke, without equal ones."""
        excerpts: dict[tuple[Any, ...], Excerpt] = {}
        for arm in self.conditions:
            if arm.excerpt is not None:
                excerpts.setdefault(tuple((m["speaker"], m["text"]) for m in arm.excerpt.messages), arm.excerpt)
        return list(excerpts.values())[:EXCERPTS]

    def mean_cell(self, arm: PlayedCondition[E], name: str) -> Cell:
        """A cell with a measure's mean over the episodes of an arm."""
        values = arm.per_unit(values_of(arm.metrics, name))
        return interval_cell(mean_interval(values, self.range_of(name, arm)), of=arm.units)

    def range_of(self, name: str, arm: PlayedCondition[E]) -> Range:
        """What a measure can be in the games of an arm; anything where nobody says."""
        settings = arm.condition.settings
        return (
            self.scenario.measured.range_of(name, settings)
            or resolve_range(getattr(load(self.scenario.after), "ranges", {}).get(name), settings)
            or EVERY_EPISODE_RANGES.get(name, ANYTHING)
        )

    def range_of_all(self, name: str, arms: Iterable[PlayedCondition[E]]) -> Range:
        """What a measure can be in the games of some arms together."""
        ranges = [self.range_of(name, arm) for arm in arms]
        lows, highs = [own.low for own in ranges], [own.high for own in ranges]
        return Range(
            low=None if None in lows else min(low for low in lows if low is not None),
            high=None if None in highs else max(high for high in highs if high is not None),
            integer=all(own.integer for own in ranges),
        )

    def define(self, name: str) -> str:
        """The definition of a measure; empty if it has none."""
        panel_measures = getattr(load(self.scenario.after), "about", {})
        return self.scenario.measured.define(name) or panel_measures.get(name) or EVERY_EPISODE.get(name, "")

    def published_values(self, condition: Condition, measure: str) -> list[tuple[str, float]]:
        """Titles and values of published numbers of a measure in the game of a condition, of the study's own source."""
        return [
            (entry["title"], entry["value"])
            for entry in self.scenario.published.get("measures", ())
            if entry.get("measure") == measure and is_shown_beside(condition, entry, self.source)
        ]

    def flag_notes(self) -> list[str]:
        """Notes on what is left out: choices that the study forces, and in some rows and columns flagged ones."""
        is_forced = any(arm.condition.has_forced_choices for arm in self.conditions)
        forced = [self.scenario.measured.forced_note] if is_forced else []
        flagged = [arm for arm in self.conditions if arm.flagged]
        if not flagged:
            return forced
        empty = [arm.condition.title for arm in flagged if arm.unflagged is None]
        empty_note = f" Nothing is left without them in: {', '.join(empty)}." if empty else ""
        return [
            *forced,
            "Flagged choices were illegal or missing, and the environment's own stood in, which may lie on an "
            f"equilibrium. Without them: {self.scenario.measured.left_out}{empty_note}",
        ]


def with_unflagged(conditions: Sequence[PlayedCondition[E]]) -> Iterator[PlayedCondition[E]]:
    """Yield each arm, and after it the same arm without flagged choices if it has any."""
    for arm in conditions:
        yield arm
        if arm.unflagged is not None:
            yield arm.unflagged


def marked(panel: Panel, conditions: Sequence[PlayedCondition[Any]], *, named: bool = True) -> Panel:
    """Add vertical lines to a panel over rounds, where scheduled changes of the arms begin or end.

    Where an arm's changes force choices, its curves have open circles: measures leave these out, and pictures show
    them, because others meet with them and answer. Small panels have no room for the lines' names.
    """
    lines: dict[int, list[str]] = {}
    for arm in conditions:
        for when, change in arm.condition.schedule:
            whose = f"{arm.title}: " if len(conditions) > 1 else ""
            lines.setdefault(when.from_round, []).append(shorten(f"{whose}{change}", MARK))
            if when.until_round is not None:
                lines.setdefault(when.until_round + 1, []).append(shorten(f"{whose}no longer {change}", MARK))
    rounds = [x for curve in panel.curves for x in curve.x] + [x for dots in panel.dots for x in dots.x]
    return replace(
        panel,
        curves=[_circled(curve, conditions) for curve in panel.curves],
        marks=[
            MarkedLine(
                at=number - 0.5,
                label="\n".join([*labels[:MARKS], *(["..."] if len(labels) > MARKS else [])]) if named else "",
            )
            for number, labels in sorted(lines.items())
            if rounds and min(rounds) < number <= max(rounds)
        ],
    )


def _circled(curve: Curve, conditions: Sequence[PlayedCondition[Any]]) -> Curve:
    """A curve of one of some arms, with circles where that arm's choices are forced."""
    if curve.published or curve.thin:
        return curve
    arms = [arm.condition for arm in conditions if len(conditions) == 1 or arm.color == curve.color]
    return replace(curve, hollow=[x for x in curve.x if any(arm.forces_in(int(x)) for arm in arms)])


def marks_text(conditions: Iterable[PlayedCondition[Any]]) -> str:
    """The meaning of the vertical lines and circles of `marked`, for a caption; empty if nothing changes."""
    conditions = list(conditions)
    changes = [
        f"'{arm.condition.title}': {change} {when}" for arm in conditions for when, change in arm.condition.schedule
    ]
    forced = any(arm.condition.has_forced_choices for arm in conditions)
    circles = " Open circles: rounds in which somebody's choice is forced." if forced else ""
    return f" Vertical lines: where something changes ({'; '.join(changes)}).{circles}" if changes else ""


def comparable(condition: Condition, *published: Mapping[str, Any]) -> bool:
    """Whether published values were taken in the same game as a condition.

    An entry of `published.json` may require something under `comparable`: all settings of a `preset` but those in
    `except`, and the values in `settings`.
    """
    return all(_fits(condition, entry.get("comparable", {})) for entry in published)


def _fits(condition: Condition, rule: Mapping[str, Any]) -> bool:
    required = dict(rule.get("settings", {}))
    preset = condition.spec.settings_type.build(rule.get("preset")).to_json()
    # Settings that are younger than a paper are absent at their defaults. One that is present departs from the paper.
    if condition.settings.keys() - preset.keys() - required.keys() - set(rule.get("except", ())):
        return False
    if "preset" in rule:
        required = {**{name: value for name, value in preset.items() if name not in rule["except"]}, **required}
    # A setting that is younger than the run is absent too: its default held.
    return all(plain(condition.settings.get(name, value)) == plain(value) for name, value in required.items())


def concerns(entry: Mapping[str, Any], source: str, condition: str = "") -> bool:
    """Whether a published value concerns a study that plays the same game.

    Args:
        entry: the value. It concerns the studies whose `source` contains its `study`, and in them its `conditions`.
            An arm of an entry has no `study` of its own: it concerns the studies that the entry concerns.
        source: the paper that the study plays again, in the study's words; empty if it plays none again.
        condition: the name of a condition of the study.
    """
    return entry.get("study", "") in source and (not condition or condition in entry.get("conditions", (condition,)))


def is_shown_beside(condition: Condition, entry: Mapping[str, Any], source: str) -> bool:
    """Whether a published value is shown beside a condition of a study that plays `source` again."""
    return comparable(condition, entry) and concerns(entry, source, condition.name)
