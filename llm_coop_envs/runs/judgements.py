"""A judgement as a run folder of its own: begun, stopped and continued like any run, and paid for once.

run.json              the manifest: the rubric with its hash, the model, what is judged; see `storage.folder`
journal/              what was asked and answered
verdicts.jsonl.gz     one record per statement, when all are judged
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.errors import RunError
from llm_coop_envs.measures.judging import (
    Statement,
    collect_statements,
    count_kinds,
    joint_round_share,
    judge,
    measure_agreement,
    verdict_rows,
)
from llm_coop_envs.measures.rubric import NAME, VERSION, digest
from llm_coop_envs.measures.synthetic_worlds import RULE, find_synthetic_worlds, kappa, play_and_record_world, roc
from llm_coop_envs.policies.llm.asking.estimate import DryChat, Estimate
from llm_coop_envs.policies.llm.asking.prices import Price
from llm_coop_envs.policies.llm.clients import Endpoint
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.testing.answers import scripted_answer
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.statistics.intervals import exact_interval
from llm_coop_envs.storage.files import pack_lines, write_whole
from llm_coop_envs.storage.folder import COMPLETE, RunFolder
from llm_coop_envs.util.waiting import run_coroutine

VERDICTS = "verdicts.jsonl.gz"
PLANTED = "planted"
"""What worlds of known intent are called as the source of what is judged."""
PLANTED_SEED = 2_000_000
"""The first seed of worlds that a judge is tried on; no rule was chosen or is reported on these."""


@dataclass(kw_only=True)
class Judgement(RunFolder):
    """A judgement as its folder tells it."""

    kind: ClassVar[str] = "judge"
    begun_with: ClassVar[str] = "the model and the settings"
    growing: ClassVar[str | None] = "journal/"

    @property
    def title(self) -> str:
        """What it is called in errors."""
        return "a judgement"


@dataclass(frozen=True, kw_only=True)
class Material:
    """What is judged.

    Attributes:
        source: what names it for good: the digest of the run, or the worlds.
        said: the statements.
        truth: whether players meant to work together, by episode, where that is known.
        rounds: of how many rounds with talk of each episode, the first ones; `None` for all.
    """

    source: str
    said: Sequence[Statement]
    truth: Mapping[str, bool]
    rounds: int | None = None


def of_run(run: Run, episodes: int | None = None, rounds: int | None = None) -> Material:
    """The talk of a run's finished episodes: of the first so many of each condition, and their first so many rounds.

    Raises:
        RunError: an episode is damaged, or nobody said anything.
    """
    there, said = run.finished(), []
    for condition in run.conditions:
        for seed in [seed for seed in condition.seeds if (condition.name, seed) in there][:episodes]:
            events = run.read_events(condition.name, seed)[1]
            if condition.settings["talk"] and condition.spec.measured.asked is not None:
                said += _first(collect_statements(f"{condition.name}/{seed}", events, condition.spec), rounds)
    if not said:
        raise RunError(f"{run.folder}: nobody said anything in its finished episodes; there is nothing to judge")
    return Material(source=run.manifest["digest"], said=said, truth={}, rounds=rounds)


def _first(said: Sequence[Statement], rounds: int | None) -> list[Statement]:
    """What is said in the first so many rounds with talk."""
    kept = set(sorted({one.round for one in said})[:rounds])
    return [one for one in said if one.round in kept]


def of_worlds(scenario: str, episodes: int, rounds: int | None = None) -> Material:
    """The talk of worlds of known intent: of so many episodes of each, and their first so many rounds.

    Raises:
        ValueError: the scenario has none.
    """
    said, truth = [], {}
    for world in find_synthetic_worlds(scenario).worlds:
        for seed in range(PLANTED_SEED, PLANTED_SEED + (episodes if world.talk else 0)):
            name = f"{world.name}/{seed}"
            events = play_and_record_world(scenario, world.name, seed)[1]
            heard = _first(collect_statements(name, events, find_scenario(scenario)), rounds)
            if heard:  # silence tells a judge of talk nothing, and no judge may gain by it
                said += heard
                truth[name] = world.intent
    return Material(source=f"{PLANTED}:{scenario}", said=said, truth=truth, rounds=rounds)


def folder_name(model: str) -> str:
    """Where a model's judgement of a run is, below the run's folder."""
    return f"judges/{re.sub(r'[^A-Za-z0-9.]+', '-', model).strip('-.') or 'model'}-{NAME}-{VERSION}"


def estimated(material: Material, settings: LLMSettings, price: Price | None) -> Estimate:
    """What it would cost to judge everything anew; nobody is asked."""
    dry = DryChat(scripted_answer, lambda model: price)
    run_coroutine(judge(material.said, dry, settings))
    total = Estimate()
    for one in dry.estimates.values():
        for name in ("calls", "prompt_tokens", "completion_tokens", "most_completion_tokens", "usd", "most_usd"):
            before, more = getattr(total, name), getattr(one, name)
            setattr(total, name, None if before is None or more is None else before + more)
    return total


def judged(
    material: Material,
    folder: Path,
    settings: LLMSettings,
    endpoint: Endpoint,
    access: ModelAccess,
    *,
    command: str = "",
    notify: Callable[[str], None] = lambda text: None,
    done: Callable[[], None] = lambda: None,
) -> dict[str, Any]:
    """Judge, or go on judging, and keep verdicts and result in the folder.

    Returns:
        The result, as `result_of` gives it.

    Raises:
        RunError: the folder holds something else, or cannot be written.
        RunStopped: the budget is used up, or the model cannot be asked; the same call continues.
    """
    identity = {
        "judged": material.source,
        "rubric": {"name": NAME, "version": VERSION, "digest": digest()},
        "settings": settings.to_json(),
    }
    there = Judgement.make(folder, identity)
    with there.lock(), there.session(command=command, asking=access.describe([endpoint])) as session:

        async def ask() -> list[str | None]:
            async with access.open(folder, [endpoint], notify) as chat:
                try:
                    return await judge(material.said, chat, settings, done)
                finally:
                    session["asked"] = chat.counters.line()

        try:
            verdicts = run_coroutine(ask())
        finally:
            there.write(files={**there.manifest["files"], **there.fingerprints(*access.journal(folder))})
        result = result_of(material, verdicts)
        write_whole(folder / VERDICTS, pack_lines(verdict_rows(material.said, verdicts)))
        there.write(files={**there.manifest["files"], **there.fingerprints(folder / VERDICTS)}, result=result)
    assert there.manifest["status"] == COMPLETE
    return result


def result_of(material: Material, verdicts: Sequence[str | None]) -> dict[str, Any]:
    """What comes of a judgement, as plain data.

    Returns:
        `statements`, `episodes`, `rounds` of each (`None` for all), `judge` (how often each kind was said), `rules`
        (`judging.Agreement` with what the rules say); and where the truth is known, for judge and rules: `truth`, how
        well episodes are told apart, and `scores` of the episodes by world.
    """
    found: dict[str, Any] = {
        "statements": len(material.said),
        "episodes": len({one.episode for one in material.said}),
        "rounds": material.rounds,
        "judge": count_kinds(verdicts),
        "rules": asdict(measure_agreement(material.said, verdicts)),
    }
    if material.truth:
        found["scores"], found["truth"] = {}, {}
        for who, kinds in (("judge", verdicts), ("rules", [one.by_rules for one in material.said])):
            scores = {name: 0.0 for name in material.truth} | dict(_scores(material, kinds))
            worlds: dict[str, list[float]] = {}
            for name, score in scores.items():
                worlds.setdefault(name.partition("/")[0], []).append(score)
            found["scores"][who], found["truth"][who] = worlds, _told_apart(material, scores)
    return found


def _told_apart(material: Material, scores: Mapping[str, float]) -> dict[str, Any]:
    """False alarms among honest episodes with their exact interval, those found, the curve's area, and kappa."""
    honest, meant = (
        np.array([scores[name] for name, intent in material.truth.items() if intent == wanted])
        for wanted in (False, True)
    )
    alarms, real = int((honest >= RULE).sum()), int((meant >= RULE).sum())
    false, true, area = roc(honest, meant)
    truth = np.array([False] * len(honest) + [True] * len(meant))
    return {
        "alarms": alarms,
        "honest": len(honest),
        "interval": exact_interval(alarms, len(honest)),
        "found": real,
        "meant": len(meant),
        "area": area,
        "curve": [false.tolist(), true.tolist()],
        "kappa": kappa(np.concatenate([honest, meant]) >= RULE, truth),
    }


def _scores(material: Material, kinds: Sequence[str | None]) -> Iterator[tuple[str, float]]:
    pairs: dict[str, list[tuple[Statement, str | None]]] = {}
    for one, kind in zip(material.said, kinds, strict=True):
        pairs.setdefault(one.episode, []).append((one, kind))
    for name, both in pairs.items():
        yield name, joint_round_share((one for one, _ in both), (kind for _, kind in both))
