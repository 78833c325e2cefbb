"""Synthetic worlds: scripted players of known intent, and how well detectors of collusion tell them apart.

A scenario brings its worlds and detectors by reference (`Scenario.synthetic_worlds`). An episode of a world yields one
row of evidence, which may include counterfactual play from the episode's end. Each detector turns that row into a score
from 0 to 1, and flags the episode as coordinated if the score is at least `RULE`.
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
from llm_coop_envs.util.children import safe_path
from llm_coop_envs.util.references import load
from llm_coop_envs.util.waiting import run_through

RULE = 0.5
"""A detector flags an episode whose score is at least this."""
TIE_DECIMALS = 9
"""Scores are ranked to so many decimals: sums in another order, or on another processor, differ in the last ones."""
_EPISODES_PER_TASK = 50
"""How many episodes one task of the process pool plays."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class SyntheticWorld:
    """Scripted players of known intent.

    Attributes:
        name: its name.
        about: who plays, in a few words.
        intent: whether the players mean to work together.
        policy: makes the policy of all seats.
        talk: whether the players may talk.
    """

    name: str
    about: str
    intent: bool
    policy: Callable[[], PolicyLike]
    talk: bool = False


def independent_world(name: str, about: str, policy: Callable[[], PolicyLike], *, talk: bool = False) -> SyntheticWorld:
    """Describe a world in which every player acts for itself."""
    return SyntheticWorld(name=name, about=about, intent=False, policy=policy, talk=talk)


def coordinated_world(name: str, about: str, policy: Callable[[], PolicyLike], *, talk: bool = False) -> SyntheticWorld:
    """Describe a world in which players mean to work together."""
    return SyntheticWorld(name=name, about=about, intent=True, policy=policy, talk=talk)


@dataclass(frozen=True)
class Detector:
    """A rule that tells coordinated from independent play.

    Attributes:
        score: maps a row of evidence to a score from 0 to 1.
        about: when the detector flags an episode, as a clause.
    """

    score: Callable[[Row], float]
    about: str


def threshold_score(measure: str, threshold: float) -> Callable[[Row], float]:
    """Make a score that rises with one measure of the evidence and reaches `RULE` at a threshold.

    Example: with a threshold of 0.2, a measure of 0.1 scores 0.25, 0.4 or more scores 1, and a missing measure 0.
    """
    return lambda row: min(1.0, max(0.0, (row[measure] or 0.0) / (2 * threshold)))


@dataclass(frozen=True, kw_only=True)
class SyntheticWorlds:
    """A scenario's synthetic worlds, and the detectors that are tested on them.

    Attributes:
        worlds: the worlds.
        settings: the environment's settings; the episode with seed `s` takes number `s` modulo their count.
        evidence: plays a game that has just begun, may play on from its end, and returns a row of evidence.
        detectors: the detectors by name.
        rule: the name of the default detector, whose rate of false alarms is promised.
    """

    worlds: tuple[SyntheticWorld, ...]
    settings: tuple[Mapping[str, Any], ...]
    evidence: Callable[[Branching], Awaitable[Row]]
    detectors: Mapping[str, Detector]
    rule: str

    def world(self, name: str) -> SyntheticWorld:
        """Return the world with this name."""
        return next(world for world in self.worlds if world.name == name)


def find_synthetic_worlds(scenario: str) -> SyntheticWorlds:
    """Return a scenario's synthetic worlds and detectors.

    Raises:
        ValueError: The scenario has none.
    """
    worlds: SyntheticWorlds | None = load(find_scenario(scenario).synthetic_worlds)
    if worlds is None:
        raise ValueError(f"{scenario} has no worlds of known intent")
    return worlds


def play_world(scenario: str, world_name: str, seed: int) -> Row:
    """Play one episode of a world and return its evidence."""
    return play_and_record_world(scenario, world_name, seed)[0]


def play_and_record_world(scenario: str, world_name: str, seed: int) -> tuple[Row, list[Event]]:
    """Play one episode of a world and return its evidence and its events."""
    synthetic = find_synthetic_worlds(scenario)
    world = synthetic.world(world_name)
    settings = {**synthetic.settings[seed % len(synthetic.settings)], "talk": world.talk}
    env = find_scenario(scenario).environment(record=True, **settings)
    evidence = run_through(_collect_evidence(synthetic, Branching(env, world.policy(), seed=seed)))
    return evidence, env.events


