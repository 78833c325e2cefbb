"""Measures of the commons, from recorded events alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from commons.rules import gini, threshold
from llm_coop_envs.core.scenario import Event, Measures, MeasureWords, Row
from llm_coop_envs.interface.question import Number
from llm_coop_envs.statistics.intervals import FROM_0, SHARE, YES_OR_NO, Range


def round_rows(events: Sequence[Event]) -> list[Row]:
    """One row for each month: `round`, `pool` before it, units `taken`, `left`, their `gini`, the share `over_used`."""
    rows = []
    for event in events:
        if event["type"] == "round":
            taken = [units for units in event["taken"] if units is not None]
            bearable = threshold(event["pool"], len(taken))
            rows.append(
                {
                    "round": event["round"],
                    "pool": event["pool"],
                    "taken": sum(taken),
                    "left": event["left"],
                    "gini": gini(taken),
                    "over_used": sum(units > bearable for units in taken) / len(taken),
                }
            )
    return rows


def episode_metrics(events: Sequence[Event]) -> Row:
    """The measures of one episode, see `MEASURES.about`."""
    rules, rows = events[0]["settings"], round_rows(events)
    if not rows:
        return {}
    units = sum(row["taken"] for row in rows)
    return {
        "months": len(rows),
        "survived": len(rows) == rules["months"] and rows[-1]["left"] >= rules["collapse"],
        "units": units,
        "share_of_best": units
        / (rules["months"] * (rules["capacity"] // 2) + rules["capacity"] - rules["capacity"] // 2),
        "gini": fmean(row["gini"] for row in rows),
        "over_used": fmean(row["over_used"] for row in rows),
    }


def asked(start: Mapping[str, Any]) -> dict[str, Number]:
    """What each villager is asked."""
    question = Number(name="harvest", low=0, high=start["settings"]["capacity"], integer=True, counted=True)
    return dict.fromkeys(start["agents"], question)


MEASURES = Measures(
    episode=episode_metrics,
    rounds=round_rows,
    about={
        "months": "Months that were harvested, the one in which the pool collapsed included.",
        "survived": "Whether the pool outlasted all months.",
        "units": "Units taken by all.",
        "share_of_best": "Units taken as a share of the most: half a full pool in each month, all of it in the last.",
        "gini": "How unequal the takings of a month are, 0 to 1, averaged over months.",
        "over_used": "The share of takings above what the pool can bear, half of it shared evenly, over months.",
    },
    words={"over_used": MeasureWords(noun="the share of takings above what the pool can bear", unit="%")},
    ranges={
        "months": lambda settings: Range(low=0, high=settings["months"], integer=True),
        "round": lambda settings: Range(low=1, high=settings["months"], integer=True),
        "survived": YES_OR_NO,
        "units": FROM_0,
        **dict.fromkeys(("gini", "over_used", "share_of_best"), SHARE),
        **dict.fromkeys(("pool", "taken", "left"), lambda settings: Range(low=0, high=settings["capacity"])),
    },
    asked=asked,
    nature={},
    headline=("months", "survived", "units", "over_used", "gini"),
)
