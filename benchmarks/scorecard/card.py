"""The scorecard: a player's scores in the suite, computed from a run's events alone.

There is one line for each tendency of each scenario. A score belongs to an episode, or to the episodes of all arms with
one seed. The unit of intervals is the set of parameters, because its seeds are no independent draws of parameters.
Lines are not averaged, because they measure different things.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from llm_coop_envs.benchmarks.scorecard.suite import HELD_OUT, PUBLIC, Part, Suite, scorecard_task_files, suite_of
from llm_coop_envs.benchmarks.scorecard.tasks import COMPETENCE, LEGALITY, TENDENCIES, TESTED, UNDERSTANDING
from llm_coop_envs.core.scenario import Event
from llm_coop_envs.errors import RunError
from llm_coop_envs.measures import information, process
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.provenance import hash_of_files
from llm_coop_envs.runs.unread import INVALID_ABOVE
from llm_coop_envs.statistics import intervals as statistics
from llm_coop_envs.statistics.intervals import Interval, mean_interval, share_interval
from llm_coop_envs.storage.folder import digest_of, plain_json
from llm_coop_envs.studies.conditions import seat_matches
from llm_coop_envs.util.opening import DAMAGED, read_file

FORMAT = 1
SUITE = "bench"
"""The key of the preregistration in a run's manifest."""
CARD, TABLE, CHECK = "scorecard.json", "scorecard.md", "check"
SPLITS = 1000
SKILLS = (UNDERSTANDING, LEGALITY, COMPETENCE)
"""Tendencies in which an episode with illegal play scores 0. In all others it has no score."""


def analysis_hash() -> str:
    """Return a hash of the code that computes scores from events."""
    own = Path(__file__).parent.glob("*.py")
    return hash_of_files(
        *own, *scorecard_task_files(), *(Path(str(module.__file__)) for module in (information, process, statistics))
    )


def make_card(run: Run) -> dict[str, Any]:
    """Compute the scorecard of a run, as plain data.

    Raises:
        RunError: It is no run of the suite, or of another version; or episodes are missing or damaged.
    """
    preregistration = run.manifest.get(SUITE)
    if preregistration is None:
        raise RunError(f"{run.folder}: is no run of the scorecard's suite; 'llm-coop bench' plays it")
    try:
        suite = suite_of(preregistration)
    except RunError as error:
        raise RunError(f"{run.folder}: {error}") from error
    if suite.study.digest != run.manifest["digest"] or preregistration["study"] != run.manifest["digest"]:
        raise RunError(f"{run.folder}: what was played is not what the suite makes of its held-out seed")
    if len(run.finished()) < run.total:
        raise RunError(
            f"{run.folder}: has {len(run.finished())} of {run.total} episodes; continue it with 'llm-coop bench' first"
        )
    return plain_json({"format": FORMAT, **preregistration, "lines": _lines(run, suite)})


def read_card(path: Path) -> dict[str, Any]:
    """Read a scorecard from its file or from a run folder.

    Raises:
        RunError: There is none, or it was changed since it was written.
    """
    file = path / CARD if path.is_dir() else path
    try:
        card: dict[str, Any] = json.loads(read_file(file).decode())
        check = card.pop(CHECK)
        _ = card["lines"], card["sha256"], card["references"]
    except OSError as error:
        raise RunError(f"{file}: is no scorecard ({error.strerror}); 'llm-coop bench' makes one") from error
    except DAMAGED as error:
        raise RunError(f"{file}: is no scorecard ({type(error).__name__}); 'llm-coop bench' makes one") from error
    if check != digest_of(card):
        raise RunError(
            f"{file}: was changed since it was written; 'llm-coop verify' says how, 'llm-coop bench' remakes it"
        )
    return {**card, CHECK: check}


def _lines(run: Run, suite: Suite) -> list[dict[str, Any]]:
    """Compute all lines, in the order of the tendencies."""
    scored: dict[tuple[str, str], list[tuple[str, str, int, float | None]]] = {}
    legal: dict[tuple[str, str], list[float]] = {}
    about: dict[tuple[str, str], str] = {}
    for part in suite.parts:
        for seed in part.seeds:
            played = {arm: run.read_events(part.condition(arm), seed)[1] for arm in part.arms}
            share = _legal_share(part, played)
            for tendency, value in _scores(part, played, share):
                key = tendency, part.scenario
                scored.setdefault(key, []).append((part.half, part.name, seed, value))
                legal.setdefault(key, []).append(share)
                about[key] = part.task.about.get(tendency, TENDENCIES[tendency])
    understood = {
        scenario: float(np.mean([value or 0.0 for *_, value in rows]))
        for (tendency, scenario), rows in scored.items()
        if tendency == UNDERSTANDING
    }
    order = list(TENDENCIES)
    return [
        _line(key, scored[key], legal[key], understood.get(key[1]), about[key])
        for key in sorted(scored, key=lambda key: (order.index(key[0]), key[1]))
    ]


