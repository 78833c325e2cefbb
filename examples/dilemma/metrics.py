"""Measures of the dilemmas, from recorded events alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from dilemma.env import DilemmaSettings
from dilemma.games import mean
from llm_coop_envs.core.scenario import PER_CENT, Event, Measures, MeasureWords, Row
from llm_coop_envs.statistics.intervals import SHARE, Range


def round_rows(events: Sequence[Event]) -> list[Row]:
    """One row for each round: `round`, the share `cooperative` of actions, and the mean `payoff`."""
    return [
        {"round": e["round"], "cooperative": e["actions"].count(0) / len(e["actions"]), "payoff": mean(e["payoffs"])}
        for e in events
        if e["type"] == "round"
    ]


def episode_metrics(events: Sequence[Event]) -> Row:
    """The measures of one episode, see `MEASURES.about`. Where all cooperating gains nothing there is only `payoff`."""
    rows = round_rows(events)
    if not rows:
        return {}
    payoff = mean([row["payoff"] for row in rows])
    competing, cooperating = DilemmaSettings.from_json(events[0]["settings"]).ends
    if cooperating <= competing:
        return {"payoff": payoff}
    share = (payoff - competing) / (cooperating - competing)
    return {"cooperative": mean([row["cooperative"] for row in rows]), "payoff": payoff, "gain": share}


def payoff_range(settings: Mapping[str, Any]) -> Range:
    """The lowest and the highest payoff."""
    low, high = DilemmaSettings.from_json(settings).extremes
    return Range(low=low, high=high)


MEASURES = Measures(
    episode=episode_metrics,
    rounds=round_rows,
    about={
        "cooperative": "The share of cooperative actions among those of all players and rounds, 0 to 1.",
        "payoff": "The mean payoff of a player in a round.",
        "gain": "Where the mean payoff lies between all competing (0) and all cooperating (1).",
    },
    ranges={
        "cooperative": SHARE,
        "payoff": payoff_range,
        "round": lambda settings: Range(low=1, high=settings["rounds"], integer=True),
    },
    nature={},
    words={"cooperative": MeasureWords(noun="the share of cooperative actions", unit=PER_CENT)},
    headline=("cooperative", "payoff", "gain"),
)
