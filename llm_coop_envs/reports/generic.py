"""The section of a scenario without one of its own: headline measures, and measures round by round."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from llm_coop_envs.core.scenario import Row
from llm_coop_envs.measures.topics import PREFIX
from llm_coop_envs.render.charts.dots import Dot, DotPanel, draw_dots
from llm_coop_envs.render.charts.layout import draw_panels
from llm_coop_envs.render.charts.panels import Curve, Panel
from llm_coop_envs.render.charts.style import PALETTE
from llm_coop_envs.reports.means import mean_curves, spread_text
from llm_coop_envs.reports.page_parts import ReportTable
from llm_coop_envs.reports.played import PlayedCondition, unit_of, values_of
from llm_coop_envs.reports.section import (
    Drawing,
    FigureKind,
    NotDrawn,
    ScenarioSection,
    marked,
    marks_text,
)
from llm_coop_envs.runs.tables import EpisodeTables
from llm_coop_envs.statistics.intervals import mean_interval

MOST_COLUMNS = 4
MOST_SIDE_BY_SIDE = 2
MOST_OVERLAID = 8  # lines of more conditions cannot be told apart, and they have a figure of their own
_AXIS = 26  # letters of a line beside an axis
_NO_COLUMN = ("condition", "seed", "round")


class GenericSection(ScenarioSection[list[Row]]):
    """Section that keeps each episode's rows of rounds."""

    episode_caption = "The measure that the axis names, by round."
    overview_caption = "The measure that the axis names, by round"

    def read(self, episode: EpisodeTables) -> list[Row]:
        """The rows of the episode's rounds."""
        return episode.rounds

    def intro(self) -> list[str]:
        """A paragraph on what the section shows."""
        return [
            f"The measures that this scenario puts first, as means over {unit_of(self.conditions)}, and some of its "
            "measures round by round. All measures with their definitions are in the list below."
        ]

    def figures(self) -> list[FigureKind]:
        """A single figure: measures round by round."""
        name = f"{self.scenario.name}-rounds"
        return [FigureKind(name=name, about="measures round by round, with bands", draw=self.rounds)]

    def tables(self) -> list[ReportTable]:
        """A single table: the headline measures."""
        measured = self.scenario.measured
        names = [name for name in measured.headline if any(name in row for c in self.conditions for row in c.metrics)]
        if not names:
            return []
        return [
            ReportTable(
                title="Headline measures",
                head=["", *names],
                rows=[arm.row([self.mean_cell(arm, name) for name in names]) for arm in self.rows],
                notes=[
                    f"Means over {unit_of(self.conditions)} with 95 % intervals.",
                    *(f"{name}: {text}" for name in names if (text := measured.define(name))),
                    *self.flag_notes(),
                ],
            )
        ]

    def rounds(self) -> list[Drawing]:
        """Draw the mean of some measures in each round, a panel per measure.

        Where every episode has a single round, their means stand side by side instead.

        Raises:
            NotDrawn: the rounds hold no numbers that every episode has.
        """
        if self._columns() and not any(len(rows) > 1 for arm in self.conditions for rows in arm.episodes):
            return [self._means()]
        groups = [self.conditions[at : at + MOST_OVERLAID] for at in range(0, len(self.conditions), MOST_OVERLAID)]
        drawings = [drawing for k, arms in enumerate(groups, 1) for drawing in self._rounds(arms, k)]
        if not drawings:
            raise NotDrawn(f"the rounds of {self.scenario.name} have no numbers that every episode has")
        return drawings

    def _rounds(self, arms: Sequence[PlayedCondition[list[Row]]], number: int) -> list[Drawing]:
        """Draw some conditions, the first ones or those that follow; nothing if there is nothing to draw."""
        unmarked = (self._panel(arms, name) for name in self._columns())
        # The caption names what changes: in small panels names of several arms would cover the lines.
        panels = [marked(panel, arms, named=len(arms) == 1) for panel in unmarked if panel.curves]
        if not panels:
            return []
        columns = " ".join(", ".join(panel.y_label for panel in panels).split())
        return [
            Drawing(
                name=f"{self.scenario.name}_rounds{f'_{number}' * (number > 1)}",
                caption=f"By round: {columns}, as far as every episode of a condition has the round; one that never "
                f"has the number is left out. {spread_text(arms)}{marks_text(arms)}",
                alt=f"Line charts: {columns} by round, one line for each condition.",
                figure=draw_panels([panels[i : i + 2] for i in range(0, len(panels), 2)], size=(3.7, 2.7)),
            )
        ]

    def _means(self) -> Drawing:
        """Draw the first headline measures of each condition as means with intervals."""
        measured = self.scenario.measured
        panels = []
        for name in measured.headline:
            values = [arm.per_unit(values_of(arm.metrics, name)) for arm in self.conditions]
            means = [
                mean_interval(own, self.range_of(name, arm)) for own, arm in zip(values, self.conditions, strict=True)
            ]
            dots = [
                Dot(line=line, value=mean.mean, low=mean.low, high=mean.high, group=0)
                for line, mean in enumerate(means)
                if mean is not None
            ]
            if dots:
                ends = [end for dot in dots for end in (dot.value, dot.low, dot.high) if end is not None]
                title, within = self._name(self.conditions[0], name), self.range_of_all(name, self.conditions)
                panels.append(DotPanel(title=title, label="", dots=dots, x_range=within.axis(ends)))
        if not panels:
            raise NotDrawn(f"the episodes of {self.scenario.name} have no headline measure")
        panels = panels[:MOST_SIDE_BY_SIDE]
        columns = " ".join(", ".join(panel.title for panel in panels).split())
        return Drawing(
            name=f"{self.scenario.name}_rounds",
            caption=f"By condition, each of whose episodes has one round: {columns}. Means with 95 % intervals.",
            alt=f"Dots with intervals: {columns}, one line for each condition.",
            figure=draw_dots([arm.title for arm in self.conditions], [("mean, 95 % interval", PALETTE[0])], panels),
        )

    def episode_panel(self, arm: PlayedCondition[list[Row]], number: int) -> Panel:
        """The first measure of an episode by round."""
        name = self._columns()[0]
        values = _by_round(arm.episodes[number], name)
        curve = Curve(label=f"here, {arm.who}", x=list(values), y=list(values.values()), marked=True)
        return Panel(
            title="",
            x_label="round",
            y_label=self._name(arm, name),
            curves=[curve],
            x_ticks=_ticks([arm]),
            y_range=self._axis(name),
        )

    def overview_panel(self, conditions: Sequence[PlayedCondition[list[Row]]], temperature: float) -> Panel:
        """The first measure of some conditions by round."""
        name = self._columns()[0]
        return replace(self._panel(conditions, name), y_range=self._axis(name))

    def _axis(self, name: str) -> tuple[float, float]:
        """The vertical axis that holds a column of every episode, so that panels can be compared."""
        rows = (rows for arm in self.conditions for rows in arm.episodes)
        values = [value for own in rows for value in _by_round(own, name).values()]
        return self.range_of_all(name, self.conditions).axis(values)

    def _columns(self) -> list[str]:
        """Up to four numeric columns of the rounds' rows: those of headline measures, then others in their order.

        Raises:
            NotDrawn: there are none.
        """
        rows = [row for arm in self.conditions for episode in arm.episodes for row in episode]
        names = dict.fromkeys(
            name for row in rows for name in row if name not in _NO_COLUMN and not name.startswith(PREFIX)
        )
        numeric = [name for name in names if any(value is not None for value in values_of(rows, name))]
        if not numeric:
            raise NotDrawn(f"the rounds of {self.scenario.name} hold no numbers")
        headline = [name for name in self.scenario.measured.headline if name in numeric]
        return [*headline, *(name for name in numeric if name not in headline)][:MOST_COLUMNS]

    def _panel(self, conditions: Sequence[PlayedCondition[list[Row]]], name: str) -> Panel:
        curves: list[Curve] = []
        for arm in conditions:
            by_round = [_by_round(rows, name) for rows in arm.episodes]
            # Where no trade is possible there is no price: such an episode does not hide those of all others.
            present = [set(values) for values in by_round if values]
            shared = sorted(set.intersection(*present)) if present else []
            if shared:
                values = [[row.get(number, math.nan) for number in shared] for row in by_round]
                table = arm.per_unit_rows(np.array(values))
                table = table[~np.isnan(table[:, 0])]
                own = self.range_of(name, arm)
                curves += mean_curves(arm.label, shared, table, arm.color, own, arm.unit, marked=len(shared) == 1)
        label = self._name(conditions[0], name)
        heights = [y for curve in curves for ys in (curve.y, curve.low or (), curve.high or ()) for y in ys]
        within = self.range_of_all(name, conditions)
        return Panel(
            title="",
            x_label="round",
            y_label=label,
            curves=curves,
            x_ticks=_ticks(conditions),
            y_range=within.axis(heights) if heights else (None, None),
            counts=within.integer,
        )

    def _name(self, arm: PlayedCondition[list[Row]], name: str) -> str:
        """How a chart calls a column."""
        label = self.scenario.measured.words_for(name, arm.condition.settings).brief.removeprefix("the ")
        return textwrap.fill(label, _AXIS)


def _ticks(conditions: Sequence[PlayedCondition[list[Row]]]) -> list[int] | None:
    """At most six of up to twelve rounds as ticks; with more rounds ticks are automatic."""
    rounds = {row["round"] for arm in conditions for rows in arm.episodes for row in rows}
    return sorted(rounds)[:: math.ceil(len(rounds) / 6)] if 0 < len(rounds) <= 12 else None


def _by_round(rows: Sequence[Row], name: str) -> dict[int, float]:
    return {row["round"]: v for row, v in zip(rows, values_of(rows, name), strict=True) if v is not None}
