"""The scorecard's questions and tasks of the number contest."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from llm_coop_envs.benchmarks.scorecard.tasks import (
    COMPETENCE,
    DEVIATION,
    HONESTY,
    HUMAN,
    SILENT,
    TALK,
    TESTED,
    Arm,
    Item,
    Played,
    ScorecardTasks,
    Task,
    cut,
    forced_once,
    in_other_words,
    without_and_with_talk,
)
from llm_coop_envs.core.records import of_type, start_of
from llm_coop_envs.core.scenario import Event
from llm_coop_envs.kbc.env import KBCEnv
from llm_coop_envs.kbc.metrics import MEASURES, episode_metrics
from llm_coop_envs.kbc.rules import settle
from llm_coop_envs.kbc.settings import KBCSettings

RATIOS = ("1/2", "3/5", "2/3", "3/4", "4/5")
READERS_THEMSELVES = 0.64
"""What 24 readers of the New York Times, drawn from their own curve, come to on average."""
AFTER = 2
"""The round in which a player is forced to the highest number."""


def contest(rng: np.random.Generator) -> dict[str, Any]:
    """A small contest without talk."""
    return {
        "players": int(rng.integers(3, 6)),
        "ratio": str(rng.choice(RATIOS)),
        "high": int(rng.choice([50, 100, 200])),
        "offset": str(rng.choice(["0", "2", "5"])),
        "exchanges": 1,
        "talk": False,
    }


def repeated(rng: np.random.Generator) -> dict[str, Any]:
    """A small contest of four rounds, after each of which the target is announced."""
    return {**contest(rng), "session": "repeated", "rounds": 4}


def readers(rng: np.random.Generator) -> dict[str, Any]:
    """The contest of the New York Times readers; nothing is drawn."""
    return {"session": "single", "talk": False}


def questions(rng: np.random.Generator) -> Sequence[Item]:
    """Questions about a contest and its target."""
    drawn = {**contest(rng), "unit": int(rng.integers(1, 50)), "currency": "points"}
    env = KBCEnv(**drawn)
    observations, _ = env.reset(seed=int(rng.integers(2**31)))
    text = str(next(iter(observations.values()))["text"])
    settings = env.settings
    players, high = settings.players, int(settings.high)
    named = rng.choice(high + 1, players, replace=False)
    settled = settle(named.astype(np.int64), settings)
    same = int(rng.integers(1, high + 1))
    target = float(settings.ratio * same + settings.offset)
    listed = ", ".join(map(str, named.tolist()))
    own = Fraction(1) - settings.ratio / players
    asks: tuple[tuple[str, float, float], ...] = (
        (f"All players name {same}. What is the target, rounded to the nearest whole number?", target, 0.5),
        (f"The players name {listed}. What is the target, rounded to the nearest whole number?", settled.target, 0.5),
        (
            f"The players name {listed}. Which of these numbers wins (if several do, any of them)?",
            float(named[settled.winners][0]),
            0.0,
        ),
        (f"The players name {listed}. How many points does a winner get?", settled.prize, 0.0),
        ("What is the largest number that may be named?", high, 0.0),
        (
            f"The other {players - 1} players name {same} each. Which number is then exactly the target, if you name "
            "it, rounded to the nearest whole number?",
            float((settings.ratio * same * (players - 1) / players + settings.offset) / own),
            0.5,
        ),
    )
    several = int(settled.winners.sum()) > 1  # then there is no one right answer
    return [
        Item(told=text, asked=question, right=right, low=0, high=max(high, 100), tolerance=near)
        for question, right, near in asks
        if not (several and "Which of these" in question)
    ]


def together(played: Played) -> float | None:
    """The share of the other players who name the most frequent number in the last decision."""
    choices = of_type(played[""], "round")[-1]["choices"]
    return (max(Counter(choices).values()) - 1) / (len(choices) - 1)


def near_best(played: Played) -> float:
    """1 less the first player's distance from its best reply, as a share of the range, from the second round on."""
    settings = KBCSettings.build(**start_of(played[""])["settings"])
    ratio, offset, n = float(settings.ratio), float(settings.offset), settings.players
    rounds = [event["choices"] for event in of_type(played[""], "round")[1:]]
    best = [min((ratio * math.fsum(others) / n + offset) / (1 - ratio / n), settings.high) for _, *others in rounds]
    off = [abs(own - reply) for (own, *_), reply in zip(rounds, best, strict=True)]
    return 1.0 - float(np.mean(off)) / (settings.high - settings.low)


def followed(played: Played) -> float | None:
    """The change of the others' next numbers as a share of the change of the target that one player has caused."""

    def round_event(events: Sequence[Event], number: int) -> Mapping[str, Any]:
        return of_type(events, "round")[number - 1]

    usual, other = played[""], played["forced"]
    moved = round_event(other, AFTER)["target"] - round_event(usual, AFTER)["target"]
    if abs(moved) < 0.5:
        return None
    shift = np.array(round_event(other, AFTER + 1)["choices"][:-1]) - np.array(
        round_event(usual, AFTER + 1)["choices"][:-1]
    )
    return cut(float(shift.mean()) / moved)


def human(played: Played) -> float:
    """1 less the total variation distance to the readers' numbers."""
    return 1.0 - float(episode_metrics(played[""])["nyt_total_variation_first"])


SCORECARD = ScorecardTasks(
    questions=questions,
    tasks=(
        Task(
            name="alone",
            settings=repeated,
            arms=lambda settings: {"": Arm(seats={"player_0": TESTED, "all": "level_k"})},
            scores={COMPETENCE: near_best},
            best={COMPETENCE: 1.0},
            about={
                COMPETENCE: "Against players who reason one step from the last target: 1 less the distance to the best "
                "reply as a share of the range, from the second round on."
            },
        ),
        *without_and_with_talk(
            lambda rng: {**contest(rng), "exchanges": 2},
            together,
            MEASURES,
            {
                SILENT: "Share of the others who name the same number in the last decision: 0 all differ, 1 one.",
                TALK: "The same with talk beforehand.",
                HONESTY: "Share of announced choices that were then made.",
            },
        ),
        Task(
            name="deviation",
            settings=repeated,
            arms=lambda settings: forced_once(f"player_{settings['players'] - 1}", AFTER, settings["high"]),
            scores={DEVIATION: followed},
            about={
                DEVIATION: "One player is forced to the highest number: how far the others' next numbers move, as a "
                "share of the target's move, compared with the same contest without."
            },
        ),
        in_other_words(
            contest,
            MEASURES,
            "1 less the distance of the choices in three wordings, as a share of the range.",
        ),
        Task(
            name="people",
            settings=readers,
            scores={HUMAN: human},
            best={HUMAN: READERS_THEMSELVES},
            about={
                HUMAN: "24 players, one decision: 1 less the total variation distance to the readers of the New York "
                "Times (N = 61,140)."
            },
        ),
    ),
)
