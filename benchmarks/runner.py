"""Running a study: what is missing is played, tables follow, and only then the run is called complete."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import FrameType
from typing import Protocol

from llm_coop_envs.benchmarks.pool import Finished, Task, play_apart, play_here
from llm_coop_envs.benchmarks.runfolder import COMPLETE, INTERRUPTED, RUNNING, Run, locked, make_run, versions
from llm_coop_envs.benchmarks.study import Study
from llm_coop_envs.benchmarks.tables import need_arrow, read_episode, write_tables
from llm_coop_envs.core.settings import suggestion
from llm_coop_envs.errors import LlmCoopError, RunError, StudyError


class Watcher(Protocol):
    """Who is told how a run goes."""

    def begin(self, run: Run, todo: int, workers: int) -> None:
        """Episodes are about to be played; `todo` are missing."""

    def episode(self, condition: str, seed: int, seconds: float, left: float | None) -> None:
        """An episode is done; about `left` seconds remain, if that can be said."""

    def stopping(self) -> None:
        """The first Ctrl-C: running episodes are finished, no more are begun."""

    def tables(self) -> None:
        """All episodes are there; tables are being written."""


class Silent:
    """A watcher that looks away."""

    def begin(self, run: Run, todo: int, workers: int) -> None:
        """Ignore it."""

    def episode(self, condition: str, seed: int, seconds: float, left: float | None) -> None:
        """Ignore it."""

    def stopping(self) -> None:
        """Ignore it."""

    def tables(self) -> None:
        """Ignore it."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a run ended.

    Attributes:
        run: the run.
        played: episodes played in this session.
        finished: episodes that are there.
        complete: whether that is all of them, and the tables are written.
        seconds: how long this session took.
    """

    run: Run
    played: int
    finished: int
    complete: bool
    seconds: float


def run_study(
    study: Study, folder: Path, *, workers: int = 1, command: str = "", watcher: Watcher | None = None
) -> Outcome:
    """Play what is missing of a study, and write its tables.

    The first Ctrl-C finishes the running episodes and returns; a second one ends at once. Whatever happens, episodes
    that were written are kept, and the same call continues.

    Args:
        study: the study.
        folder: a new or empty folder, or one that holds a run of the same study.
        workers: processes; with 1, episodes are played in this one.
        command: how this session was started, for the record.
        watcher: is told how it goes.

    Returns:
        What there is now.

    Raises:
        RunError: the folder cannot be used or written, an episode failed, or a worker died.
        MissingExtra: pyarrow is not installed.
        KeyboardInterrupt: the second Ctrl-C.
    """
    if workers < 1:
        raise RunError(f"workers={workers}: must be 1 or more")
    need_arrow()
    started = time.monotonic()
    watcher = watcher or Silent()
    run = make_run(study, folder)
    with locked(folder), _Interrupts(watcher) as interrupts:
        missing = _missing(run)
        sessions = _sessions(run, command, workers)
        run.write_manifest(status=RUNNING, finished=run.total - len(missing), sessions=sessions)
        watcher.begin(run, len(missing), workers)
        played = 0
        try:
            measures = _Measures(run)
            for done in _timed(run, missing, workers, interrupts, watcher):
                played += 1
                run.manifest["finished"] += 1
                measures.check(done.task)
            complete = run.manifest["finished"] == run.total
            if complete:
                watcher.tables()
                write_tables(run)
        except BaseException:
            # On a full disk this fails too; the manifest then still says "running", which nobody takes for whole.
            with contextlib.suppress(LlmCoopError):
                _close(run, INTERRUPTED)
            raise
        _close(run, COMPLETE if complete else INTERRUPTED)
    return Outcome(
        run=run,
        played=played,
        finished=run.manifest["finished"],
        complete=complete,
        seconds=time.monotonic() - started,
    )


def _missing(run: Run) -> list[Task]:
    """The episodes to play, conditions taking turns; damaged files count as missing."""
    there = run.finished()
    tasks: list[Task] = []
    for i in range(max(len(c.seeds) for c in run.conditions)):
        for index, condition in enumerate(run.conditions):
            if i < len(condition.seeds) and not _usable(run, condition.name, condition.seeds[i], there):
                tasks.append((index, condition.seeds[i]))
    return tasks


def _usable(run: Run, condition: str, seed: int, there: set[tuple[str, int]]) -> bool:
    if (condition, seed) not in there:
        return False
    try:
        run.read_events(condition, seed)
    except RunError:
        return False
    return True


def _sessions(run: Run, command: str, workers: int) -> list[dict[str, object]]:
    session = {"started": _now(), "ended": None, "command": command, "workers": workers, "versions": versions()}
    return [*run.manifest["sessions"], session]


def _close(run: Run, status: str) -> None:
    sessions = [*run.manifest["sessions"][:-1], {**run.manifest["sessions"][-1], "ended": _now()}]
    run.write_manifest(status=status, sessions=sessions)


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _timed(
    run: Run, tasks: Sequence[Task], workers: int, interrupts: _Interrupts, watcher: Watcher
) -> Iterator[Finished]:
    """Play the tasks, telling the watcher how long the rest will take."""
    left = [0] * len(run.conditions)
    for index, _ in tasks:
        left[index] += 1
    spent: list[list[float]] = [[] for _ in run.conditions]
    if not tasks:
        return
    alone = workers == 1 or len(tasks) == 1
    episodes = play_here(run, tasks, interrupts.asked) if alone else play_apart(run, tasks, interrupts.asked, workers)
    with contextlib.closing(episodes):
        for done in episodes:
            index, seed = done.task
            left[index] -= 1
            spent[index].append(done.seconds)
            remaining = estimate(left, spent) / min(workers, max(1, sum(left)))
            watcher.episode(run.conditions[index].name, seed, done.seconds, remaining)
            yield done


def estimate(left: Sequence[int], spent: Sequence[Sequence[float]]) -> float:
    """Seconds of work that remain: each condition at its own mean, unknown ones at the mean of all.

    Args:
        left: episodes to play, by condition.
        spent: seconds of each episode that was played, by condition.
    """
    known = [seconds for one in spent for seconds in one]
    overall = sum(known) / len(known) if known else 0.0
    means = [sum(one) / len(one) if one else overall for one in spent]
    return sum(count * mean for count, mean in zip(left, means, strict=True))


class _Measures:
    """Finds out early whether the measures that a study asks for exist: after each scenario's first episode."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._known: set[str] = set()
        self._unseen = {c.scenario for c in run.conditions} if run.manifest["measures"] else set()

    def check(self, task: Task) -> None:
        condition = self._run.conditions[task[0]]
        if condition.scenario not in self._unseen:
            return
        self._known |= read_episode(self._run, condition, task[1]).metrics.keys()
        self._unseen.remove(condition.scenario)
        unknown = [name for name in self._run.manifest["measures"] if name not in self._known]
        if unknown and not self._unseen:
            raise StudyError(f"measures: nothing is called '{unknown[0]}'; {suggestion(unknown[0], self._known)}")


class _Interrupts:
    """Ctrl-C, first as a request, then as an order."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self._count = 0
        self._before: object = None
        self._installed = False

    def __enter__(self) -> _Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._hear)
            self._installed = True
        return self

    def __exit__(self, *_: object) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, self._before)  # type: ignore[arg-type]

    def asked(self) -> bool:
        return self._count > 0

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._count > 1:
            raise KeyboardInterrupt
        self._watcher.stopping()
