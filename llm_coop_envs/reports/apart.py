"""A scenario's figures with the conditions side by side, instead of overlaid in one panel."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from llm_coop_envs.render.charts.layout import draw_panels, panels_of
from llm_coop_envs.render.charts.panels import Panel
from llm_coop_envs.reports.played import PlayedCondition
from llm_coop_envs.reports.section import Drawing, FigureKind, NotDrawn, ScenarioSection

#: Conditions beside each other in a row.
ACROSS = 3


def draw_apart(section: ScenarioSection[Any]) -> list[FigureKind]:
    """The figures of a section, each with a panel or a row of panels for every condition."""
    return [replace(kind, draw=functools.partial(_draw_kind, section, kind.name)) for kind in section.figures()]


def _draw_kind(section: ScenarioSection[Any], name: str) -> list[Drawing]:
    """Draw a figure of each condition alone, and put them into one.

    Raises:
        NotDrawn: it cannot be drawn of any condition.
    """
    drawn: list[tuple[PlayedCondition[Any], list[Drawing]]] = []
    for arm in section.conditions:
        kind = next((kind for kind in section.limit_to([arm]).figures() if kind.name == name), None)
        with suppress(NotDrawn):
            drawn += [] if kind is None else [(arm, kind.draw())]
    if not drawn:
        # Drawn of all conditions it says why, or it needs several of them.
        return next(kind for kind in section.figures() if kind.name == name).draw()
    if len(drawn) == 1 or not all(len(drawings) == 1 and panels_of(drawings[0].figure) for _, drawings in drawn):
        return [drawing for _, drawings in drawn for drawing in drawings]
    return [_join([(arm, drawing) for arm, (drawing,) in drawn], name)]


def _join(drawn: Sequence[tuple[PlayedCondition[Any], Drawing]], name: str) -> Drawing:
    rows = _with_one_range([_panels(drawing) for _, drawing in drawn])
    colours: dict[str, set[str]] = {}
    for curve in (curve for row in rows for panel in row for curve in panel.curves):
        colours.setdefault(curve.label, set()).add(curve.color)
    ambiguous = {label for label, used in colours.items() if label and len(used) > 1}
    is_single = all(len(row) == 1 for row in rows)
    rows = [
        [_named(_relabelled(panel, arm, ambiguous), arm, is_alone=is_single) for panel in row]
        for row, (arm, _) in zip(rows, drawn, strict=True)
    ]
    if is_single:
        panels = [panel for row in rows for panel in row]
        rows = [panels[at : at + ACROSS] for at in range(0, len(panels), ACROSS)]
    captions = dict.fromkeys(drawing.caption for _, drawing in drawn)
    return Drawing(
        name=f"{name.replace('-', '_')}_apart",
        caption=f"{'A panel' if is_single else 'A row of panels'} for each condition. {' '.join(captions)}",
        alt=drawn[0][1].alt,
        figure=draw_panels(rows, size=(3.0, 2.7)),
        published=any(drawing.published for _, drawing in drawn),
    )


def _with_one_range(rows: Sequence[Sequence[Panel]]) -> list[list[Panel]]:
    """The rows, with the same vertical axis for panels in the same place, so that conditions can be compared."""
    if len({len(row) for row in rows}) > 1:
        return [list(row) for row in rows]
    ranges = [_joint_range(panels) for panels in zip(*rows, strict=True)]
    return [[replace(panel, y_range=ends) for panel, ends in zip(row, ranges, strict=True)] for row in rows]


def _joint_range(panels: Sequence[Panel]) -> tuple[float | None, float | None]:
    """The ends of a vertical axis that holds what some panels set as theirs, or else what they show."""
    values = [value for panel in panels for value in _heights(panel)]
    if not values:
        return panels[0].y_range
    margin = 0.05 * (max(values) - min(values)) or 1.0
    lows = [min(values) - margin if panel.y_range[0] is None else panel.y_range[0] for panel in panels]
    highs = [max(values) + margin if panel.y_range[1] is None else panel.y_range[1] for panel in panels]
    return min(lows), max(highs)


def _heights(panel: Panel) -> Iterator[float]:
    """Every height at which a panel shows something."""
    for curve in panel.curves:
        for values in (curve.y, curve.low or (), curve.high or ()):
            yield from (value for value in values if math.isfinite(value))
    for dots in panel.dots:
        yield from dots.y
    yield from (level.value for level in panel.levels)


def _relabelled(panel: Panel, arm: PlayedCondition[Any], labels: Collection[str]) -> Panel:
    """A panel whose curves name their condition, where others of the same name have other colours."""
    curves = [
        replace(curve, label=f"{arm.title}: {curve.label}") if curve.label in labels else curve
        for curve in panel.curves
    ]
    return replace(panel, curves=curves)


def _panels(drawing: Drawing) -> list[Panel]:
    return [panel for row in panels_of(drawing.figure) for panel in row if panel is not None]


def _named(panel: Panel, arm: PlayedCondition[Any], *, is_alone: bool) -> Panel:
    """A panel that names its condition: in its title if it is the only one of the condition, else below it."""
    if is_alone or not panel.title:
        return replace(panel, title=arm.title)
    if arm.title in panel.title:
        return panel
    return replace(panel, note=f"{arm.title}; {panel.note}" if panel.note else arm.title)
