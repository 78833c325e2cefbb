"""Measures of the dilemmas, from recorded events alone."""

from collections.abc import Mapping, Sequence
from typing import Any

from dilemma.env import DilemmaSettings
from dilemma.games import mean
from llm_coop_envs.core.records import forced_players
from llm_coop_envs.core.scenario import PER_CENT, Event, Measures, MeasureWords, Row
from llm_coop_envs.statistics.intervals import SHARE, Range


def round_rows(events: Sequence[Event]) -> list[Row]:
    """One row for each round: `round`, the share `cooperative` of actions and the mean `payoff`, of the unforced."""
    forced, rows = forced_players(events), []
    for event in events:
        if event["type"] == "round":
            left_out = forced.get(event["round"], ())
            own = [i for i, agent in enumerate(events[0]["agents"]) if agent not in left_out]
            if own:
                actions, payoffs = ([event[name][i] for i in own] for name in ("actions", "payoffs"))
                cooperative = actions.count(0) / len(actions)
                rows.append({"round": event["round"], "cooperative": cooperative, "payoff": mean(payoffs)})
    return rows


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
        "cooperative": "The share of a round's actions that are cooperative, without those that a study forces, 0 to "
        "1; mean over rounds.",
        "payoff": "The payoff of a player in a round, without players whom a study forces in it; mean over rounds.",
        "gain": "Where the mean payoff lies between all competing (0) and all cooperating (1).",
    },
    ranges={
        "cooperative": SHARE,
        "payoff": payoff_range,
        "round": lambda settings: Range(low=1, high=settings["rounds"], integer=True),
    },
    nature={},
    forced="Players are left out of the measures of rounds in which they are forced.",
    words={
        "cooperative": MeasureWords(noun="the share of cooperative actions", unit=PER_CENT),
        "payoff": MeasureWords(noun="the mean payoff of a player in a round"),
        "gain": MeasureWords(noun="the gain from cooperation (0 if all compete, 1 if all cooperate)"),
    },
    headline=("cooperative", "payoff", "gain"),
)
