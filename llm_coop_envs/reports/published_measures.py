"""Tables of measures that papers report, beside the same measures of a run's conditions."""

from __future__ import annotations

from typing import Any

from llm_coop_envs.reports.page_parts import NOTHING, Cell, ReportTable, TableRow
from llm_coop_envs.reports.section import ScenarioSection, is_shown_beside


def published_tables(section: ScenarioSection[Any]) -> list[ReportTable]:
    """Put the conditions beside published values of the same game, from `measures` in `published.json`.

    An entry has a `title`, a `source`, the conditions it is `comparable` with, the studies it `concerns`, and a
    `measure` with its `value`. In place of the last two it may have a finding in `words`, which becomes a note.
    """
    source, arms = section.source, section.conditions
    entries = [
        entry
        for entry in section.scenario.published.get("measures", ())
        if any(is_shown_beside(arm.condition, entry, source) for arm in arms)
    ]
    if not entries:
        return []
    measured = [entry for entry in entries if "measure" in entry]
    names = list(dict.fromkeys(entry["measure"] for entry in measured))
    rows = []
    for arm in arms:
        shared = {entry["measure"] for entry in measured if is_shown_beside(arm.condition, entry, source)}
        if shared:
            rows.append(arm.row([section.mean_cell(arm, name) if name in shared else NOTHING for name in names]))
    published: dict[tuple[str, int | None], dict[str, float]] = {}
    for entry in measured:
        published.setdefault((entry["title"], entry.get("runs")), {})[entry["measure"]] = entry["value"]
    for (title, runs), values in published.items():
        cells = [Cell(text=f"{values[name]:g}") if name in values else NOTHING for name in names]
        below = "published" if runs is None else "published, one run" if runs == 1 else f"published, {runs} runs"
        rows.append(TableRow(name=title, below=below, cells=cells, published=True))
    titles_by_text: dict[str, list[str]] = {}
    for entry in entries:
        titles_by_text.setdefault(entry.get("words", entry["source"]), []).append(entry["title"])
    return [
        ReportTable(
            title="Published measures" if names else "Published findings",
            head=["", *names],
            rows=rows,
            notes=[
                *(f"{'; '.join(dict.fromkeys(titles))}: {text}." for text, titles in titles_by_text.items()),
                *(f"{name}: {text}" for name in names if (text := section.scenario.measured.define(name))),
            ],
        )
    ]
