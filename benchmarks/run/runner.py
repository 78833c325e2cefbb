"""Running a study: what is missing is played, tables follow, and only then the run is called complete."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol

from llm_coop_envs.benchmarks.run.asking import Asking
from llm_coop_envs.benchmarks.run.claims import Claims, alone, need_locks
from llm_coop_envs.benchmarks.run.folder import Run, check_words, described_models, make_run, open_run
from llm_coop_envs.benchmarks.run.tables import read_episode, write_tables
from llm_coop_envs.benchmarks.run.workers import Finished, Task, play_apart, play_here
from llm_coop_envs.benchmarks.study.players import asks_a_model
from llm_coop_envs.benchmarks.study.study import Study
from llm_coop_envs.core.settings import suggestion
from llm_coop_envs.errors import LlmCoopError, RunError, StudyError
from llm_coop_envs.storage.folder import COMPLETE, INTERRUPTED, MANIFEST, RUNNING
from llm_coop_envs.storage.parquet import need_arrow

if TYPE_CHECKING:
    from llm_coop_envs.benchmarks.run.side_by_side import SideBySide


class Watcher(Protocol):
    """Who is told how a run goes."""

    def begin(self, run: Run, todo: int, workers: int) -> None:
        """Episodes are about to be played; `todo` are missing. No workers: side by side in this process."""

    def episode(self, condition: str, seed: int, seconds: float, left: float | None) -> None:
        """An episode is done; about `left` seconds remain, if that can be said."""

    def stopping(self) -> None:
        """The first Ctrl-C: running episodes are finished, no more are begun."""

    def tables(self) -> None:
        """All episodes are there; tables are being written."""

    def say(self, sentence: str) -> None:
        """Something the user should know, once."""

    def asked(self, line: str) -> None:
        """What models were asked so far, and what it cost; several times a second."""


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

    def say(self, sentence: str) -> None:
        """Ignore it."""

    def asked(self, line: str) -> None:
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
        why: why it stopped before it was complete, other than by Ctrl-C.
        elsewhere: episodes that other parts of the run are playing.
    """

    run: Run
    played: int
    finished: int
    complete: bool
    seconds: float
    why: str | None = None
    elsewhere: int = 0


def run_study(
    study: Study,
    folder: Path,
    *,
    workers: int = 1,
    command: str = "",
    watcher: Watcher | None = None,
    asking: Asking | None = None,
) -> Outcome:
    """Play what is missing of a study, and write its tables.

    Studies of rules and learners are played in worker processes. Where a language model plays, all episodes are played
    in this process, side by side, so that many questions are under way.

    The first Ctrl-C finishes what is under way (episodes; with models, questions) and returns; a second one ends at
    once. Whatever happens, episodes that were written are kept, and the same call continues.

    Args:
        study: the study.
        folder: a new or empty folder, or one that holds a run of the same study.
        workers: processes; with 1, episodes are played in this one.
        command: how this session was started, for the record.
        watcher: is told how it goes.
        asking: how models are asked.

    Returns:
        What there is now.

    Raises:
        RunError: the folder cannot be used or written, an episode failed, or a worker died.
        RunStopped: a model cannot be asked.
        NotInJournal: a replay asked what was not recorded.
        MissingExtra: a library is not installed.
        KeyboardInterrupt: the second Ctrl-C.
    """
    if workers < 1:
        raise RunError(f"workers={workers}: must be 1 or more")
    need_arrow()
    if (folder / MANIFEST).is_file():
        open_run(folder).check_same(study.identity)
    session = _Session(study, workers, command, watcher or Silent(), asking or Asking())
    return session.play(folder)


