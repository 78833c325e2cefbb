"""Figures of small panels: one episode each, by seed, and one condition each, by the models' temperature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from llm_coop_envs.render.charts.layout import draw_panels
from llm_coop_envs.render.charts.panels import Panel
from llm_coop_envs.reports.means import spread_text
from llm_coop_envs.reports.played import PlayedCondition
from llm_coop_envs.reports.section import (
    Drawing,
    NotDrawn,
    ScenarioSection,
    marked,
    marks_text,
)
from llm_coop_envs.studies.conditions import Condition

#: The most columns and rows; with more columns titles could not be read in a figure as wide as a page.
MOST_SEEDS = 4
MOST_ROWS = 8

PanelRows = list[list[Panel | None]]


def draw_seeds(sections: Sequence[ScenarioSection[Any]]) -> list[Drawing]:
    """Draw every episode by itself, with conditions in rows and seeds in columns.

    Raises:
        NotDrawn: no condition has two episodes.
    """
    drawings = []
    for section in sections:
        if any(len(arm.seeds) > 1 for arm in section.conditions):
            with suppress(NotDrawn):
                drawings.append(_seeds_drawing(section))
    if not drawings:
        raise NotDrawn("every condition has a single finished episode; there are no seeds to compare")
    return drawings


def draw_temperature(sections: Sequence[ScenarioSection[Any]]) -> list[Drawing]:
    """Draw the conditions of each scenario by the temperature of their models.

    Raises:
        NotDrawn: no two conditions of a scenario differ in it.
    """
    drawings = []
    for section in sections:
        arms_by_temperature: dict[float, list[PlayedCondition[Any]]] = {}
        for arm in section.conditions:
            value = temperature_of(arm.condition)
            if value is not None:
                arms_by_temperature.setdefault(value, []).append(arm)
        if len(arms_by_temperature) > 1:
            with suppress(NotDrawn):
                drawings.append(_temperature_drawing(section, arms_by_temperature))
    if not drawings:
        raise NotDrawn("no two conditions of a scenario differ in the temperature of their models")
    return drawings


def temperature_of(condition: Condition) -> float | None:
    """The temperature that all of a condition's models share; `None` if they have none or several."""
    values = {
        float(value)
        for _, players in condition.seats
        for player in players
        for value in _find_numbers("temperature", player.options)
    }
    return values.pop() if len(values) == 1 else None


def _find_numbers(name: str, options: Any) -> Iterator[float]:
    """Yield the numbers of that name, at any depth of nested options."""
    if isinstance(options, Mapping):
        for key, value in options.items():
            if key == name and isinstance(value, int | float) and not isinstance(value, bool):
                yield value
            else:
                yield from _find_numbers(name, value)
    elif isinstance(options, list | tuple):
        for value in options:
            yield from _find_numbers(name, value)


def _seeds_drawing(section: ScenarioSection[Any]) -> Drawing:
    arms = [arm for arm in section.conditions if len(arm.seeds) > 1]
    shown_arms = arms[:MOST_ROWS]
    rows: PanelRows = []
    for arm in shown_arms:
        numbers = range(min(len(arm.seeds), MOST_SEEDS))
        panels = [(marked(section.episode_panel(arm, i), [arm], named=False), arm.seeds[i]) for i in numbers]
        rows.append([replace(panel, title=f"seed {seed}", note=arm.title) for panel, seed in panels])
    most_seeds = max(len(arm.seeds) for arm in shown_arms)
    omitted = f" Of up to {most_seeds} runs the first {MOST_SEEDS} are shown." if most_seeds > MOST_SEEDS else ""
    if len(arms) > len(shown_arms):
        omitted += f" {len(arms) - len(shown_arms)} more conditions are not shown."
    name = section.scenario.name
    return Drawing(
        name=f"seeds_{name}",
        caption="One run each; conditions in rows, seeds in columns. "
        f"{section.episode_caption}{_dashed(rows, section.episode_source)}{marks_text(shown_arms)}{omitted}",
        alt=f"Small charts of single runs of {section.scenario.title}, conditions in rows and seeds in columns.",
        figure=draw_panels(rows, size=(2.6, 2.3), legend_columns=min(4, max(map(len, rows)))),
    )


def _temperature_drawing(
    section: ScenarioSection[Any], arms_by_temperature: Mapping[float, Sequence[PlayedCondition[Any]]]
) -> Drawing:
    values = sorted(arms_by_temperature)
    rows: PanelRows = []
    for talk in (False, True):
        row: list[Panel | None] = []
        for value in values:
            arms = [arm for arm in arms_by_temperature[value] if arm.talk is talk]
            title = f"temperature {value:g}, {'talk' if talk else 'no talk'}"
            panel = marked(section.overview_panel(arms, value), arms, named=False) if arms else None
            row.append(None if panel is None else replace(panel, title=title))
        if any(row):
            rows.append(row)
    return Drawing(
        name=f"temperature_{section.scenario.name}",
        caption=f"{section.overview_caption}, by the temperature of the models. "
        f"{spread_text(section.conditions)}{_dashed(rows, section.overview_source)}{marks_text(section.conditions)}",
        alt=f"Small charts of {section.scenario.title}, one for each temperature, with and without talk in rows.",
        figure=draw_panels(rows, size=(3.0, 2.5), share_y=True),
    )


def _dashed(rows: PanelRows, source: str) -> str:
    """Name the source of dashed curves, if there are any."""
    dashed = any(curve.published for row in rows for panel in row if panel is not None for curve in panel.curves)
    return f" Dashed: {source}." if dashed else ""
