"""A run on Ray: its parts are Ray tasks, which Ray places, watches and starts again when their worker dies.

A part that is started again goes on with its own journal, as every part does. The driver hands out the study and
counts what is there; texts and answers stay with the parts. All machines must see the run folder under one path.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from llm_coop_envs.core.registry import register, registered
from llm_coop_envs.errors import LlmCoopError, RunError
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.interrupts import Interrupts
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.runner import Outcome, begin_run, run_study
from llm_coop_envs.runs.watcher import Watcher
from llm_coop_envs.studies.study import Study
from llm_coop_envs.util.ray_cluster import connected, same_version, short
from llm_coop_envs.version import __version__

_LIVES = 100  # of a part whose worker dies again and again
_TICK_SECONDS = 0.5


def run_on_ray(
    study: Study,
    folder: Path,
    *,
    address: str,
    parts: int,
    command: str = "",
    watcher: Watcher | None = None,
    access: ModelAccess | None = None,
) -> Outcome:
    """Play what is missing of a study in Ray tasks, then its rest and the tables here.

    Results are those of `run_study`, byte for byte. The first Ctrl-C lets the parts finish what is under way.

    Args:
        study: the study.
        folder: a new or empty folder, or one that holds a run of the same study, on a file system that all share.
        address: a cluster's address, `"auto"` for the one of this machine, or `"local"` to start Ray here.
        parts: how many tasks, each of which takes one core.
        command: how this session was started, for the record.
        watcher: is told how it goes.
        access: how models are asked; keys are taken from the environment of the workers.

    Raises:
        MissingExtra: Ray is not installed.
        RunError: no cluster at the address, workers of another version, or what `run_study` raises.
    """
    watcher, access = watcher or Watcher(), access or ModelAccess()
    try:
        given = pickle.dumps((registered(), study, access))
    except Exception as error:  # whatever somebody's own classes raise
        raise RunError(f"the study cannot be given to other processes ({error}); play it without --ray") from error
    with connected(address, parts, "--ray {}") as ray, Interrupts(watcher) as interrupts:
        run = begin_run(study, folder, access)
        left = run.total - len(run.finished())
        watcher.begin(run, left, parts)
        here = (__version__, str(folder.absolute()), command)
        task = ray.remote(num_cpus=1, max_retries=_LIVES)(_play_part)
        waiting = [task.remote(given, *here, f"ray-{number}") for number in range(min(parts, max(left, 1)))]
        _wait(ray, waiting, run, watcher, interrupts.asked)
        stopped = interrupts.asked()
    # What no part could take any more; nothing, unless one was killed at its end.
    rest = dataclasses.replace(access, part="driver")
    outcome = run_study(study, folder, command=command, watcher=watcher, access=rest, limit=0 if stopped else None)
    return dataclasses.replace(outcome, limited=False)


def _wait(ray: Any, waiting: list[Any], run: Run, watcher: Watcher, stop: Callable[[], bool]) -> None:
    """Wait until all parts have ended, counting episodes; tell them if they are to stop."""
    told = False
    seen = run.finished()
    while waiting:
        done, waiting = ray.wait(waiting, timeout=_TICK_SECONDS)
        for condition, seed in sorted(run.finished() - seen):
            seen.add((condition, seed))
            watcher.episode(condition, seed, 0.0, None)
        for one in done:
            try:
                why = ray.get(one)
            except ray.exceptions.RayTaskError as error:
                raise error.cause if isinstance(error.cause, LlmCoopError) else RunError(short(error)) from error
            except ray.exceptions.TaskCancelledError:
                continue
            except ray.exceptions.RayError as error:
                raise RunError(short(error)) from error
            if why is not None:
                watcher.say(why)
        if stop() and not told:
            told = True
            for one in waiting:
                ray.cancel(one)  # is Ctrl-C there


def _play_part(given: bytes, version: str, folder: str, command: str, part: str) -> str | None:
    """One part's life, in a Ray task; why it stopped early, if it did."""
    same_version(version)
    scenarios, study, access = pickle.loads(given)
    for scenario in scenarios:
        register(scenario)
    if not Path(folder).is_dir():
        raise RunError(f"{folder}: a Ray worker does not see this folder; choose one that all machines share with -o")
    part_access = dataclasses.replace(access, part=part)
    return run_study(study, Path(folder), command=command, access=part_access).why
