"""A run's episodes as a table: seed, state, headline measures, cost, fallbacks; filtered, sorted, page by page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_coop_envs.errors import RunError
from llm_coop_envs.page.agents import integer
from llm_coop_envs.page.episodes import Episodes, Indexing
from llm_coop_envs.page.known_runs import KnownRuns

MOST_PAGE = 500
_COLUMNS = ("condition", "seed", "state", "cost", "tokens", "fallbacks")

Row = dict[str, Any]


def list_episodes(known_runs: KnownRuns, episodes: Episodes, query: Mapping[str, str]) -> dict[str, Any]:
    """A page of a run's episodes.

    Args:
        known_runs: the runs.
        episodes: what is read of their journals.
        query: `run`; filters `condition`, `state` and `search` (words that condition, seed and state contain); `sort`,
            a column or measure, with `-` before it for the largest first; `first` and `most`.

    Raises:
        RunError: there is no such run or condition.
    """
    name = query.get("run", "")
    condition = query.get("condition", "")
    if condition and condition not in {arm.name for arm in known_runs.run(name).conditions}:
        raise RunError(f"{name}: has no condition '{condition}'")
    rows, unread, reading = all_rows(known_runs, episodes, name)
    words = query.get("search", "").lower().split()
    state = query.get("state", "")
    shown = [
        row
        for row in rows
        if (not condition or row["condition"] == condition)
        and (not state or row["state"] == state)
        and all(word in f"{row['condition']} {row['title']} {row['seed']} {row['state']}".lower() for word in words)
    ]
    sort = query.get("sort", "")
    if sort:
        shown = sort_rows(shown, sort)
    first, count = integer(query, "first", 0), min(integer(query, "most", 50), MOST_PAGE)
    return {
        "total": len(shown),
        "first": first,
        "rows": shown[first : first + count],
        "unread": unread,
        "reading": reading,
    }


def all_rows(known_runs: KnownRuns, episodes: Episodes, name: str) -> tuple[list[Row], int, str]:
    """All episodes of a run with their cost; how many are unread, and how far the journal was read if it is being."""
    run = known_runs.run(name)
    rows, unread = known_runs.episode_rows(name)
    costs: Mapping[str, tuple[float | None, int]] = {}
    reading = ""
    if run.manifest["models"]:
        try:
            costs = episodes.costs(run)
        except Indexing as progress:
            reading = str(progress)
    for row in rows:
        row["cost"], row["tokens"] = costs.get(f"{row['condition']}/{row['seed']}", (None, None))
    return rows, unread, reading


def sort_rows(rows: list[Row], sort: str) -> list[Row]:
    """Sort by a column or a measure, with `-` before it for the largest first; rows without a value come last."""
    column = sort.removeprefix("-")

    def value_of(row: Row) -> Any:
        return row[column] if column in _COLUMNS else row["measures"].get(column)

    present = [row for row in rows if value_of(row) is not None]
    missing = [row for row in rows if value_of(row) is None]
    return [*sorted(present, key=value_of, reverse=sort.startswith("-")), *missing]
