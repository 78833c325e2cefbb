"""Measures that papers report, beside the same measures of a run's conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_coop_envs.reports.page_parts import NOTHING, Cell, ReportTable, TableRow
from llm_coop_envs.reports.section import ScenarioSection, comparable, concerns
from llm_coop_envs.studies.conditions import Condition


def beside(condition: Condition, entry: Mapping[str, Any], source: str) -> bool:
    """Whether a published value stands beside a condition of a study that plays `source` again."""
    return comparable(condition, entry) and concerns(entry, source, condition.name)


def published_tables(section: ScenarioSection[Any]) -> list[ReportTable]:
    """Conditions beside the published values of `published.json`'s `measures` that were taken in the same game.

    An entry has a `title`, a `source`, what it is `comparable` with and which studies it `concerns`, and a `measure`
    with its `value`; or, in place of both, a finding in `words`, which becomes a note.
    """
    known = section.scenario.published.get("measures", ())
    source = section.source
    shown = [one for one in section.conditions if any(beside(one.condition, entry, source) for entry in known)]
    entries = [entry for entry in known if any(beside(one.condition, entry, source) for one in shown)]
    measured = [entry for entry in entries if "measure" in entry]
    names = list(dict.fromkeys(entry["measure"] for entry in measured))
    rows = []
    for one in shown:
        alike = {entry["measure"] for entry in measured if beside(one.condition, entry, source)}
        if not alike:
            continue
        rows.append(one.row([section.mean_cell(one, name) if name in alike else NOTHING for name in names]))
    published: dict[tuple[str, int | None], dict[str, float]] = {}
    for entry in measured:
        published.setdefault((entry["title"], entry.get("runs")), {})[entry["measure"]] = entry["value"]
    for (title, runs), values in published.items():
        cells = [Cell(text=f"{values[name]:g}") if name in values else NOTHING for name in names]
        below = "published" if runs is None else "published, one run" if runs == 1 else f"published, {runs} runs"
        rows.append(TableRow(name=title, below=below, cells=cells, published=True))
    if not entries:
        return []
    told: dict[str, list[str]] = {}
    for entry in entries:
        told.setdefault(entry.get("words", entry["source"]), []).append(entry["title"])
    return [
        ReportTable(
            title="Published measures" if names else "Published findings",
            head=["", *names],
            rows=rows,
            notes=[
                *(f"{'; '.join(dict.fromkeys(titles))}: {text}." for text, titles in told.items()),
                *(f"{name}: {text}" for name in names if (text := section.scenario.measured.define(name))),
            ],
        )
    ]