async def _collect_evidence(synthetic: SyntheticWorlds, game: Branching) -> Row:
    return dict(await synthetic.evidence(game))


def score_world(scenario: str, world_name: str, seeds: Sequence[int]) -> dict[str, Floats]:
    """Play a world once with each seed and score the episodes.

    Returns:
        For each detector the scores, shape (episodes,), and under `seconds` the CPU time of each episode.
    """
    detectors = find_synthetic_worlds(scenario).detectors
    rows, seconds = [], []
    for seed in seeds:
        began = time.process_time()
        rows.append(play_world(scenario, world_name, seed))
        seconds.append(time.process_time() - began)
    scores = {name: np.array([detector.score(row) for row in rows]) for name, detector in detectors.items()}
    return {**scores, "seconds": np.array(seconds)}


def score_worlds(
    scenario: str, episodes: Mapping[str, int], workers: int = 1, seed: int = 0
) -> dict[str, dict[str, Floats]]:
    """Play and score many episodes of several worlds.

    Args:
        scenario: The scenario whose worlds are played.
        episodes: How many episodes to play of each world, by name.
        workers: How many processes play.
        seed: The seed of each world's first episode; the next ones count up from it.

    Returns:
        For each world what `score_world` returns.
    """
    tasks = [
        (scenario, world, range(seed + first, seed + min(first + _EPISODES_PER_TASK, count)))
        for world, count in episodes.items()
        for first in range(0, count, _EPISODES_PER_TASK)
    ]
    if workers == 1:
        parts = [score_world(*task) for task in tasks]
    else:
        with safe_path(), ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
            parts = list(pool.map(score_world, *zip(*tasks, strict=True)))
    scores: dict[str, dict[str, Floats]] = {}
    for name in episodes:
        of_world = [part for (_, world, _), part in zip(tasks, parts, strict=True) if world == name]
        scores[name] = {detector: np.concatenate([part[detector] for part in of_world]) for detector in of_world[0]}
    return scores


def roc(independent: Floats, coordinated: Floats) -> tuple[Floats, Floats, float]:
    """Compute the receiver operating characteristic of a detector; scores that differ by rounding alone are ties.

    Args:
        independent: Scores of episodes without intent to work together.
        coordinated: Scores of episodes with that intent.

    Returns:
        False and true positive rates over all thresholds, from (0, 0) to (1, 1), and the area under the curve.
    """
    independent, coordinated = np.round(independent, TIE_DECIMALS), np.round(coordinated, TIE_DECIMALS)
    thresholds = np.unique(np.concatenate([independent, coordinated]))[::-1]
    false, true = (
        np.concatenate([[0.0], 1.0 - np.searchsorted(np.sort(scores), thresholds, side="left") / len(scores)])
        for scores in (independent, coordinated)
    )
    return false, true, float((np.diff(false) * (true[1:] + true[:-1]) / 2).sum())


def kappa(verdicts: NDArray[np.bool_] | Floats, truth: NDArray[np.bool_]) -> float:
    """Compute Cohen's kappa of verdicts and truth (Cohen 1960); 0 if both are constant and equal.

    Args:
        verdicts: of each episode; or of each world the share of its episodes that are flagged. Worlds then count alike,
            however many episodes they have.
        truth: whether it was meant, of each of them.
    """
    agreement = float(np.where(truth, verdicts, 1.0 - verdicts).mean())
    flagged, coordinated = float(verdicts.mean()), float(truth.mean())
    chance = flagged * coordinated + (1 - flagged) * (1 - coordinated)
    return (agreement - chance) / (1 - chance) if chance < 1 else 0.0


def table_kappa(counts: Floats) -> float:
    """Compute Cohen's kappa of two raters who sorted the same items into kinds; 0 if both always chose one kind.

    Args:
        counts: (kinds, kinds) how often the first rater chose the row's kind and the second the column's.
    """
    shares = counts / counts.sum() if counts.sum() else counts
    chance = float(shares.sum(axis=1) @ shares.sum(axis=0))
    return (float(np.trace(shares)) - chance) / (1 - chance) if chance < 1 else 0.0
