"""Measures of a quiz."""

from __future__ import annotations

from collections.abc import Sequence

from llm_coop_envs.core.records import of_type
from llm_coop_envs.core.scenario import Event, Measures, Row
from llm_coop_envs.statistics.intervals import COUNT, SHARE


def round_rows(events: Sequence[Event]) -> list[Row]:
    """Return one row for each question: `round`, `asked`, `answer`, `right` (the right answer) and `correct`."""
    names = ("round", "asked", "answer", "right", "correct")
    return [{name: event[name] for name in names} for event in of_type(events, "round")]


def episode_metrics(events: Sequence[Event]) -> Row:
    """Return an episode's measures."""
    rows = round_rows(events)
    correct = sum(row["correct"] for row in rows)
    return {"questions": len(rows), "right_share": correct / len(rows) if rows else None}


MEASURES = Measures(
    episode=episode_metrics,
    rounds=round_rows,
    about={
        "questions": "Questions that were asked, a count from 0.",
        "right_share": "Share of them that were answered rightly, 0 to 1; an illegal answer is wrong.",
    },
    ranges={"questions": COUNT, "right_share": SHARE},
    headline=("right_share",),
)
