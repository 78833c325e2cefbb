"""Measures of the commons, from recorded events alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from commons.rules import gini, threshold
from llm_coop_envs.core.records import forced_players
from llm_coop_envs.core.scenario import PER_CENT, Event, Measures, MeasureWords, Row
from llm_coop_envs.interface.question import Number
from llm_coop_envs.statistics.intervals import FROM_0, SHARE, YES_OR_NO, Range


def round_rows(events: Sequence[Event]) -> list[Row]:
    """One row for each month: `round`, `pool` before it, units `taken`, `left`, their `gini`, the share `over_used`."""
    agents, forced, rows = events[0]["agents"], forced_players(events), []
    for event in events:
        if event["type"] == "round":
            taken = [units for units in event["taken"] if units is not None]
            left_out = forced.get(event["round"], ())
            own = [units for agent, units in zip(agents, event["taken"], strict=False) if agent not in left_out]
            own = [units for units in own if units is not None]
            bearable = threshold(event["pool"], len(taken))
            rows.append(
                {
                    "round": event["round"],
                    "pool": event["pool"],
                    "taken": sum(taken),
                    "left": event["left"],
                    "gini": gini(taken),
                    "over_used": sum(units > bearable for units in own) / len(own) if own else None,
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
        "share_of_best": units / best_units(rules),
        "gini": fmean(row["gini"] for row in rows),
        "over_used": fmean(shares) if (shares := [s for row in rows if (s := row["over_used"]) is not None]) else None,
    }


def best_units(rules: Mapping[str, Any]) -> int:
    """The most that can be taken: what lets a full pool grow back in each month but the last, and all of it then."""
    kept = max(rules["capacity"] - rules["capacity"] // 2, rules["collapse"])
    return rules["capacity"] + (rules["months"] - 1) * max(0, rules["capacity"] - kept)


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
        "share_of_best": "Units taken as a share of the most: what lets a full pool grow back, at last all.",
        "gini": "How unequal the takings of a month are, 0 to 1, averaged over months.",
        "over_used": "The share of takings above what the pool can bear, half of it shared evenly, over months; those "
        "that a study forces are left out.",
    },
    words={
        "months": MeasureWords(noun="the number of months with a harvest"),
        "survived": MeasureWords(noun="the share of pools that last", unit=PER_CENT),
        "units": MeasureWords(noun="the number of units taken"),
        "share_of_best": MeasureWords(noun="the share of the most that could be taken", unit=PER_CENT),
        "gini": MeasureWords(noun="the inequality of takings (0 to 1)"),
        "over_used": MeasureWords(noun="the share of takings above what the pool can bear", unit=PER_CENT),
        "pool": MeasureWords(noun="the pool"),
        "taken": MeasureWords(noun="the units taken"),
        "left": MeasureWords(noun="the units left"),
    },
    ranges={
        "months": lambda settings: Range(low=0, high=settings["months"], integer=True),
        "round": lambda settings: Range(low=1, high=settings["months"], integer=True),
        "survived": YES_OR_NO,
        "units": FROM_0,
        **dict.fromkeys(("gini", "over_used", "share_of_best"), SHARE),
        **dict.fromkeys(("pool", "taken", "left"), lambda settings: Range(low=0, high=settings["capacity"])),
    },
    asked=asked,
    forced="Forced takings are left out of over_used; the pool, and all that follows from it, has them.",
    nature={},
    headline=("months", "survived", "units", "over_used", "gini"),
)
