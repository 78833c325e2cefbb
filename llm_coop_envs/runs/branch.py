"""Branching a run: its episodes are continued from one round on in several ways, which share what was paid until then.

A branched run is a run of its own. What its episodes have in common with the recorded ones is played again from the
recorded answers, which are copied into its journal under the arms' names before anything is asked; they cost nothing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.errors import RunError
from llm_coop_envs.runs.episode import play_episode
from llm_coop_envs.runs.folder import Run, check_words, described_models, make_run, open_run, study_of
from llm_coop_envs.studies.arms import read_arms
from llm_coop_envs.studies.players import learns
from llm_coop_envs.studies.study import Condition, Study
from llm_coop_envs.util.waiting import run_coroutine
from llm_coop_envs.util.yaml_source import read_yaml_file

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.chat import Chat

PART = "branched"
BRANCH = "branch"

#: From a recorded episode, as (condition, seed), to the number of steps before the round at which it is continued.
Prefixes = Mapping[tuple[str, int], int]


@dataclass(frozen=True, kw_only=True)
class BranchPlan:
    """What a branched run plays.

    Attributes:
        source: the run whose episodes are continued.
        at: from which round on.
        study: what is played: a condition for each arm of each of the run's conditions.
        prefixes: how long the parts are that all arms share.
        left_out: a sentence on episodes that cannot be continued there; empty if all can.
    """

    source: Run
    at: int
    study: Study
    prefixes: Prefixes
    left_out: str


def plan_branch(
    folder: Path, at: int, arms: Path, choose: Callable[[Study], Study], *, reached: bool = True
) -> BranchPlan:
    """Find out what a branched run would play; nothing is written, and nobody is asked.

    Args:
        folder: the run, which may still be going on.
        at: the round from which the arms differ, as the scenario counts.
        arms: the file of arms.
        choose: chooses conditions and episodes of the run's study.
        reached: insist that the run says where its models are.

    Raises:
        LlmCoopError: there is no such run or round, or the arms cannot be played.
    """
    source = open_run(folder)
    text, spot = read_yaml_file(arms)
    wanted = read_arms(spot, at)
    whole = study_of(source, reached=reached)
    # Before conditions are chosen: a pack's hash is that of its words for all scenarios of the run.
    check_words(source, described_models(whole))
    study = choose(whole)
    prefixes = _prefixes(source, study, at)
    total = sum(len(one.seeds) for one in study.conditions)
    if not prefixes:
        raise RunError(f"{folder}: none of its {total} episodes has a round {at} yet; choose an earlier one with --at")
    left_out = ""
    if len(prefixes) < total:
        left_out = f"{total - len(prefixes)} of {total} episodes have no round {at} and are left out"
        if any(learns(policy) for one in study.conditions for policy in one.policies):
            raise RunError(
                f"{folder}: {left_out}, and learners play by their number; choose an earlier round with --at"
            )
    conditions = [
        arm
        for one in study.conditions
        if (seeds := [seed for seed in one.seeds if (one.name, seed) in prefixes])
        for arm in wanted.of(one, seeds, at)
    ]
    branched = replace(
        study,
        name=wanted.name or f"{study.name}-branch",
        description=wanted.description or f"{study.name}, continued from round {at} on in several ways.",
        conditions=tuple(conditions),
        text=text,
        given=(*study.given, f"--at {at} of {source.title}"),
    )
    return BranchPlan(source=source, at=at, study=branched, prefixes=prefixes, left_out=left_out)


def begin_branch(plan: BranchPlan, folder: Path) -> None:
    """Begin the run of a plan, or complete what was begun of it: its manifest, and the answers that the arms share.

    Raises:
        RunError: the folder holds something else, or cannot be written.
    """
    origin = {"run": str(plan.source.folder.resolve()), "digest": plan.source.manifest["digest"], "at": plan.at}
    run = make_run(plan.study, folder, described_models(plan.study), **{BRANCH: origin})
    if run.manifest.get(BRANCH) != origin:
        raise RunError(f"{folder}: holds a branch of another run, or of another round; choose another folder with -o")
    if plan.study.models and not _copied(run):
        with run.lock():
            _copy(plan, run)


def check_begun(run: Run) -> None:
    """Refuse to ask models for what was recorded, if a branched run was stopped before that was copied.

    Raises:
        RunError: it was.
    """
    if BRANCH in run.manifest and run.manifest["models"] and not _copied(run):
        raise RunError(
            f"{run.folder}: the answers that its arms share were not copied yet; give the command that began it "
            f"(llm-coop branch {run.manifest[BRANCH]['run']} --at {run.manifest[BRANCH]['at']} ...) again"
        )


def _copied(run: Run) -> bool:
    from llm_coop_envs.policies.llm.journal import journal_files

    return any(path.name.startswith(f"{PART}.") for path in journal_files(run.folder))


def _copy(plan: BranchPlan, run: Run) -> None:
    """Copy the shared answers into a part of the journal, which is there as a whole or not at all."""
    from llm_coop_envs.policies.llm.journal import write_copies

    arms: dict[str, list[Condition]] = {}
    for condition in plan.study.conditions:
        assert condition.branch is not None, "all are arms"
        arms.setdefault(condition.branch["condition"], []).append(condition)

    def copies(episode: str, step: int) -> Iterator[str]:
        """Under which names an answer is kept."""
        name, _, seed = episode.rpartition("/")
        steps = plan.prefixes.get((name, int(seed)))
        for arm in arms.get(name, ()):
            if steps is not None and (step < steps or not _differs(plan, arm)):
                yield f"{arm.name}/{seed}"

    path = write_copies(plan.source.folder, run.folder, PART, copies)
    run.write(files={**run.manifest["files"], **run.fingerprints(path)})


def _differs(plan: BranchPlan, arm: Condition) -> bool:
    """Whether an arm plays otherwise than the condition that it continues."""
    assert arm.branch is not None, "all are arms"
    before = next(one for one in plan.source.conditions if one.name == arm.branch["condition"])
    return (arm.settings, len(arm.changes)) != (before.settings, len(before.changes))


def _prefixes(source: Run, study: Study, at: int) -> Prefixes:
    """How many steps the episodes that have the round took before it."""
    there = source.finished()
    found: dict[tuple[str, int], int] = {}
    chat: Chat | None = None
    for condition in study.conditions:
        for seed in condition.seeds:
            if (condition.name, seed) in there:
                _, events = source.read_events(condition.name, seed)
                steps = _steps_before(events, at)
            else:
                if chat is None and condition.asks_a_model:
                    from llm_coop_envs.policies.llm.asking.replay import ReplayChat

                    chat = ReplayChat(source.folder)
                steps = run_coroutine(_played_until(study.seed, condition, seed, at, chat))
            if steps is not None:
                found[condition.name, seed] = steps
    return found


def _steps_before(events: list[Any], at: int) -> int | None:
    """The steps of a recorded episode before a round; `None` if it has no such round."""
    counted = [event for event in events if event["type"] in ("choice", "message")]
    if not any(event["round"] >= at for event in counted):
        return None
    return 1 + max((event["step"] for event in counted if event["round"] < at), default=-1)


async def _played_until(study_seed: int, condition: Condition, seed: int, at: int, chat: Chat | None) -> int | None:
    """The same of an episode that is not finished, as far as its answers are recorded."""
    from llm_coop_envs.policies.llm.chat import NotInJournal

    def follow(env: ScenarioEnv) -> None:
        if env.round >= at and not env.over:
            raise _Reached(env.cycles)

    try:
        with contextlib.suppress(NotInJournal):
            await play_episode(study_seed, replace(condition, after=None), seed, chat, on_step=follow)
    except _Reached as reached:
        return reached.steps
    return None


class _Reached(Exception):
    """The round is there."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
