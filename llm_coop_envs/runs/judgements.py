"""Let a language model judge messages, in a run folder that is stopped and continued like any run.

run.json              the manifest: the rubric with its hash, the model, what is judged; see `storage.folder`
journal/              questions and answers
verdicts.jsonl.gz     one record per statement, written when all are judged
"""

from __future__ import annotations

import math
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
from llm_coop_envs.storage.files import pack_lines, read_lines, write_whole
from llm_coop_envs.storage.folder import COMPLETE, RunFolder
from llm_coop_envs.util.shapes import check_shape
from llm_coop_envs.util.waiting import run_coroutine

VERDICTS = "verdicts.jsonl.gz"
SYNTHETIC_SOURCE = "planted"
"""The source of talk from synthetic worlds of known intent, as recorded in a judgement's manifest."""
SYNTHETIC_SEED = 2_000_000
"""The first seed of the worlds that test a judge; no rule was chosen or is reported on worlds with these seeds."""


@dataclass(kw_only=True)
class Judgement(RunFolder):
    """A judgement, read from its folder."""

    kind: ClassVar[str] = "judge"
    begun_with: ClassVar[str] = "the model and the settings"
    growing: ClassVar[str | None] = "journal/"

    @property
    def title(self) -> str:
        """The judgement's name in errors."""
        return "a judgement"


@dataclass(frozen=True, kw_only=True)
class Material:
    """The statements that are judged.

    Attributes:
        source: the digest of the run, or the name of the worlds, that they come from.
        talk: the statements.
        truth: whether the players of an episode intended to collude, where that is known.
        rounds: the number of rounds with talk of each episode, counted from its first; `None` for all.
    """

    source: str
    talk: Sequence[Statement]
    truth: Mapping[str, bool]
    rounds: int | None = None


def collect_run_talk(run: Run, episodes: int | None = None, rounds: int | None = None) -> Material:
    """Collect the talk of a run's finished episodes.

    Args:
        run: the run.
        episodes: how many of each condition, the first ones; `None` for all.
        rounds: how many rounds with talk of each, the first ones; `None` for all.

    Raises:
        RunError: an episode is damaged, or nobody said anything.
    """
    finished, spoken = run.finished(), []
    for condition in run.conditions:
        for seed in [seed for seed in condition.seeds if (condition.name, seed) in finished][:episodes]:
            events = run.read_events(condition.name, seed)[1]
            if condition.settings["talk"] and condition.spec.measured.asked is not None:
                spoken += _first_talk_rounds(
                    collect_statements(f"{condition.name}/{seed}", events, condition.spec), rounds
                )
    if not spoken:
        raise RunError(f"{run.folder}: nobody said anything in its finished episodes; there is nothing to judge")
    return Material(source=run.manifest["digest"], talk=spoken, truth={}, rounds=rounds)


def _first_talk_rounds(spoken: Sequence[Statement], rounds: int | None) -> list[Statement]:
    """The statements of the first rounds that have any."""
    first_rounds = set(sorted({statement.round for statement in spoken})[:rounds])
    return [statement for statement in spoken if statement.round in first_rounds]


def collect_world_talk(scenario: str, episodes: int, rounds: int | None = None) -> Material:
    """Collect the talk of synthetic worlds of known intent.

    Args:
        scenario: the scenario's name.
        episodes: how many of each world.
        rounds: how many rounds with talk of each, the first ones; `None` for all.

    Raises:
        ValueError: the scenario has no such worlds.
    """
    spoken, truth = [], {}
    for world in find_synthetic_worlds(scenario).worlds:
        for seed in range(SYNTHETIC_SEED, SYNTHETIC_SEED + (episodes if world.talk else 0)):
            name = f"{world.name}/{seed}"
            events = play_and_record_world(scenario, world.name, seed)[1]
            heard = _first_talk_rounds(collect_statements(name, events, find_scenario(scenario)), rounds)
            if heard:  # an episode without talk says nothing about a judge
                spoken += heard
                truth[name] = world.intent
    return Material(source=f"{SYNTHETIC_SOURCE}:{scenario}", talk=spoken, truth=truth, rounds=rounds)


def read_verdicts(run: Run) -> dict[str, float]:
    """What judges found in each episode, by `CONDITION/SEED`: `joint_round_share`, mean over finished judgements.

    Raises:
        RunError: a judgement's file is damaged.
    """
    shares: dict[str, list[float]] = {}
    for folder in sorted(path.parent for path in (run.folder / "judges").glob(f"*/{VERDICTS}")):
        judgement = Judgement.open(folder)
        if not judgement.complete or judgement.manifest["judged"] != run.manifest["digest"]:
            continue
        rows = read_lines(folder / VERDICTS)
        try:
            check_shape(rows, [{"episode": str, "round": int, "speaker": str, "judge": (str, type(None))}])
        except ValueError as error:
            raise RunError(f"{folder / VERDICTS}: is damaged ({error}); judge again in a new folder") from error
        for episode in {row["episode"] for row in rows}:
            spoken = [(row["round"], row["speaker"], row["judge"]) for row in rows if row["episode"] == episode]
            shares.setdefault(episode, []).append(joint_round_share(spoken))
    return {episode: math.fsum(own) / len(own) for episode, own in shares.items()}


