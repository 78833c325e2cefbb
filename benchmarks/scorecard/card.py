"""The scorecard: what a player came to in the suite, made from a run's events and nothing else.

One line for each tendency of each scenario. A score belongs to an episode (of all arms together, where a task has
several); the unit of intervals is the set of parameters, whose seeds are no independent draws of what is asked. Lines
are not averaged: they are about different things.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from llm_coop_envs.benchmarks.scorecard.suite import HELD_OUT, PUBLIC, Part, Suite, scorecard_task_files, suite_of
from llm_coop_envs.benchmarks.scorecard.tasks import COMPETENCE, LEGALITY, TENDENCIES, TESTED, UNDERSTANDING
from llm_coop_envs.core.scenario import Event
from llm_coop_envs.errors import RunError
from llm_coop_envs.measures import information, process
from llm_coop_envs.reports.answers import INVALID_ABOVE
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.provenance import hash_of_files
from llm_coop_envs.statistics import intervals as statistics
from llm_coop_envs.statistics.intervals import Interval, exact_interval, mean_interval
from llm_coop_envs.storage.folder import digest_of, plain_json
from llm_coop_envs.studies.conditions import seat_matches

FORMAT = 1
SUITE = "bench"
"""Under this name a run's manifest holds what was written down before anybody was asked."""
CARD, TABLE, CHECK = "scorecard.json", "scorecard.md", "check"
SPLITS = 1000
SKILLS = (UNDERSTANDING, LEGALITY, COMPETENCE)
"""Where illegal play counts as failure. Elsewhere such an episode shows no tendency of the player, and has no score."""


def analysis_hash() -> str:
    """A hash of the code that makes scores of events."""
    own = Path(__file__).parent.glob("*.py")
    return hash_of_files(
        *own, *scorecard_task_files(), *(Path(str(one.__file__)) for one in (information, process, statistics))
    )


def make_card(run: Run) -> dict[str, Any]:
    """The scorecard of a run, as plain data.

    Raises:
        RunError: it is no run of the suite, or of another version; or episodes are missing or damaged.
    """
    told = run.manifest.get(SUITE)
    if told is None:
        raise RunError(f"{run.folder}: is no run of the scorecard's suite; 'llm-coop bench' plays it")
    try:
        suite = suite_of(told)
    except RunError as error:
        raise RunError(f"{run.folder}: {error}") from error
    if suite.study.digest != run.manifest["digest"] or told["study"] != run.manifest["digest"]:
        raise RunError(f"{run.folder}: what was played is not what the suite makes of its held-out seed")
    if len(run.finished()) < run.total:
        raise RunError(
            f"{run.folder}: has {len(run.finished())} of {run.total} episodes; continue it with 'llm-coop bench' first"
        )
    return plain_json({"format": FORMAT, **told, "lines": _lines(run, suite)})


def read_card(path: Path) -> dict[str, Any]:
    """A scorecard that was written: its file, or that of a run folder.

    Raises:
        RunError: there is none, or it was changed since.
    """
    file = path / CARD if path.is_dir() else path
    try:
        card: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        check = card.pop(CHECK)
        _ = card["lines"], card["sha256"], card["references"]
    except OSError as error:
        raise RunError(f"{file}: is no scorecard ({error.strerror}); 'llm-coop bench' makes one") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise RunError(f"{file}: is no scorecard ({type(error).__name__}); 'llm-coop bench' makes one") from error
    if check != digest_of(card):
        raise RunError(
            f"{file}: was changed since it was written; 'llm-coop verify' says how, 'llm-coop bench' remakes it"
        )
    return {**card, CHECK: check}


def _lines(run: Run, suite: Suite) -> list[dict[str, Any]]:
    """All lines, by tendency in their order."""
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
    """What an episode comes to, by tendency."""
    failed = legal < 1 - INVALID_ABOVE
    for tendency, score in part.task.scores.items():
        if tendency == UNDERSTANDING or not failed:
            yield tendency, score(played)
        else:
            yield tendency, 0.0 if tendency in SKILLS else None
    if part.plays == part.scenario:
        yield LEGALITY, legal


