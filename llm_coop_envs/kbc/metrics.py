"""Measures of a contest, from choices or from recorded events.

Measures of Wu et al. 2024 ("Shall We Team Up" and its first version "Shall We Talk"): the population variance of the
choices at each k, %RSD, and whether everyone named the same number. Their rate of working together was judged by hand
from the talk and is not computed here. The other measures describe the same choices: the share on the most frequent
number, the depth of reasoning, and the distance to what newspaper readers named (their figure 5).
"""

from __future__ import annotations

import functools
import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.records import flagged_choices, forced_players, of_type, start_of
from llm_coop_envs.core.scenario import Event, Measures, SettingsRange
from llm_coop_envs.interface.question import Number
from llm_coop_envs.kbc.reference import comparable, distances
from llm_coop_envs.kbc.settings import KBCSettings
from llm_coop_envs.kbc.words import WORDS
from llm_coop_envs.statistics.intervals import COUNT, FROM_0, SHARE, YES_OR_NO, Range

MAX_LEVEL = 10.0


def variance(choices: NDArray[Any]) -> float:
    """The population variance (divisor n) of one round's choices, as in Wu et al. 2024, figure 4."""
    values = np.asarray(choices, dtype=np.float64)
    deviations = values - np.add.reduce(values) / len(values)  # as np.var, in a third of its time for few players
    return float(np.add.reduce(deviations * deviations) / len(values))


def relative_deviation(spread: float, mean: float) -> float | None:
    """The relative standard deviation in percent: 100 x square root of the variance / |mean|.

    0/0 counts as 0, as in the first program of Wu et al. 2024 ("Shall We Talk"). `None` if the mean is 0 but the
    choices differ, which takes a range with negative numbers.
    """
    if spread == 0:
        return 0.0
    return 100 * math.sqrt(spread) / abs(mean) if mean else None


def modal(choices: NDArray[Any]) -> tuple[float, float]:
    """The most frequent number (the smallest of several) and the share of players who named exactly it."""
    counts = Counter(choices.tolist())
    highest_count = max(counts.values())
    return min(number for number, count in counts.items() if count == highest_count), highest_count / len(choices)


def levels(choices: NDArray[Any], settings: KBCSettings) -> NDArray[np.float64] | None:
    """The level of reasoning of each choice: the steps that separate it from a naive choice.

    A player of level 0 names the middle m = (low + high) / 2 on average, one of level k the reply ratio x (the
    number of level k-1) + offset. With the fixed point e = offset / (1 - ratio), level k names e + (m - e) ratio^k;
    solved for k this gives every number a level, integer or not: log((x - e) / (m - e)) / log(ratio), the depth of
    reasoning of Nagel 1995 ("Unraveling in Guessing Games") with the middle as its starting point. Levels are cut to
    [0, 10]: numbers on the naive side of m count as 0, numbers at or beyond e as 10 (with two thirds and 0 to 100,
    the number 1 has level 9.6).

    Args:
        choices: (n,) numbers.
        settings: the contest.

    Returns:
        (n,) levels; `None` where levels are undefined: with ratio 1, or where the middle is its own best reply.
    """
    if settings.ratio == 1:
        return None
    point = float(settings.offset / (1 - settings.ratio))
    start = (settings.low + settings.high) / 2 - point
    if start == 0:
        return None
    relative = (np.asarray(choices, dtype=np.float64) - point) / start
    beyond = MAX_LEVEL if settings.ratio < 1 else 0.0
    level = np.full(relative.shape, beyond)
    inside = relative > 0
    level[inside] = np.log(relative[inside]) / np.log(float(settings.ratio))
    cut: NDArray[np.float64] = np.minimum(np.maximum(level, 0.0), MAX_LEVEL)
    return cut


def mean_level(choices: NDArray[Any], settings: KBCSettings) -> float | None:
    """The mean of `levels` over the players."""
    level_by_player = levels(choices, settings)
    return None if level_by_player is None else float(level_by_player.mean())


def _settings(start: Mapping[str, Any]) -> KBCSettings:
    """The settings of a `start` event, from memory where another episode had the same: checking them takes long."""
    return _checked(json.dumps(start["settings"], sort_keys=True))


@functools.lru_cache(maxsize=64)
def _checked(settings: str) -> KBCSettings:
    return KBCSettings.build(**json.loads(settings))