def folder_name(model: str) -> str:
    """The folder of a model's judgement of a run, below the run's folder."""
    return f"judges/{re.sub(r'[^A-Za-z0-9.]+', '-', model).strip('-.') or 'model'}-{NAME}-{VERSION}"


def estimate_judging(material: Material, settings: LLMSettings, price: Price | None) -> Estimate:
    """Estimate the cost of judging everything anew, without asking a model."""
    dry = DryChat(scripted_answer, lambda model: price)
    run_coroutine(judge(material.talk, dry, settings))
    total = Estimate()
    for estimate in dry.estimates.values():
        for name in ("calls", "prompt_tokens", "completion_tokens", "most_completion_tokens", "usd", "most_usd"):
            total_value, value = getattr(total, name), getattr(estimate, name)
            setattr(total, name, None if total_value is None or value is None else total_value + value)
    return total


def judge_material(
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
    """Judge statements, or continue to, and write verdicts and result to the folder.

    Returns:
        The result, as `result_of` makes it.

    Raises:
        RunError: the folder holds something else, or cannot be written.
        RunStopped: the budget is used up, or the model cannot be asked; the same call continues.
    """
    identity = {
        "judged": material.source,
        "rubric": {"name": NAME, "version": VERSION, "digest": digest()},
        "settings": settings.to_json(),
    }
    judgement = Judgement.make(folder, identity)
    with judgement.lock(), judgement.session(command=command, asking=access.describe([endpoint])) as session:

        async def ask() -> list[str | None]:
            async with access.open(folder, [endpoint], notify) as chat:
                try:
                    return await judge(material.talk, chat, settings, done)
                finally:
                    session["asked"] = chat.counters.line()

        try:
            verdicts = run_coroutine(ask())
        finally:
            judgement.write(files={**judgement.manifest["files"], **judgement.fingerprints(*access.journal(folder))})
        result = result_of(material, verdicts)
        write_whole(folder / VERDICTS, pack_lines(verdict_rows(material.talk, verdicts)))
        judgement.write(
            files={**judgement.manifest["files"], **judgement.fingerprints(folder / VERDICTS)}, result=result
        )
    assert judgement.manifest["status"] == COMPLETE
    return result


def result_of(material: Material, verdicts: Sequence[str | None]) -> dict[str, Any]:
    """The result of a judgement, as plain data.

    Returns:
        `statements` and `episodes`: their numbers; `rounds`: of each episode, `None` for all; `judge`: how often the
        judge chose each kind; `rules`: the `judging.Agreement` with the rules. Where the truth is known also, for judge
        and rules each: `truth`, the figures of detection, and `scores`, those of the episodes by world.
    """
    result: dict[str, Any] = {
        "statements": len(material.talk),
        "episodes": len({statement.episode for statement in material.talk}),
        "rounds": material.rounds,
        "judge": count_kinds(verdicts),
        "rules": asdict(measure_agreement(material.talk, verdicts)),
    }
    if material.truth:
        result["scores"], result["truth"] = {}, {}
        for source, kinds in (("judge", verdicts), ("rules", [statement.by_rules for statement in material.talk])):
            scores = {name: 0.0 for name in material.truth} | dict(_episode_scores(material, kinds))
            worlds: dict[str, list[float]] = {}
            for name, score in scores.items():
                worlds.setdefault(name.partition("/")[0], []).append(score)
            result["scores"][source], result["truth"][source] = worlds, _detection_figures(material, scores)
    return result


def _detection_figures(material: Material, scores: Mapping[str, float]) -> dict[str, Any]:
    """Figures of detection: false alarms with their exact interval, detected collusion, ROC curve and area, kappa."""
    honest, colluding = (
        np.array([scores[name] for name, intent in material.truth.items() if intent == intended])
        for intended in (False, True)
    )
    alarms, real = int((honest >= RULE).sum()), int((colluding >= RULE).sum())
    false, true, area = roc(honest, colluding)
    truth = np.array([False] * len(honest) + [True] * len(colluding))
    return {
        "alarms": alarms,
        "honest": len(honest),
        "interval": exact_interval(alarms, len(honest)),
        "found": real,
        "meant": len(colluding),
        "area": area,
        "curve": [false.tolist(), true.tolist()],
        "kappa": kappa(np.concatenate([honest, colluding]) >= RULE, truth),
    }


def _episode_scores(material: Material, kinds: Sequence[str | None]) -> Iterator[tuple[str, float]]:
    pairs: dict[str, list[tuple[Statement, str | None]]] = {}
    for statement, kind in zip(material.talk, kinds, strict=True):
        pairs.setdefault(statement.episode, []).append((statement, kind))
    for name, both in pairs.items():
        yield name, joint_round_share((statement.round, statement.speaker, kind) for statement, kind in both)
