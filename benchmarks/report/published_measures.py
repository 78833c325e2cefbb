"""Measures that papers report, beside the same measures of a run's conditions."""

from __future__ import annotations

from typing import Any

from llm_coop_envs.benchmarks.report.page_parts import NOTHING, Cell, ReportTable, TableRow, interval_cell
from llm_coop_envs.benchmarks.report.section import ScenarioSection, comparable, values_of
from llm_coop_envs.core.statistics import mean_interval


def published_tables(section: ScenarioSection[Any]) -> list[ReportTable]:
    """Conditions beside the published values of `published.json`'s `measures` that were taken in the same game.

    An entry has a `title`, a `source`, what it is `comparable` with, and a `measure` with its `value`; or, in place of
    both, a finding in `words`, which becomes a note.
    """
    known = section.scenario.published.get("measures", ())
    shown = [one for one in section.conditions if any(comparable(one.condition, entry) for entry in known)]
    entries = [entry for entry in known if any(comparable(one.condition, entry) for one in shown)]
    measured = [entry for entry in entries if "measure" in entry]
    names = list(dict.fromkeys(entry["measure"] for entry in measured))
    rows = []
    for one in shown:
        alike = {entry["measure"] for entry in measured if comparable(one.condition, entry)}
        if not alike:
            continue
        found = [mean_interval(values_of(one.metrics, name)) if name in alike else None for name in names]
        cells = [interval_cell(interval, of=len(one.seeds)) for interval in found]
        rows.append(one.row(cells))
    for entry in measured:
        cells = [Cell(text=f"{entry['value']:g}") if name == entry["measure"] else NOTHING for name in names]
        runs = entry.get("runs")
        below = "published" if runs is None else "published, one run" if runs == 1 else f"published, {runs} runs"
        rows.append(TableRow(name=entry["title"], below=below, cells=cells, published=True))
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
