"""When a condition is no result of its model: too many of its answers could not be read."""

from __future__ import annotations

from collections.abc import Mapping

from llm_coop_envs.runs.folder import Run
from llm_coop_envs.storage.parquet import read_rows

#: The share of fallbacks, or of unreadable answers, above which a condition is no result of its model.
INVALID_ABOVE = 0.05


def why_invalid(calls: Mapping[str, Mapping[str, float]], threshold: float = INVALID_ABOVE) -> str:
    """Why a condition is invalid; empty if it is not.

    Args:
        calls: by kind of call the counts `asked`, `requests`, `fallbacks` and `unreadable`.
        threshold: the share above which it is.
    """
    names = ("asked", "requests", "fallbacks", "unreadable")
    whole = {name: sum(counts[name] for counts in calls.values()) for name in names}
    parts = [("of all decisions", whole), *((f"of '{call}'", counts) for call, counts in sorted(calls.items()))]
    for what, counts in parts:
        if passes(counts["fallbacks"], counts["asked"], threshold):
            share = share_text(counts["fallbacks"], counts["asked"])
            return f"{share} {what} were taken by a fallback, because no answer could be read"
    for what, counts in parts:
        if passes(counts["unreadable"], counts["requests"], threshold):
            return f"{share_text(counts['unreadable'], counts['requests'])} of the answers ({what[3:]}) were unreadable"
    return ""


def passes(part: float, whole: float, threshold: float) -> bool:
    """Whether a share is above a threshold; nothing of nothing is not."""
    return whole > 0 and part / whole > threshold


def share_text(part: float, whole: float) -> str:
    """A share in per cent, as texts show it."""
    share = part / whole
    return f"{share:.0%}" if share >= 0.1 or share == 0 else f"{share:.1%}" if share >= 0.001 else "under 0.1%"


def invalid_conditions(run: Run) -> dict[str, str]:
    """Why each invalid condition of a complete run is one, by its name."""
    path = run.folder / "answers.parquet"
    sums: dict[str, dict[str, dict[str, float]]] = {}
    for row in read_rows(path) if path.is_file() else ():
        counts = sums.setdefault(row["condition"], {}).setdefault(row["call"], {})
        for name in ("asked", "requests", "fallbacks", "unreadable"):
            counts[name] = counts.get(name, 0) + (row.get(name) or 0)
    return {condition: why for condition, calls in sums.items() if (why := why_invalid(calls))}
