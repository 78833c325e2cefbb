"""The documentation's page on measured speed, written from the record that `make speed` keeps.

    python -m llm_coop_envs.benchmarks.doc_pages.performance > docs/performance.md

A test compares the page with what this prints.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.doc_pages.markdown import fill_template, table, versions_of
from llm_coop_envs.benchmarks.speed.figures import GROUPS
from llm_coop_envs.benchmarks.speed.harness import read_history

PROSE = Path(__file__).with_name("performance.md")


def page() -> str:
    """Return the page as Markdown: the prose, with the latest record of each figure in its tables."""
    history = read_history()
    latest = {name: record for record in history for name in record["figures"]}
    newest = history[-1]["date"]
    tables = (_table(group, latest, newest) for group in GROUPS if any(_is_of(group, *item) for item in latest.items()))
    return fill_template(PROSE, {"COSTS": "\n\n".join(tables), "RECORDS": _records(history)})


def _is_of(group: str, name: str, record: Mapping[str, Any]) -> bool:
    """Whether a figure of a record belongs to a group, and was measured now."""
    figure = record["figures"][name]
    return figure["group"] == group and "now" in figure


def _table(group: str, latest: Mapping[str, Mapping[str, Any]], newest: str) -> str:
    """Return the figures of a group; those that the newest record does not have are given their date."""
    rows = []
    for name, record in latest.items():
        figure = record["figures"][name]
        if not _is_of(group, name, record):
            continue
        cost, ratio = figure["now"]["median"], figure.get("ratio")
        goal = GROUPS[group].goals.get(name)
        rows.append(
            [
                name if record["date"] == newest else f"{name} ({record['date']})",
                _digits(cost),
                f"{ratio['median']:.2f} ({ratio['min']:.2f} to {ratio['max']:.2f})" if ratio else "",
                "" if goal is None else f"{goal:g}" + ("" if cost <= goal else ", **missed**"),
            ]
        )
    return table([GROUPS[group].unit, "now", "ratio of pairs", "goal"], rows)


def _records(history: list[dict[str, Any]]) -> str:
    rows = []
    for record in history[-5:]:
        machine = record["machine"]
        about = f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.1f} at the end"
        commit = record["commit"][:8] + (" and changes" if record["changed"] else "")
        versions = f"Python {machine['python']}, {versions_of(machine)}"
        rows.append([record["date"], commit, (record["against"] or "")[:8], str(record["repeats"]), about, versions])
    return table(["date", "commit", "before", "pairs", "machine", "versions"], rows)


def _digits(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


if __name__ == "__main__":
    print(page(), end="")
