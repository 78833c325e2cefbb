"""Measures of the commons, from recorded events alone."""

from __future__ import annotations

from collections import Counter
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
            pools, remaining = as_list(event["pool"]), as_list(event["left"])
            game = event.get("game", [0] * len(agents))
            present = [i for i, units in enumerate(event["taken"]) if units is not None]
            sizes = Counter(game[i] for i in present)
            bearable = [threshold(pool, sizes[k]) if sizes[k] else 0 for k, pool in enumerate(pools)]
            taken, left_out = [event["taken"][i] for i in present], forced.get(event["round"], ())
            beyond = [event["taken"][i] > bearable[game[i]] for i in present if agents[i] not in left_out]
            rows.append(
                {
                    "round": event["round"],
                    "pool": fmean(pools),
                    "taken": sum(taken),
                    "left": fmean(remaining),
                    "gini": gini(taken),
                    "over_used": fmean(beyond) if beyond else None,
                }
            )
    return rows


def as_list(units: int | Sequence[int]) -> Sequence[int]:
    """The units of each pool, of which there may be one."""
    return [units] if isinstance(units, int) else units


def episode_metrics(events: Sequence[Event]) -> Row:
    """The measures of one episode, see `MEASURES.about`."""
    rules, rows = events[0]["settings"], round_rows(events)
    if not rows:
        return {}
    units = sum(row["taken"] for row in rows)
    months = [event for event in events if event["type"] == "round"]
    pools = len(as_list(months[-1]["pool"]))
    lasted = sum(pool > 0 for month in months for pool in as_list(month["pool"]))
    alive = [left >= rules["collapse"] for left in as_list(months[-1]["left"])]
    return {
        "months": lasted if pools == 1 else lasted / pools,
        "survived": fmean(alive) if len(rows) == rules["months"] else 0.0,
        "units": units,
        "share_of_best": units / (pools * best_units(rules)),
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
        "months": "Months in which there was something to harvest, the one in which the pool collapsed included; mean "
        "over pools.",
        "survived": "Whether the pool outlasted all months; the share of several pools that did, 0 to 1.",
        "units": "Units taken by all.",
        "share_of_best": "Units taken as a share of the most: what lets a full pool grow back, at last all.",
        "gini": "How unequal the takings of a month are, 0 to 1, averaged over months.",
        "over_used": "The share of takings above what the pool can bear, half of it shared evenly, averaged over "
        "months; those that a study forces are left out.",
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
        "months": lambda settings: Range(low=0, high=settings["months"], integer=not settings.get("group_size")),
        "round": lambda settings: Range(low=1, high=settings["months"], integer=True),
        "survived": lambda settings: SHARE if settings.get("group_size") else YES_OR_NO,
        "units": FROM_0,
        **dict.fromkeys(("gini", "over_used", "share_of_best"), SHARE),
        **dict.fromkeys(("pool", "taken", "left"), lambda settings: Range(low=0, high=settings["capacity"])),
    },
    asked=asked,
    forced="Forced takings are left out of over_used; the pool, and all that follows from it, has them.",
    nature={},
    headline=("months", "survived", "units", "over_used", "gini"),
)