class _Session:
    """One call of `run_study`."""

    def __init__(self, study: Study, workers: int, command: str, watcher: Watcher, asking: Asking) -> None:
        self._started = time.monotonic()
        self._study = study
        self._workers = workers
        self._watcher = watcher
        self._asking = asking
        self._endpoints = asking.endpoints(study)
        self._models = described_models(study)
        self._table: SideBySide | None = None
        self._claims: Claims | None = None
        self._number = 0
        if asking.part is not None:
            need_locks()
            if not study.models:
                raise RunError("--part: only runs in which a language model plays have parts; leave it out")
        self._record: dict[str, Any] = {"command": command, "workers": 0 if study.models else workers}
        if study.models:
            asking.check(self._endpoints)
            if asking.replay is not None and (asking.replay / MANIFEST).is_file():
                check_words(open_run(asking.replay), self._models)
            self._record["asking"] = asking.describe(self._endpoints)

    def play(self, folder: Path) -> Outcome:
        part = self._asking.part
        with self._guard(folder):
            run = make_run(self._study, folder, self._models)
        claims = self._claims = None if part is None else Claims(run, part)
        with run.locked(shared=part is not None), _Interrupts(self._watcher) as interrupts:
            missing = _missing(run)
            self._begin(run, len(missing))
            self._watcher.begin(run, len(missing), int(self._record["workers"]))
            count = _Count(run, missing, self._workers, self._watcher)
            elsewhere = 0
            try:
                if missing:
                    self._episodes(run, missing, interrupts, count)
                with self._guard(folder):
                    complete = self._complete(run)
                if claims is not None and not complete:
                    elsewhere = claims.elsewhere()
            except BaseException:
                # On a full disk this fails too; the manifest then still says "running", which nobody takes for whole.
                with contextlib.suppress(LlmCoopError):
                    self._close(run, INTERRUPTED)
                raise
            finally:
                if claims is not None:
                    claims.close()
            self._close(run, COMPLETE if complete else RUNNING if elsewhere else INTERRUPTED)
        return Outcome(
            run=run,
            played=count.played,
            finished=run.manifest["finished"],
            complete=complete,
            seconds=time.monotonic() - self._started,
            why=None if self._table is None else self._table.why,
            elsewhere=0 if interrupts.asked() else elsewhere,
        )

    def _guard(self, folder: Path) -> contextlib.AbstractContextManager[None]:
        """Keeps other parts from the manifest."""
        return contextlib.nullcontext() if self._asking.part is None else alone(folder)

    def _begin(self, run: Run, missing: int) -> None:
        with self._guard(run.folder):
            run.reload()
            run.manifest["finished"] = run.total - missing
            self._number = run.begin(**self._record)

    def _complete(self, run: Run) -> bool:
        """Write the tables if all episodes are there; whether they are."""
        if self._asking.part is not None:
            run.reload()
            run.manifest["finished"] = len(run.finished())
        complete = bool(run.manifest["finished"] == run.total)
        # Another part may have been the last one, and have seen it.
        if complete and not (self._asking.part is not None and run.complete):
            self._watcher.tables()
            write_tables(run)
        return complete

    def _episodes(self, run: Run, tasks: Sequence[Task], interrupts: _Interrupts, count: _Count) -> None:
        if self._study.models:
            from llm_coop_envs.benchmarks.run.side_by_side import SideBySide

            self._table = SideBySide(run, tasks, self._asking, self._endpoints, self._watcher, count.done, self._claims)
            interrupts.listen(self._table.interrupt)
            try:
                asyncio.run(self._table.play())
            except asyncio.CancelledError:
                raise KeyboardInterrupt from None
            finally:
                interrupts.listen(None)
            return
        alone = self._workers == 1 or len(tasks) == 1
        asked = interrupts.asked
        episodes = play_here(run, tasks, asked) if alone else play_apart(run, tasks, asked, self._workers)
        with contextlib.closing(episodes):
            for done in episodes:
                count.done(done)

    def _close(self, run: Run, status: str) -> None:
        asked = {} if self._table is None else {"asked": self._table.record()}
        with self._guard(run.folder):
            finished = run.manifest["finished"]
            run.reload()
            done = COMPLETE if run.complete and self._asking.part is not None else status
            run.end(self._number, done, asked, finished=max(finished, run.manifest["finished"]))


class _Count:
    """Counts what was played, and says how long the rest will take."""

    def __init__(self, run: Run, tasks: Sequence[Task], workers: int, watcher: Watcher) -> None:
        self.played = 0
        self._run = run
        self._workers = workers
        self._watcher = watcher
        self._measures = _Measures(run)
        self._side_by_side = any(asks_a_model(policy) for policy in run.manifest["policies"])
        self._left = [0] * len(run.conditions)
        for index, _ in tasks:
            self._left[index] += 1
        self._spent: list[list[float]] = [[] for _ in run.conditions]

    def done(self, done: Finished) -> None:
        """An episode is there."""
        index, seed = done.task
        self._left[index] -= 1
        self._spent[index].append(done.seconds)
        remaining = None
        if not self._side_by_side:
            remaining = estimate(self._left, self._spent) / min(self._workers, max(1, sum(self._left)))
        self._watcher.episode(self._run.conditions[index].name, seed, done.seconds, remaining)
        self.played += 1
        self._run.manifest["finished"] += 1
        self._measures.check(done.task)


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
        self._listener: Callable[[int], None] | None = None
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

    def listen(self, listener: Callable[[int], None] | None) -> None:
        """Tell someone the count of every Ctrl-C from now on, who also obeys the second one; `None` for nobody."""
        self._listener = listener
        if self._count and listener is not None:
            listener(self._count)

    def _hear(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if self._listener is not None:
            self._listener(self._count)
        elif self._count > 1:
            raise KeyboardInterrupt
        if self._count == 1:
            self._watcher.stopping()
