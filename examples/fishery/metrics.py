"""Measures of the fishery, from recorded events alone."""

from collections.abc import Sequence
from math import fsum

from fishery.rules import sustainable_yield
from llm_coop_envs.core.scenario import PER_CENT, Event, Measures, MeasureWords, Row
from llm_coop_envs.statistics.intervals import FROM_0, YES_OR_NO, Range


def round_rows(events: Sequence[Event]) -> list[Row]:
    """One row for each season: `round`, `stock` before it, `catch` of all, `left` after growth (tons)."""
    seasons = [event for event in events if event["type"] == "round"]
    return [{"round": e["round"], "stock": e["stock"], "catch": fsum(e["catches"]), "left": e["left"]} for e in seasons]


def episode_metrics(events: Sequence[Event]) -> Row:
    """The measures of one episode, see `MEASURES.about`."""
    rules, rows = events[0]["settings"], round_rows(events)
    landed, last_stock = fsum(row["catch"] for row in rows), rows[-1]["left"] if rows else rules["capacity"]
    best = rules["capacity"] + rules["seasons"] * sustainable_yield(rules["growth"], rules["capacity"])
    return {
        "seasons": len(rows),
        "catch_total": landed,
        "share_of_best": landed / best,
        "collapsed": last_stock < rules["collapse"],
    }


MEASURES = Measures(
    episode=episode_metrics,
    rounds=round_rows,
    about={
        "seasons": "Seasons that were fished, at most as many as the settings say.",
        "catch_total": "Tons landed by all in the whole episode.",
        "share_of_best": "Tons landed, as a share of the first stock and the sustainable yield of every season.",
        "collapsed": "Whether the stock fell below the point from which nothing grows back.",
    },
    words={
        "seasons": MeasureWords(noun="the number of seasons with a catch"),
        "catch_total": MeasureWords(noun="the catch of all", unit="tons"),
        "share_of_best": MeasureWords(noun="the share of the best catch that is landed", unit=PER_CENT),
        "collapsed": MeasureWords(noun="the share of stocks that collapse", unit=PER_CENT),
    },
    ranges={
        "seasons": lambda settings: Range(low=0, high=settings["seasons"], integer=True),
        **dict.fromkeys(("catch_total", "share_of_best"), FROM_0),
        "collapsed": YES_OR_NO,
        # Those of seasons alone: no season begins or ends with more than the water holds, or lands more.
        "round": lambda settings: Range(low=1, high=settings["seasons"], integer=True),
        **dict.fromkeys(("stock", "catch", "left"), lambda settings: Range(low=0, high=settings["capacity"])),
    },
    forced="Forced catches count: they came out of the same stock.",
    nature={},  # nothing is drawn but the order of talk
    headline=("seasons", "share_of_best", "collapsed"),
)