def round_rows(events: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One row for each settled round of a recorded episode.

    Returns:
        Rows of JSON scalars: `round` (k from 0 in nested sessions, else from 1), `players` (those who took part),
        `messages` (since the round before), `mean`, `median`, `minimum`, `maximum`, `variance`, `rsd` (percent),
        `modal_number`,
        `modal_share`, `unanimous`, `target`, `n_winners` (players), `prize` (of each), `mean_level`,
        `nyt_wasserstein` and `nyt_total_variation` (`None` unless the contest is the readers': see
        `reference.comparable`), `choices` (a JSON list in the players' order, null for who has left), `group_numbers`
        (a JSON list, or `None`). `mean` is that of the players' choices, in group play too.
    """
    settings = _settings(start_of(events))
    rows: list[dict[str, Any]] = []
    messages = 0
    for event in events:
        if event["type"] == "message":
            messages += 1
        elif event["type"] == "round":
            rows.append(_row(event, settings, messages))
            messages = 0
    return rows


def episode_metrics(events: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One episode in numbers.

    Returns:
        JSON scalars as `MEASURES.about` defines them; those of the first and last decision are `None` if none was
        settled, or a study forces all of its numbers: another decision does not stand for it.
    """
    settings = _settings(start_of(events))
    rounds = of_type(events, "round")
    chosen = {event["round"]: event for event in chosen_rounds(events)}
    players = len(start_of(events)["agents"])
    paid = math.fsum(len(event["winners"]) * event["prize"] for event in rounds)
    row: dict[str, Any] = {
        "decisions": len(rounds),
        "players": players,
        "messages": len(of_type(events, "message")),
        "reward_mean": paid / players,
    }
    for end, settled in (("first", rounds[:1]), ("last", rounds[-1:])):
        own = [_decision(chosen[event["round"]], settings) for event in settled if event["round"] in chosen]
        row.update({f"{name}_{end}": own[0][name] if own else None for name in _ENDS})
    return row


def without_flagged(events: Sequence[Event]) -> list[Event] | None:
    """Flagged numbers are left out of their decisions, and decisions without any other.

    Target and prize stay, because they were made from all numbers.
    """
    unflagged = _without(events, flagged_choices(events))
    return unflagged if of_type(unflagged, "round") else None


def chosen_rounds(events: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The settled decisions, without numbers that a study forces and without decisions of which nothing is left."""
    forced = forced_players(events)
    return of_type(_without(events, forced) if forced else events, "round")


def _without(events: Sequence[Mapping[str, Any]], players: Mapping[int, Collection[str]]) -> list[dict[str, Any]]:
    """Leave numbers out of their decisions, told whose in which round, and decisions without any other."""
    agents = start_of(events)["agents"]
    kept: list[Event] = []
    for event in events:
        if event["type"] == "round" and (bad := players.get(event["round"])):
            numbers = zip(agents, event["choices"], strict=True)
            choices = [None if agent in bad else number for agent, number in numbers]
            if all(number is None for number in choices):
                continue
            event = {**event, "choices": choices, "winners": [i for i in event["winners"] if choices[i] is not None]}
        kept.append(dict(event))
    return kept


def questions_by_agent(start: Mapping[str, Any]) -> dict[str, Number]:
    """The question that each player answers, by the player's name."""
    return dict.fromkeys(start["agents"], _settings(start).number_question)


# Measures of a single decision, which are reported for the first and the last decision of an episode.
_ENDS = {
    "mean": "Mean of the players' numbers, within the range of the settings",
    "target": "Number to come nearest to: the ratio times the mean (or the median, or the largest number, where the "
    "settings say so), plus the offset",
    "variance": "Population variance of the players' numbers, from 0 (Wu et al. 2024, figure 4)",
    "rsd": "Population standard deviation over the absolute mean, per cent from 0 (Wu et al. 2024, first version)",
    "modal_share": "Share of the players who named the most frequent number, above 0 to 1",
    "unanimous": "Whether all named the same number (Wu et al. 2024)",
    "n_winners": "Players who were nearest to the target, a count from 0",
    "mean_level": "Mean number of steps of reasoning from the middle of the range, cut to 0 to 10 (Nagel 1995)",
    "nyt_wasserstein": "First Wasserstein distance to what newspaper readers named, in numbers from 0 (Wu et al. 2024, "
    "figure 5); missing in other contests than theirs",
    "nyt_total_variation": "Total variation from what newspaper readers named, smoothed, 0 to 1 (Wu et al. 2024, "
    "figure 5); missing in other contests than theirs",
}


def choice_range(settings: Mapping[str, Any]) -> Range:
    """What numbers and their means can be."""
    return Range(low=settings["low"], high=settings["high"])


def target_range(settings: Mapping[str, Any]) -> Range:
    """What the target can be, which is made from the mean."""
    contest = _settings({"settings": settings})
    ends = [float(contest.ratio * end + contest.offset) for end in (contest.low, contest.high)]
    return Range(low=min(ends), high=max(ends))


def variance_range(settings: Mapping[str, Any]) -> Range:
    """What the variance can be: it is largest where half of the players name each end of the range."""
    return Range(low=0.0, high=((settings["high"] - settings["low"]) / 2) ** 2)


def _players(settings: Mapping[str, Any]) -> Range:
    return Range(low=0.0, high=settings["players"], integer=True)


_FORCED = ", without numbers that a study forces"
# What the measures in `_ENDS` can be.
_END_RANGES: Mapping[str, Range | SettingsRange] = {
    "mean": choice_range,
    "target": target_range,
    "variance": variance_range,
    "rsd": FROM_0,
    "modal_share": SHARE,
    "unanimous": YES_OR_NO,
    "n_winners": _players,
    "mean_level": Range(low=0.0, high=MAX_LEVEL),
    "nyt_wasserstein": Range(low=0.0, high=100.0),
    "nyt_total_variation": SHARE,
}


def present_choices(event: Mapping[str, Any]) -> NDArray[Any]:
    """The numbers of one decision in the players' order, without players who had left."""
    choices: list[Any] = event["choices"]
    return np.asarray([number for number in choices if number is not None] if None in choices else choices)


def _decision(event: Mapping[str, Any], settings: KBCSettings) -> dict[str, Any]:
    """The measures in `_ENDS` of one decision, and the most frequent number."""
    choices = present_choices(event)
    mean, spread, (number, share) = float(choices.mean()), variance(choices), modal(choices)
    far, moved = distances(choices) if comparable(settings) else (None, None)
    return {
        "mean": mean,
        "variance": spread,
        "rsd": relative_deviation(spread, mean),
        "modal_number": number,
        "modal_share": share,
        "unanimous": share == 1.0,
        "target": event["target"],
        "n_winners": len(event["winners"]),
        "mean_level": mean_level(choices, settings),
        "nyt_wasserstein": far,
        "nyt_total_variation": moved,
    }


def _row(event: Mapping[str, Any], settings: KBCSettings, messages: int) -> dict[str, Any]:
    choices, groups = present_choices(event), event["group_numbers"]
    measures = _decision(event, settings)
    return {
        "round": event["round"],
        "players": len(choices),
        "messages": messages,
        "mean": measures["mean"],
        "median": float(np.median(choices)),
        "minimum": choices.min().item(),
        "maximum": choices.max().item(),
        **{name: measures[name] for name in ("variance", "rsd", "modal_number", "modal_share", "unanimous")},
        **{name: measures[name] for name in ("target", "n_winners")},
        "prize": event["prize"],
        **{name: measures[name] for name in ("mean_level", "nyt_wasserstein", "nyt_total_variation")},
        "choices": json.dumps(event["choices"]),
        "group_numbers": None if groups is None else json.dumps(groups),
    }


MEASURES = Measures(
    episode=episode_metrics,
    rounds=round_rows,
    nature={},
    about={
        "decisions": "Decisions that were settled, a count from 0.",
        "players": "Players at the beginning of the contest, a count from 2.",
        "messages": "Messages that were sent in the episode, a count from 0.",
        "reward_mean": "What a player won in all, mean over all who began, in points from 0.",
        **{
            f"{name}_{end}": f"{text}; {end} decision{_FORCED if name != 'target' else ''}."
            for name, text in _ENDS.items()
            for end in ("first", "last")
        },
    },
    ranges={
        "decisions": COUNT,
        "players": _players,
        "messages": COUNT,
        "reward_mean": FROM_0,
        **{f"{name}_{end}": declared for name, declared in _END_RANGES.items() for end in ("first", "last")},
        # Those of rounds alone.
        **_END_RANGES,
        "round": COUNT,
        "median": choice_range,
        "minimum": choice_range,
        "maximum": choice_range,
        "modal_number": choice_range,
        "prize": FROM_0,
    },
    words=WORDS,
    headline=("variance_last", "mean_last", "mean_first", "unanimous_last"),
    unflagged=without_flagged,
    forced="Forced numbers are left out of the measures, so that nothing is measured of a decision in which all are "
    "forced; means and targets that players see have them.",
    asked=questions_by_agent,
)
