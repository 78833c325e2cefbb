"""Which conditions of a complete run are no result of their model: too many of their answers could not be read."""

from __future__ import annotations

from llm_coop_envs.runs.folder import Run
from llm_coop_envs.storage.parquet import read_rows
from llm_coop_envs.util.invalid import why_invalid


def invalid_conditions(run: Run) -> dict[str, str]:
    """Why each invalid condition of a complete run is one, by its name."""
    path = run.folder / "answers.parquet"
    sums: dict[str, dict[str, dict[str, float]]] = {}
    for row in read_rows(path) if path.is_file() else ():
        counts = sums.setdefault(row["condition"], {}).setdefault(row["call"], {})
        for name in ("asked", "requests", "fallbacks", "unreadable"):
            counts[name] = counts.get(name, 0) + (row.get(name) or 0)
    return {condition: why for condition, calls in sums.items() if (why := why_invalid(calls))}
