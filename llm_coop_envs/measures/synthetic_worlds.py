"""Planted truth: scripted worlds of known intent, and how well detectors tell them apart.

A scenario brings its worlds and detectors by reference (`Scenario.planted`). Every episode of a world is played in one
of its settings, some evidence is taken of it, also by playing on from its end, and each detector makes a score of the
evidence. The default rule says that players work together where the score is at least `RULE`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.policy import PolicyLike
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.core.scenario import Event, Row
from llm_coop_envs.policies.branching import Branching
from llm_coop_envs.util.references import load
from llm_coop_envs.util.waiting import run_through

RULE = 0.5
"""From which score on the default rule says that players work together."""
_AT_ONCE = 50

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class PlantedWorld:
    """Players of known intent.

    Attributes:
        name: its name.
        about: who plays, in some words.
        intent: whether they mean to work together.
        policy: makes who sits in all seats.
        talk: whether they may talk.
    """

    name: str
    about: str
    intent: bool
    policy: Callable[[], PolicyLike]
    talk: bool = False


def honest(name: str, about: str, policy: Callable[[], PolicyLike], *, talk: bool = False) -> PlantedWorld:
    """A world in which nobody means to work together."""
    return PlantedWorld(name=name, about=about, intent=False, policy=policy, talk=talk)


def meant(name: str, about: str, policy: Callable[[], PolicyLike], *, talk: bool = False) -> PlantedWorld:
    """A world in which players mean to."""
    return PlantedWorld(name=name, about=about, intent=True, policy=policy, talk=talk)


@dataclass(frozen=True)
class Detector:
    """What tells worlds apart.

    Attributes:
        score: a value from 0 to 1 of the evidence.
        about: what it looks at.
    """

    score: Callable[[Row], float]
    about: str


def score_of(name: str, threshold: float) -> Callable[[Row], float]:
    """A score that is one half at a threshold, of one number of the evidence; 0 where that is missing."""
    return lambda row: min(1.0, max(0.0, (row[name] or 0.0) / (2 * threshold)))


@dataclass(frozen=True, kw_only=True)
class Planted:
    """A scenario's worlds and detectors.

    Attributes:
        worlds: the worlds.
        settings: the settings that episodes are played in, in turn by their seeds.
        evidence: plays an episode that has just begun, and on from its end if it likes; what was found.
        detectors: the detectors, by name.
        rule: the one whose rate of false alarms is promised.
    """

    worlds: tuple[PlantedWorld, ...]
    settings: tuple[Mapping[str, Any], ...]
    evidence: Callable[[Branching], Awaitable[Row]]
    detectors: Mapping[str, Detector]
    rule: str

    def world(self, name: str) -> PlantedWorld:
        """The world of a name."""
        return next(world for world in self.worlds if world.name == name)


def planted_of(scenario: str) -> Planted:
    """A scenario's worlds and detectors.

    Raises:
        ValueError: it has none.
    """
    found: Planted | None = load(find_scenario(scenario).planted)
    if found is None:
        raise ValueError(f"{scenario} has no worlds of known intent")
    return found


def play_world(scenario: str, world: str, seed: int) -> Row:
    """Play one episode of a world; the evidence."""
    return world_played(scenario, world, seed)[0]


def world_played(scenario: str, world: str, seed: int) -> tuple[Row, list[Event]]:
    """Play one episode of a world; the evidence, and the events."""
    planted = planted_of(scenario)
    one = planted.world(world)
    settings = {**planted.settings[seed % len(planted.settings)], "talk": one.talk}
    env = find_scenario(scenario).environment(record=True, **settings)
    return run_through(_gather(planted, Branching(env, one.policy(), seed=seed))), env.events


async def _gather(planted: Planted, game: Branching) -> Row:
    return dict(await planted.evidence(game))


def score_world(scenario: str, world: str, seeds: Sequence[int]) -> dict[str, Floats]:
    """The scores of a world's episodes, (episodes,) by detector, and their CPU `seconds`."""
    planted = planted_of(scenario)
    rows, seconds = [], []
    for seed in seeds:
        began = time.process_time()
        rows.append(play_world(scenario, world, seed))
        seconds.append(time.process_time() - began)
    scores = {name: np.array([one.score(row) for row in rows]) for name, one in planted.detectors.items()}
    return {**scores, "seconds": np.array(seconds)}


def score_worlds(
    scenario: str, episodes: Mapping[str, int], workers: int = 1, seed: int = 0
) -> dict[str, dict[str, Floats]]:
    """The scores of many episodes of some worlds, by world and detector, and their CPU `seconds`.

    Args:
        scenario: whose worlds.
        episodes: how many of each world, by name.
        workers: how many processes.
        seed: of the first episode of each; the others count on.
    """
    tasks = [
        (scenario, world, range(seed + first, seed + min(first + _AT_ONCE, count)))
        for world, count in episodes.items()
        for first in range(0, count, _AT_ONCE)
    ]
    if workers == 1:
        parts = [score_world(*task) for task in tasks]
    else:
        with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            parts = list(pool.map(score_world, *zip(*tasks, strict=True)))
    found: dict[str, dict[str, Floats]] = {}
    for name in episodes:
        mine = [part for (_, world, _), part in zip(tasks, parts, strict=True) if world == name]
        found[name] = {detector: np.concatenate([part[detector] for part in mine]) for detector in mine[0]}
    return found


def roc(honest: Floats, planted: Floats) -> tuple[Floats, Floats, float]:
    """The receiver operating characteristic of some scores.

    Args:
        honest: scores where nobody means to work together.
        planted: scores where they do.

    Returns:
        False and true positive rates over all thresholds, from (0, 0) to (1, 1), and the area under the curve.
    """
    cuts = np.unique(np.concatenate([honest, planted]))[::-1]
    false, true = (
        np.concatenate([[0.0], 1.0 - np.searchsorted(np.sort(scores), cuts, side="left") / len(scores)])
        for scores in (honest, planted)
    )
    return false, true, float((np.diff(false) * (true[1:] + true[:-1]) / 2).sum())


def kappa(verdicts: NDArray[np.bool_], truth: NDArray[np.bool_]) -> float:
    """Cohen's kappa of verdicts and truth (Cohen 1960); 0 where both are of one kind."""
    agreed = float((verdicts == truth).mean())
    yes, real = float(verdicts.mean()), float(truth.mean())
    chance = yes * real + (1 - yes) * (1 - real)
    return (agreed - chance) / (1 - chance) if chance < 1 else 0.0


def cohen(table: Floats) -> float:
    """Cohen's kappa of two who sorted the same into kinds; 0 where both are of one kind.

    Args:
        table: (kinds, kinds) how often the first said the row's kind and the second the column's.
    """
    shares = table / table.sum() if table.sum() else table
    chance = float(shares.sum(axis=1) @ shares.sum(axis=0))
    return (float(np.trace(shares)) - chance) / (1 - chance) if chance < 1 else 0.0
