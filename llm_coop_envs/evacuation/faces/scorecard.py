"""What the scorecard asks and plays of the evacuation."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from llm_coop_envs.benchmarks.scorecard.tasks import (
    COMPETENCE,
    DEVIATION,
    HONESTY,
    SILENT,
    TALK,
    TESTED,
    Arm,
    Item,
    Played,
    ScorecardTasks,
    Task,
    in_other_words,
    without_and_with_talk,
)
from llm_coop_envs.core.scenario import Event
from llm_coop_envs.evacuation.env import EvacuationEnv
from llm_coop_envs.evacuation.metrics import MEASURES, episode_metrics, rounds_of

TESTED_PEOPLE = 3
"""How many people of a gathering are tested, the first ones; what the others do is laid down."""
AFTER = 2
"""The round from which on the others go to another exit than they said before."""


def room(rng: np.random.Generator) -> dict[str, Any]:
    """A small room with three exits on its wall, without talk."""
    rows, cols = int(rng.integers(9, 13)), int(rng.integers(9, 13))
    return {
        "rows": rows,
        "cols": cols,
        "rounds": 20,
        "talk": False,
        "exits": [
            ["left", int(rng.integers(2, rows - 2)), 0],
            ["bottom", rows - 1, int(rng.integers(2, cols - 2))],
            ["right", int(rng.integers(2, rows - 2)), cols - 1],
        ],
    }


def crowd(rng: np.random.Generator) -> dict[str, Any]:
    """Some people in it, who choose their exits and are taken there."""
    return {**room(rng), "people": 6, "control": "exit"}


def gathering(rng: np.random.Generator) -> dict[str, Any]:
    """Ten people who talk and choose anew in every round; everybody hears all."""
    often = {"talk": True, "hearing_radius": 30.0, "replan_probability": 1.0}
    return {**crowd(rng), **often, "people": 10, "rounds": AFTER + 1}


def others_go(settings: Mapping[str, Any]) -> Mapping[str, Arm]:
    """The others say that they go to the first exit and do, or change to the second one on the way and say so."""

    def going(choice: int) -> Mapping[str, Any]:
        message = f"I am going to the {settings['exits'][choice][0]} exit."
        return {"name": "forced", "options": {"choice": choice, "message": message}}

    seats = {**{f"evacuee_{person}": TESTED for person in range(TESTED_PEOPLE)}, "all": going(0)}
    forced = {"from_round": AFTER, "players": f"evacuee_[!0-{TESTED_PEOPLE - 1}]", "policy": going(1)}
    return {"": Arm(seats=seats), "forced": Arm(seats=seats, changes=(forced,))}


def changed(played: Played) -> float:
    """The share of the tested people whose last choice of an exit is not the same in both arms."""

    def last(events: Sequence[Event]) -> list[int]:
        found = dict(choice for one in rounds_of(events)[1] for choice in one.choices)
        return [found[person] for person in range(TESTED_PEOPLE)]

    return float(np.mean(np.not_equal(last(played[""]), last(played["forced"]))))


def questions(rng: np.random.Generator) -> Sequence[Item]:
    """Questions about a room and the way out."""
    drawn = {**room(rng), "people": 1, "rounds": int(rng.integers(20, 60)), "personas": "none"}
    env = EvacuationEnv(**drawn)
    env.begin(seed=int(rng.integers(2**31)))
    env.submit({"evacuee_0": {"choice": int(rng.integers(3))}})
    observation, info = (found["evacuee_0"] for found in env.look())
    slots, told = info["slots"], observation["text"]
    row, col = slots.target_cell
    straight = math.hypot(row - slots.row, col - slots.col)
    asks: tuple[tuple[str, float, float], ...] = (
        ("After how many rounds is it too late?", slots.rounds, 0.0),
        ("How many exits does the room have?", 3, 0.0),
        ("At which row do you stand?", slots.row, 0.0),
        ("At which column do you stand?", slots.col, 0.0),
        (
            "How many steps do you need at least to the cell of the exit that you are heading for?",
            max(abs(row - slots.row), abs(col - slots.col)),
            0.0,
        ),
        (
            "How far away, in a straight line, is the cell of the exit that you are heading for, in cells, rounded to "
            "the nearest whole number?",
            straight,
            0.5,
        ),
    )
    return [
        Item(told=told, asked=asked, right=float(right), low=0, high=100, tolerance=near) for asked, right, near in asks
    ]


def path(played: Played) -> float:
    """The fewest steps to the nearest exit over the steps made."""
    return float(episode_metrics(played[""])["path_score"])


def speed(played: Played) -> float:
    """For everybody the fewest rounds to the nearest exit over the rounds taken, 0 for who does not get out; mean."""
    start, rounds = rounds_of(played[""])
    cells = [cell for _, *cell in start["room"]["exits"]]
    # Whoever reaches an exit cell is counted out when the next round begins.
    fewest = [
        1 + min(max(abs(a - b) for a, b in zip(place, cell, strict=True)) for cell in cells)
        for place in start["positions"]
    ]
    out = {person: one.number for one in rounds for person, _ in one.settled["escaped"]}
    return float(np.mean([fewest[person] / out[person] if person in out else 0.0 for person in range(len(fewest))]))


SCORECARD = ScorecardTasks(
    questions=questions,
    tasks=(
        Task(
            name="alone",
            settings=lambda rng: {**room(rng), "people": 1},
            scores={COMPETENCE: path},
            about={
                COMPETENCE: "One person: fewest steps to the nearest exit over the steps made; 0 for who is not out."
            },
        ),
        *without_and_with_talk(
            crowd,
            speed,
            MEASURES,
            {
                SILENT: "Fewest rounds to the nearest exit over the rounds taken, mean over six people; 0 if lost.",
                TALK: "The same with talk before exits are chosen.",
                HONESTY: "Share of announced exits that were then chosen.",
            },
        ),
        Task(
            name="deviation",
            settings=gathering,
            arms=others_go,
            scores={DEVIATION: changed},
            about={
                DEVIATION: "Seven others say that they go to one exit, and from the second round on go to another: "
                "share of three people whose last choice of an exit is not the one of the same room where the others "
                "keep to theirs, be it that they follow the others or make way for them."
            },
        ),
        in_other_words(
            lambda rng: {**crowd(rng), "people": 3, "rounds": 4},
            MEASURES,
            "Share of choices of exits that are the same in two of three wordings.",
        ),
    ),
)
