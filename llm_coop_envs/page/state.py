"""The state of a run as plain data for scripts."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from llm_coop_envs.page.known_runs import KnownRuns
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.util.keys import scrub


def describe_state(folder: Path) -> dict[str, Any]:
    """The state of the run in a folder.

    Args:
        folder: the run's folder; it is only read.

    Returns:
        `run`, `study`, `state`, counts of episodes (`finished`, `total`, `failed`, `in_play` with the share of their
        rounds), `seconds_left`, calls, tokens and cost with the `budget`, decisions (`asked`, `repaired`, `fallbacks`),
        `started`, `ended`, `why` the last session ended early, and the `parts` that play now.

    Raises:
        RunError: there is no run, or it cannot be read.
    """
    run = open_run(folder)
    known_runs = KnownRuns(folder)
    (name,) = known_runs.folders()
    summary = known_runs.summary(name)
    used = summary["used"]
    playing = {
        episode: about["share"] for live in summary["live"].values() for episode, about in live["playing"].items()
    }
    shares = [share for share in playing.values() if share is not None]
    sessions = run.manifest["sessions"]
    why = (sessions[-1].get("asked") or {}).get("why") if sessions else None
    priced = not used["answers"] or used["unpriced"] < used["answers"]
    return {
        "run": str(folder.absolute()),
        **{field: summary[field] for field in ("study", "state", "finished", "total")},
        "failed": len(run.failures()),
        "in_play": len(playing),
        "in_play_share": math.fsum(shares) / len(shares) if shares else None,
        "seconds_left": summary["left"],
        "calls": summary["calls"],
        "errors": summary["errors"],
        "tokens": used["prompt_tokens"] + used["completion_tokens"],
        "cost_usd": math.fsum((used["cost"], used["maybe_cost"])) if priced else None,
        "budget": summary["budget"],
        **summary["rates"],
        "started": summary["started"],
        "ended": summary["ended"],
        "why": scrub(str(why)) if why else None,
        "parts": sorted(summary["live"]),
    }
