"""How a run shows itself in a notebook: what was played, how far it is, and the means of the headline measures."""

from __future__ import annotations

import contextlib
import statistics
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING

from llm_coop_envs.core.scenario import Row
from llm_coop_envs.storage.parquet import read_rows

if TYPE_CHECKING:
    from llm_coop_envs.runs.folder import Run

MOST_CONDITIONS = 20


def run_html(run: Run) -> str:
    """A run as a small table, with a row for each of its first conditions; all texts are escaped."""
    there, rows = run.finished(), _played(run)
    lines = []
    for condition in run.conditions[:MOST_CONDITIONS]:
        mine = [row for row in rows if row["condition"] == condition.name]
        means = []
        for measure in condition.spec.measured.headline:
            values = [row[measure] for row in mine if row.get(measure) is not None]
            if values:
                means.append(f"{measure} {statistics.fmean(values):.4g}")
        done = sum((condition.name, seed) in there for seed in condition.seeds)
        cells = (
            condition.name,
            condition.scenario,
            ", ".join(condition.policies),
            f"{done} of {len(condition.seeds)}",
            ", ".join(means),
        )
        lines.append("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>")
    more = len(run.conditions) - MOST_CONDITIONS
    heads = "".join(f"<th>{one}</th>" for one in ("condition", "scenario", "players", "episodes", "means"))
    return (
        f"<p><b>{escape(run.manifest['study'])}</b>: {len(there)} of {run.total} episodes, in "
        f"<code>{escape(str(run.folder))}</code></p><p>{escape(run.manifest['description'])}</p>"
        f"<table><tr>{heads}</tr>{''.join(lines)}</table>{f'<p>and {more} more conditions</p>' if more > 0 else ''}"
    )


def _played(run: Run) -> list[Row]:
    """The rows of the run's episodes, where its tables are there and can be read."""
    path = run.folder / "episodes.parquet"
    with contextlib.suppress(OSError, ValueError):
        if path.is_file() and find_spec("pyarrow"):
            return read_rows(path)
    return []