def _legal_share(part: Part, played: Mapping[str, Sequence[Event]]) -> float:
    """The share of legal ones among the choices of who is tested, in all arms."""
    flags = [
        bool(event["flags"])
        for name, arm in part.arms.items()
        for event in played[name]
        if event["type"] == "choice" and _sits(arm.seats, event["agent"])
        if not any(
            event["agent"] == change["players"] and event["round"] == change["from_round"] for change in arm.changes
        )
    ]
    return 1.0 - float(np.mean(flags)) if flags else 1.0


def _sits(seats: Mapping[str, Any], agent: str) -> bool:
    """Whether who is tested sits in a seat; exact names go before patterns."""
    found = seats.get(agent, next((one for pattern, one in seats.items() if seat_matches(pattern, agent)), None))
    return bool(found == TESTED)


def _line(
    key: tuple[str, str],
    rows: Sequence[tuple[str, str, int, float | None]],
    legal: Sequence[float],
    understood: float | None,
    about: str,
) -> dict[str, Any]:
    sets = _scored_sets(rows)
    found = interval_of_sets(sets)
    halves = {
        half: interval_of_sets(_scored_sets([row for row in rows if row[0] == half])) for half in (PUBLIC, HELD_OUT)
    }
    lawful = float(np.mean(legal))
    return {
        "tendency": key[0],
        "scenario": key[1],
        "about": about,
        "score": None if found is None else found.mean,
        "low": None if found is None else found.low,
        "high": None if found is None else found.high,
        "episodes": len(rows),
        "scored": sum(map(len, sets)),
        **{half: None if one is None else one.mean for half, one in halves.items()},
        "reliability": reliability(sets),
        "competency": lawful if understood is None else min(lawful, understood),
        "legal": lawful,
        "understanding": understood,
        "values": [[name, seed, value] for _, name, seed, value in rows],
    }


def by_set(values: Iterable[tuple[str, int, float | None]]) -> dict[str, dict[int, float]]:
    """The scores of each set of parameters that has any, by its name and the seed.

    Args:
        values: name, seed and score; `None` is no score.
    """
    found: dict[str, dict[int, float]] = {}
    for name, seed, value in values:
        if value is not None:
            found.setdefault(name, {})[seed] = value
    return found


def _scored_sets(rows: Sequence[tuple[str, str, int, float | None]]) -> list[list[float]]:
    return [list(one.values()) for one in by_set(row[1:] for row in rows).values()]


def interval_of_sets(sets: Sequence[Sequence[float]]) -> Interval | None:
    """The mean of all scores, with an interval between 0 and 1 whose unit is the set of parameters.

    It is that of the sets' means, each counting by its scores, of which some may be missing; the exact one of a rate
    of sets where each came to 0 throughout or to 1 throughout. One set has no interval.

    Args:
        sets: the scores of each set, in [0, 1], at least one each.
    """
    means = [float(np.mean(one)) for one in sets]
    found = mean_interval(means, weights=[len(one) for one in sets])
    if found is None:
        return None
    if len(means) > 1 and set(means) <= {0.0, 1.0}:
        low, high = exact_interval(means.count(1.0), len(means))
        found = replace(found, low=low, high=high)
    return found.within(0.0, 1.0)


def reliability(sets: Sequence[Sequence[float]]) -> float | None:
    """How well two halves of the sets of parameters agree: 1 less the mean difference of their scores' means.

    Over 1,000 ways to deal the sets to two halves (one may be left over), always the same ones: the seeds of a set go
    together, else what it asks would stand in both halves. `None` with fewer than four.

    Args:
        sets: the scores of each set, at least one each.
    """
    if len(sets) < 4:
        return None
    half = len(sets) // 2
    order = np.argsort(np.random.default_rng(0).random((SPLITS, len(sets))), axis=1)
    dealt = order[:, : 2 * half].reshape(SPLITS, 2, half)
    means, counts = np.array([np.mean(one) for one in sets]), np.array([len(one) for one in sets])
    first, second = np.average(means[dealt], axis=2, weights=counts[dealt]).T
    return 1.0 - float(np.abs(first - second).mean())
