"""How a run shows itself in a notebook: conditions, players, finished episodes and means of the headline measures."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Mapping, Sequence
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from llm_coop_envs.core.scenario import Row
from llm_coop_envs.storage.parquet import read_rows
from llm_coop_envs.studies.conditions import Condition

MOST_CONDITIONS = 20
HEADINGS = ("condition", "scenario", "players", "episodes", "means")


def run_html(
    folder: Path, manifest: Mapping[str, Any], conditions: Sequence[Condition], finished: set[tuple[str, int]]
) -> str:
    """A run as a small HTML table with a row for each of its first conditions; all texts are escaped.

    Args:
        folder: the run folder.
        manifest: the run's manifest.
        conditions: the run's conditions.
        finished: the finished episodes, as (condition, seed).
    """
    rows = _read_episode_rows(folder)
    lines = []
    for condition in conditions[:MOST_CONDITIONS]:
        condition_rows = [row for row in rows if row["condition"] == condition.name]
        means = []
        for measure in condition.spec.measured.headline:
            values = [row[measure] for row in condition_rows if row.get(measure) is not None]
            if values:
                means.append(f"{measure} {statistics.fmean(values):.4g}")
        finished_count = sum((condition.name, seed) in finished for seed in condition.seeds)
        cells = (
            condition.name,
            condition.scenario,
            ", ".join(condition.policies),
            f"{finished_count} of {len(condition.seeds)}",
            ", ".join(means),
        )
        lines.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    omitted = len(conditions) - MOST_CONDITIONS
    headings = "".join(f"<th>{heading}</th>" for heading in HEADINGS)
    total = sum(len(condition.seeds) for condition in conditions)
    return (
        f"<p><b>{escape(manifest['study'])}</b>: {len(finished)} of {total} episodes, in "
        f"<code>{escape(str(folder))}</code></p><p>{escape(manifest['description'])}</p>"
        f"<table><tr>{headings}</tr>{''.join(lines)}</table>"
        f"{f'<p>and {omitted} more conditions</p>' if omitted > 0 else ''}"
    )


def _read_episode_rows(folder: Path) -> list[Row]:
    """The rows of the table of episodes; none if it is missing, damaged, or pyarrow is not installed."""
    path = folder / "episodes.parquet"
    with contextlib.suppress(OSError, ValueError):
        if path.is_file() and find_spec("pyarrow"):
            return read_rows(path)
    return []
