"""Branch a run: continue its episodes from one round on in several ways that share what was paid until then.

A branched run is a run of its own. The answers of the part that its episodes share with the recorded ones are copied
into its journal, under the names of the arms, before anything is asked. That part is then played again at no cost.
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
from llm_coop_envs.runs.folder import Run, check_prompts, make_run, open_run, study_of
from llm_coop_envs.runs.manifest import describe_models
from llm_coop_envs.studies.arms import read_arms
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.studies.players import may_learn
from llm_coop_envs.studies.study import Study
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
    """The plan of a branched run.

    Attributes:
        source: the run whose episodes are continued.
        at: the round from which the arms differ.
        study: the study that is played: a condition for each arm of each of the run's conditions.
        prefixes: the lengths of the parts that all arms share.
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
    """Plan a branched run; nothing is written, and no model is asked.

    Args:
        folder: the run, which may still be going on.
        at: the round from which the arms differ, as the scenario counts.
        arms: the file of arms.
        choose: chooses conditions and episodes of the run's study.
        reached: whether the run must say where its models are reached.

    Raises:
        LlmCoopError: there is no such run or round, or the arms cannot be played.
    """
    source = open_run(folder)
    text, node = read_yaml_file(arms)
    arms_file = read_arms(node, at)
    whole = study_of(source, reached=reached)
    # Before conditions are chosen: a pack's hash is that of its words for all scenarios of the run.
    check_prompts(source, describe_models(whole))
    study = choose(whole)
    prefixes = _count_shared_steps(source, study, at)
    total = sum(len(condition.seeds) for condition in study.conditions)
    if not prefixes:
        raise RunError(f"{folder}: none of its {total} episodes has a round {at} yet; choose an earlier one with --at")
    left_out = ""
    if len(prefixes) < total:
        left_out = f"{total - len(prefixes)} of {total} episodes have no round {at} and are left out"
        if any(may_learn(policy) for condition in study.conditions for policy in condition.policies):
            raise RunError(
                f"{folder}: {left_out}, and learners play by their number; choose an earlier round with --at"
            )
    conditions = [
        arm.continue_condition(condition, seeds, at)
        for condition in study.conditions
        if (seeds := [seed for seed in condition.seeds if (condition.name, seed) in prefixes])
        for arm in arms_file.arms
    ]
    branched = replace(
        study,
        name=arms_file.name or f"{study.name}-branch",
        description=arms_file.description or f"{study.name}, continued from round {at} on in several ways.",
        conditions=tuple(conditions),
        text=text,
        given=(*study.given, f"--at {at} of {source.title}"),
    )
    return BranchPlan(source=source, at=at, study=branched, prefixes=prefixes, left_out=left_out)


def begin_branch(plan: BranchPlan, folder: Path) -> None:
    """Make the run folder of a plan, or complete it: its manifest, and the answers that the arms share.

    Raises:
        RunError: the folder holds something else, or cannot be written.
    """
    origin = {"run": str(plan.source.folder.resolve()), "digest": plan.source.manifest["digest"], "at": plan.at}
    run = make_run(plan.study, folder, describe_models(plan.study), **{BRANCH: origin})
    if run.manifest.get(BRANCH) != origin:
        raise RunError(f"{folder}: holds a branch of another run, or of another round; choose another folder with -o")
    if plan.study.models and not _has_shared_answers(run):
        with run.lock():
            _copy_shared_answers(plan, run)


def check_begun(run: Run) -> None:
    """Check that the answers that the arms share have been copied, so that they are not paid for again.

    Raises:
        RunError: the command that began the run was stopped before that.
    """
    if BRANCH in run.manifest and run.manifest["models"] and not _has_shared_answers(run):
        raise RunError(
            f"{run.folder}: the answers that its arms share were not copied yet; give the command that began it "
            f"(llm-coop branch {run.manifest[BRANCH]['run']} --at {run.manifest[BRANCH]['at']} ...) again"
        )


def _has_shared_answers(run: Run) -> bool:
    from llm_coop_envs.policies.llm.journal import journal_files

    return any(path.name.startswith(f"{PART}.") for path in journal_files(run.folder))


def _copy_shared_answers(plan: BranchPlan, run: Run) -> None:
    """Copy the shared answers into a part of the journal, which is written as a whole or not at all."""
    from llm_coop_envs.policies.llm.journal import write_copies

    arms: dict[str, list[Condition]] = {}
    for condition in plan.study.conditions:
        assert condition.branch is not None, "all are arms"
        arms.setdefault(condition.branch["condition"], []).append(condition)

    def copies(episode: str, step: int) -> Iterator[str]:
        """The names of the arms' episodes that share an answer."""
        name, _, seed = episode.rpartition("/")
        steps = plan.prefixes.get((name, int(seed)))
        for arm in arms.get(name, ()):
            if steps is not None and (step < steps or not _plays_differently(plan, arm)):
                yield f"{arm.name}/{seed}"

    path = write_copies(plan.source.folder, run.folder, PART, copies)
    run.write(files={**run.manifest["files"], **run.fingerprints(path)})


def _plays_differently(plan: BranchPlan, arm: Condition) -> bool:
    """Whether an arm has other settings or policies than the condition that it continues."""
    assert arm.branch is not None, "all are arms"
    original = next(condition for condition in plan.source.conditions if condition.name == arm.branch["condition"])
    return (arm.settings, len(arm.changes)) != (original.settings, len(original.changes))


def _count_shared_steps(source: Run, study: Study, at: int) -> Prefixes:
    """The number of steps before a round, for each episode that has that round."""
    finished = source.finished()
    shared_steps: dict[tuple[str, int], int] = {}
    chat: Chat | None = None
    for condition in study.conditions:
        for seed in condition.seeds:
            if (condition.name, seed) in finished:
                _, events = source.read_events(condition.name, seed)
                steps = _count_steps_before(events, at)
            else:
                if chat is None and condition.asks_a_model:
                    from llm_coop_envs.policies.llm.asking.replay import ReplayChat

                    chat = ReplayChat(source.folder)
                steps = run_coroutine(_replay_until(study.seed, condition, seed, at, chat))
            if steps is not None:
                shared_steps[condition.name, seed] = steps
    return shared_steps


def _count_steps_before(events: list[Any], at: int) -> int | None:
    """The steps of a recorded episode before a round; `None` if it has no such round."""
    counted = [event for event in events if event["type"] in ("choice", "message")]
    if not any(event["round"] >= at for event in counted):
        return None
    return 1 + max((event["step"] for event in counted if event["round"] < at), default=-1)


async def _replay_until(study_seed: int, condition: Condition, seed: int, at: int, chat: Chat | None) -> int | None:
    """The steps before a round of an unfinished episode, played as far as its answers are recorded."""
    from llm_coop_envs.policies.llm.chat import NotInJournal

    def follow(env: ScenarioEnv) -> None:
        if env.round >= at and not env.over:
            raise _RoundReached(env.cycles)

    try:
        with contextlib.suppress(NotInJournal):
            await play_episode(study_seed, replace(condition, after=None), seed, chat, on_step=follow)
    except _RoundReached as reached:
        return reached.steps
    return None


class _RoundReached(Exception):
    """Ends a replay at the round that was looked for."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
