"""Small figures side by side: a run each by seed, and a condition each by the models' temperature."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from llm_coop_envs.render.charts.curves import Panel, draw_panels
from llm_coop_envs.reports.section import Drawing, NotDrawn, PlayedCondition, ScenarioSection, marked, marks_text
from llm_coop_envs.studies.conditions import Condition

#: No more, so that titles can be read where a figure is as wide as a page.
MOST_SEEDS = 4
MOST_ROWS = 8

PanelRows = list[list[Panel | None]]


def seeds(sections: Sequence[ScenarioSection[Any]]) -> list[Drawing]:
    """Every run by itself: conditions in rows, seeds in columns."""
    found = []
    for section in sections:
        if any(len(one.seeds) > 1 for one in section.conditions):
            with suppress(NotDrawn):
                found.append(_seeds(section))
    if not found:
        raise NotDrawn("every condition has a single finished episode; there are no seeds to compare")
    return found


def temperature(sections: Sequence[ScenarioSection[Any]]) -> list[Drawing]:
    """The conditions of a scenario by the temperature of their models."""
    found = []
    for section in sections:
        by: dict[float, list[PlayedCondition[Any]]] = {}
        for one in section.conditions:
            value = temperature_of(one.condition)
            if value is not None:
                by.setdefault(value, []).append(one)
        if len(by) > 1:
            with suppress(NotDrawn):
                found.append(_temperature(section, by))
    if not found:
        raise NotDrawn("no two conditions of a scenario differ in the temperature of their models")
    return found


def temperature_of(condition: Condition) -> float | None:
    """The one temperature that a condition's players have, `None` if they have none or several."""
    values = {
        float(value)
        for _, players in condition.seats
        for player in players
        for value in _named("temperature", player.options)
    }
    return values.pop() if len(values) == 1 else None


def _named(name: str, options: Any) -> Iterator[float]:
    """Numbers of that name, however deep they stand."""
    if isinstance(options, Mapping):
        for key, value in options.items():
            if key == name and isinstance(value, int | float) and not isinstance(value, bool):
                yield value
            else:
                yield from _named(name, value)
    elif isinstance(options, list | tuple):
        for item in options:
            yield from _named(name, item)


def _seeds(section: ScenarioSection[Any]) -> Drawing:
    conditions = [one for one in section.conditions if len(one.seeds) > 1]
    shown = conditions[:MOST_ROWS]
    rows: PanelRows = []
    for one in shown:
        numbers = range(min(len(one.seeds), MOST_SEEDS))
        panels = [(marked(section.episode_panel(one, i), [one]), one.seeds[i]) for i in numbers]
        rows.append([replace(panel, title=f"seed {seed}", note=one.title) for panel, seed in panels])
    most = max(len(one.seeds) for one in shown)
    left = f" Of up to {most} runs the first {MOST_SEEDS} are shown." if most > MOST_SEEDS else ""
    if len(conditions) > len(shown):
        left += f" {len(conditions) - len(shown)} more conditions are not shown."
    name = section.scenario.name
    return Drawing(
        name=f"seeds_{name}",
        caption="One run each; conditions in rows, seeds in columns. "
        f"{section.episode_caption}{_dashed(rows, section.episode_source)}{marks_text(shown)}{left}",
        alt=f"Small charts of single runs of {section.scenario.title}, conditions in rows and seeds in columns.",
        figure=draw_panels(rows, size=(2.6, 2.3), legend_columns=min(4, max(map(len, rows)))),
    )


def _temperature(section: ScenarioSection[Any], by: Mapping[float, Sequence[PlayedCondition[Any]]]) -> Drawing:
    values = sorted(by)
    rows: PanelRows = []
    for talk in (False, True):
        row: list[Panel | None] = []
        for value in values:
            having = [one for one in by[value] if one.talk is talk]
            title = f"temperature {value:g}, {'talk' if talk else 'no talk'}"
            panel = marked(section.overview_panel(having, value), having) if having else None
            row.append(None if panel is None else replace(panel, title=title))
        if any(row):
            rows.append(row)
    return Drawing(
        name=f"temperature_{section.scenario.name}",
        caption=f"{section.overview_caption}, by the temperature of the models. Lines are means over episodes, bands "
        f"their 95 % intervals.{_dashed(rows, section.overview_source)}{marks_text(section.conditions)}",
        alt=f"Small charts of {section.scenario.title}, one for each temperature, with and without talk in rows.",
        figure=draw_panels(rows, size=(3.0, 2.5), share_y=True),
    )


def _dashed(rows: PanelRows, source: str) -> str:
    """Where dashed curves are from, if there are any."""
    dashed = any(curve.published for row in rows for panel in row if panel is not None for curve in panel.curves)
    return f" Dashed: {source}." if dashed else ""
