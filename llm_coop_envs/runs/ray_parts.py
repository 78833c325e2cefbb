"""Play a run on Ray: its parts are Ray tasks, which Ray places, watches and starts again when their worker dies.

A part that is started again continues with its own journal, as every part does. The driver hands out the study and
counts finished episodes; texts and answers stay with the parts. All machines must see the run folder under one path.
"""

from __future__ import annotations

import dataclasses
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from llm_coop_envs.core.registry import register, registered
from llm_coop_envs.errors import LlmCoopError, RunError
from llm_coop_envs.runs.failures import Marks, mark_failures
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.interrupts import Interrupts
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.runner import Outcome, begin_run, run_study
from llm_coop_envs.runs.watcher import Watcher
from llm_coop_envs.studies.study import Study
from llm_coop_envs.util.ray_cluster import connected, same_version, short
from llm_coop_envs.util.trust import current_trust, set_trust
from llm_coop_envs.version import __version__

_LIVES = 100  # starts of a part whose worker dies again and again
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
    """Play the missing episodes of a study in Ray tasks, then write its tables here.

    Results are those of `run_study`, byte for byte. At the first Ctrl-C the parts finish the episodes under way.

    Args:
        study: the study.
        folder: a new or empty folder, or one that holds a run of the same study, on a file system that all share.
        address: a cluster's address, `"auto"` for the one of this machine, or `"local"` to start Ray here.
        parts: the number of tasks, each of which takes one core.
        command: how this session was started, for the record.
        watcher: is told of the progress.
        access: how models are asked; keys are taken from the environment of the workers.

    Raises:
        MissingExtra: Ray is not installed.
        RunError: no cluster at the address, workers of another version, or what `run_study` raises.
    """
    watcher, access, started = watcher or Watcher(), access or ModelAccess(), time.monotonic()
    try:
        payload = pickle.dumps((registered(), current_trust(), study, access))
    except Exception as error:  # anything that classes from outside raise
        raise RunError(f"the study cannot be given to other processes ({error}); play it without --ray") from error
    with connected(address, parts, "--ray {}") as ray, Interrupts(watcher) as interrupts:
        run = begin_run(study, folder, access)
        before, failed_before = len(run.finished()), mark_failures(run)
        missing = run.total - before
        watcher.begin(run, missing, parts)
        context = (__version__, str(folder.absolute()), command, failed_before)
        task = ray.remote(num_cpus=1, max_retries=_LIVES)(_play_part)
        waiting = [task.remote(payload, *context, f"ray-{number}") for number in range(min(parts, max(missing, 1)))]
        _wait(ray, waiting, run, watcher, interrupts.is_stop_requested)
        stopped = interrupts.is_stop_requested()
    # The driver plays episodes that no part could take any more, because the last part was killed.
    driver_access = dataclasses.replace(access, part="driver")
    outcome = run_study(
        study,
        folder,
        command=command,
        watcher=cast("Watcher", _Told(watcher)),
        access=driver_access,
        limit=0 if stopped else None,
        failed_before=failed_before,
    )
    return dataclasses.replace(
        outcome,
        played=outcome.finished - before,
        seconds=time.monotonic() - started,
        limited=False,
        stopped=stopped or outcome.stopped,
    )


class _Told:
    """A watcher that knows already what is played."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._watcher, name)

    def begin(self, run: Run, todo: int, workers: int) -> None:
        """Say nothing: the parts have played, and the driver writes tables."""


def _wait(ray: Any, waiting: list[Any], run: Run, watcher: Watcher, stop: Callable[[], bool]) -> None:
    """Wait until all parts have ended, count their episodes, and cancel them once `stop` says so."""
    cancelled = False
    seen = run.finished()
    while waiting:
        done, waiting = ray.wait(waiting, timeout=_TICK_SECONDS)
        for condition, seed in sorted(run.finished() - seen):
            seen.add((condition, seed))
            watcher.episode(condition, seed, 0.0, None)
        for part in done:
            try:
                stop_reason = ray.get(part)
            except ray.exceptions.RayTaskError as error:
                raise error.cause if isinstance(error.cause, LlmCoopError) else RunError(short(error)) from error
            except ray.exceptions.TaskCancelledError:
                continue
            except ray.exceptions.RayError as error:
                raise RunError(short(error)) from error
            if stop_reason is not None:
                watcher.say(stop_reason)
        if stop() and not cancelled:
            cancelled = True
            for part in waiting:
                ray.cancel(part)  # arrives there as Ctrl-C


def _play_part(payload: bytes, version: str, folder: str, command: str, failed_before: Marks, part: str) -> str | None:
    """Play one part in a Ray task; returns the reason if it stopped early."""
    same_version(version)
    scenarios, trust, study, access = pickle.loads(payload)
    set_trust(trust)
    for scenario in scenarios:
        register(scenario)
    if not Path(folder).is_dir():
        raise RunError(f"{folder}: a Ray worker does not see this folder; choose one that all machines share with -o")
    part_access = dataclasses.replace(access, part=part)
    return run_study(study, Path(folder), command=command, access=part_access, failed_before=failed_before).why
