"""The scorecard's questions and tasks on the evacuation."""

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
"""In a gathering this many people are tested, the first ones. The others follow a fixed script."""
AFTER = 2
"""The round from which the others go to another exit than they announced before."""


def room(rng: np.random.Generator) -> dict[str, Any]:
    """Draw a small room with three exits, without talk."""
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
    """Draw a room with six people who choose exits and are walked there."""
    return {**room(rng), "people": 6, "control": "exit"}


def gathering(rng: np.random.Generator) -> dict[str, Any]:
    """Draw a room with ten people who talk and choose an exit in every round, and hear everybody."""
    often = {"talk": True, "hearing_radius": 30.0, "replan_probability": 1.0}
    return {**crowd(rng), **often, "people": 10, "rounds": AFTER + 1}


def scripted_others(settings: Mapping[str, Any]) -> Mapping[str, Arm]:
    """Script the others: they announce and take the first exit; in the arm `forced` they switch to the second one."""

    def going(choice: int) -> Mapping[str, Any]:
        message = f"I am going to the {settings['exits'][choice][0]} exit."
        return {"name": "forced", "options": {"choice": choice, "message": message}}

    seats = {**{f"evacuee_{person}": TESTED for person in range(TESTED_PEOPLE)}, "all": going(0)}
    forced = {"from_round": AFTER, "players": f"evacuee_[!0-{TESTED_PEOPLE - 1}]", "policy": going(1)}
    return {"": Arm(seats=seats), "forced": Arm(seats=seats, changes=(forced,))}


def changed_share(played: Played) -> float:
    """Return the share of tested people whose last choice of an exit differs between the two arms."""

    def last(events: Sequence[Event]) -> list[int]:
        last_choice = dict(choice for round_ in rounds_of(events)[1] for choice in round_.choices)
        return [last_choice[person] for person in range(TESTED_PEOPLE)]

    return float(np.mean(np.not_equal(last(played[""]), last(played["forced"]))))


def questions(rng: np.random.Generator) -> Sequence[Item]:
    """Draw questions about a room and the way out."""
    drawn = {**room(rng), "people": 1, "rounds": int(rng.integers(20, 60)), "personas": "none"}
    env = EvacuationEnv(**drawn)
    env.begin(seed=int(rng.integers(2**31)))
    env.submit({"evacuee_0": {"choice": int(rng.integers(3))}})
    observation, info = (by_agent["evacuee_0"] for by_agent in env.look())
    slots, text = info["slots"], observation["text"]
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
        Item(told=text, asked=question, right=float(right), low=0, high=100, tolerance=near)
        for question, right, near in asks
    ]


def path_score(played: Played) -> float:
    """Return the fewest steps to the nearest exit over the steps made."""
    return float(episode_metrics(played[""])["path_score"])


def speed_score(played: Played) -> float:
    """Return the mean of the fewest rounds to the nearest exit over the rounds needed; 0 for people who stay inside."""
    start, rounds = rounds_of(played[""])
    cells = [cell for _, *cell in start["room"]["exits"]]
    # A person on an exit cell is counted out when the next round begins.
    fewest = [
        1 + min(max(abs(a - b) for a, b in zip(start_cell, cell, strict=True)) for cell in cells)
        for start_cell in start["positions"]
    ]
    out = {person: round_.number for round_ in rounds for person, _ in round_.settled["escaped"]}
    return float(np.mean([fewest[person] / out[person] if person in out else 0.0 for person in range(len(fewest))]))


SCORECARD = ScorecardTasks(
    questions=questions,
    tasks=(
        Task(
            name="alone",
            settings=lambda rng: {**room(rng), "people": 1},
            scores={COMPETENCE: path_score},
            best={COMPETENCE: 1.0},
            about={
                COMPETENCE: "One person: fewest steps to the nearest exit over the steps made; 0 for who is not out."
            },
        ),
        *without_and_with_talk(
            crowd,
            speed_score,
            MEASURES,
            {
                SILENT: "Fewest rounds to the nearest exit over the rounds taken, mean over six people; 0 if lost.",
                TALK: "The same with talk beforehand.",
                HONESTY: "Share of announced choices that were then made.",
            },
        ),
        Task(
            name="deviation",
            settings=gathering,
            arms=scripted_others,
            scores={DEVIATION: changed_share},
            about={
                DEVIATION: "Seven others announce one exit and change to another in the second round: share of three "
                "people who end up choosing another exit than in the same room where the seven keep to theirs."
            },
        ),
        in_other_words(
            lambda rng: {**crowd(rng), "people": 3, "rounds": 4},
            MEASURES,
            "Share of choices of exits that are the same in two of three wordings.",
        ),
    ),
)