def _scores(part: Part, played: Mapping[str, Sequence[Event]], legal: float) -> Iterator[tuple[str, float | None]]:
    """Yield the scores of an episode, by tendency.

    If too many choices were illegal, skills score 0 and other tendencies have no score (`None`). Questions about the
    rules are scored anyway, since an illegal answer is a wrong one.
    """
    failed = legal < 1 - INVALID_ABOVE
    for tendency, score in part.task.scores.items():
        if tendency == UNDERSTANDING or not failed:
            yield tendency, score(played)
        else:
            yield tendency, 0.0 if tendency in SKILLS else None
    if part.plays == part.scenario:
        yield LEGALITY, legal


def _legal_share(part: Part, played: Mapping[str, Sequence[Event]]) -> float:
    """Return the share of legal choices of the tested player, in all arms, without choices that an arm forces."""
    flags = [
        bool(event["flags"])
        for name, arm in part.arms.items()
        for event in played[name]
        if event["type"] == "choice" and _is_tested(arm.seats, event["agent"])
        if not any(
            event["agent"] == change["players"] and event["round"] == change["from_round"] for change in arm.changes
        )
    ]
    return 1.0 - float(np.mean(flags)) if flags else 1.0


def _is_tested(seats: Mapping[str, Any], agent: str) -> bool:
    """Whether the tested player sits in a seat. An exact name goes before a pattern, and that before later patterns."""
    player = seats.get(
        agent, next((candidate for pattern, candidate in seats.items() if seat_matches(pattern, agent)), None)
    )
    return bool(player == TESTED)


def _line(
    key: tuple[str, str],
    rows: Sequence[tuple[str, str, int, float | None]],
    legal: Sequence[float],
    understood: float | None,
    about: str,
) -> dict[str, Any]:
    sets = _scored_sets(rows)
    interval = interval_of_sets(sets)
    halves = {
        half: interval_of_sets(_scored_sets([row for row in rows if row[0] == half])) for half in (PUBLIC, HELD_OUT)
    }
    lawful = float(np.mean(legal))
    return {
        "tendency": key[0],
        "scenario": key[1],
        "about": about,
        "score": None if interval is None else interval.mean,
        "low": None if interval is None else interval.low,
        "high": None if interval is None else interval.high,
        "episodes": len(rows),
        "scored": sum(map(len, sets)),
        **{half: None if half_interval is None else half_interval.mean for half, half_interval in halves.items()},
        "reliability": reliability(sets),
        "competency": lawful if understood is None else min(lawful, understood),
        "legal": lawful,
        "understanding": understood,
        "values": [[name, seed, value] for _, name, seed, value in rows],
    }


def by_set(values: Iterable[tuple[str, int, float | None]]) -> dict[str, dict[int, float]]:
    """Group scores by the name of the set of parameters and the seed; sets without a score are left out.

    Args:
        values: name, seed and score, `None` if there is none.
    """
    by_name: dict[str, dict[int, float]] = {}
    for name, seed, value in values:
        if value is not None:
            by_name.setdefault(name, {})[seed] = value
    return by_name


def _scored_sets(rows: Sequence[tuple[str, str, int, float | None]]) -> list[list[float]]:
    return [list(scores.values()) for scores in by_set(row[1:] for row in rows).values()]


def interval_of_sets(sets: Sequence[Sequence[float]]) -> Interval | None:
    """Return the mean of all scores, with an interval within 0 and 1 whose unit is the set of parameters.

    Sets are weighted by their numbers of scores, since some may be missing. One set has no interval.

    Args:
        sets: the scores of each set, in [0, 1], at least one each.
    """
    means = [float(np.mean(scores)) for scores in sets]
    if len(means) < 2:
        return mean_interval(means)
    return share_interval(means, [len(scores) for scores in sets])


def reliability(sets: Sequence[Sequence[float]]) -> float | None:
    """Return the split-half reliability: 1 less the mean absolute difference of the two halves' mean scores.

    The sets of parameters are split at random 1,000 times, always in the same ways; of an odd number one is left over.
    All seeds of a set fall into one half, since they share its parameters. `None` with fewer than four sets.

    Args:
        sets: the scores of each set, at least one each.
    """
    if len(sets) < 4:
        return None
    half = len(sets) // 2
    order = np.argsort(np.random.default_rng(0).random((SPLITS, len(sets))), axis=1)
    dealt = order[:, : 2 * half].reshape(SPLITS, 2, half)
    means, counts = np.array([np.mean(scores) for scores in sets]), np.array([len(scores) for scores in sets])
    first, second = np.average(means[dealt], axis=2, weights=counts[dealt]).T
    return 1.0 - float(np.abs(first - second).mean())
