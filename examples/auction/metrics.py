"""Measures of the auction, from recorded events alone."""

from collections.abc import Sequence
from math import fsum

from llm_coop_envs.core.scenario import PER_CENT, Event, Measures, MeasureWords, Row
from llm_coop_envs.statistics.intervals import FROM_0, SHARE


def round_rows(events: Sequence[Event]) -> list[Row]:
    """One row for each round: `round`, `price` (0 if not sold), `sold`, and the `highest_value` of all."""
    values = {event["round"]: event["drawn"] for event in events if event["type"] == "nature"}
    return [
        {"round": e["round"], "price": e["price"], "sold": bool(e["winner"]), "highest_value": max(values[e["round"]])}
        for e in events
        if e["type"] == "round"
    ]


def episode_metrics(events: Sequence[Event]) -> Row:
    """The measures of one episode, see `MEASURES.about`."""
    rows = round_rows(events)
    revenue, worth = fsum(row["price"] for row in rows), fsum(row["highest_value"] for row in rows)
    return {"revenue_share": revenue / worth if worth else 0.0, "sold": sum(row["sold"] for row in rows) / len(rows)}


REVENUE = MeasureWords(noun="the share of the highest value that the seller gets", unit=PER_CENT)
SOLD = MeasureWords(noun="the share of rounds in which the thing is sold", unit=PER_CENT)
MEASURES = Measures(
    episode=episode_metrics,
    rounds=round_rows,
    about={
        "revenue_share": "What the seller got in all rounds, as a share of the highest value of each.",
        "sold": "The share of rounds in which the thing was sold.",
    },
    words={"revenue_share": REVENUE, "sold": SOLD},
    ranges={"sold": SHARE, "revenue_share": FROM_0, "price": FROM_0},
    nature={},
    headline=("revenue_share", "sold"),
)
