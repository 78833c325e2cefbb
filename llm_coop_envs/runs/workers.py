"""Play episodes in worker processes: one event loop each, one episode at a time."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import multiprocessing.connection
import os
import pickle
import secrets
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from llm_coop_envs.core.registry import register, registered
from llm_coop_envs.errors import LlmCoopError, RunError
from llm_coop_envs.runs.control import answer_orders, socket_path
from llm_coop_envs.runs.episode import play_episode
from llm_coop_envs.runs.failures import Failed, Task, is_own, record_failure
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.provenance import program_of
from llm_coop_envs.runs.steering import Steering
from llm_coop_envs.util.children import forget_safe_path, safe_path
from llm_coop_envs.util.interrupts import on_interrupt
from llm_coop_envs.util.trust import current_trust, set_trust
from llm_coop_envs.util.waiting import run_coroutine

POLL_SECONDS = 0.1
_DIED = "its process ended unexpectedly (out of memory?); fewer --workers need less"


@dataclass(frozen=True, kw_only=True)
class Finished:
    """An episode that was played and written.

    Attributes:
        task: the episode.
        seconds: the time that it took.
        files: its file and fingerprint, for the manifest.
    """

    task: Task
    seconds: float
    files: Mapping[str, str]


def play_here(
    run: Run, tasks: Iterable[Task], stop: Callable[[], bool], steering: Steering | None = None
) -> Generator[Finished | Failed, None, None]:
    """Play episodes in this process, one after the other, until `stop` says so; see `play_apart`."""
    steering = steering or Steering()
    loop = asyncio.new_event_loop()
    try:
        for task in tasks:
            while steering.concurrency() < 1 and not stop():
                time.sleep(POLL_SECONDS)
            if stop():
                return
            yield _play_one(loop, run, task, steering)
    finally:
        loop.close()


def play_apart(
    run: Run,
    tasks: Iterable[Task],
    stop: Callable[[], bool],
    workers: int,
    steering: Steering | None = None,
) -> Generator[Finished | Failed, None, None]:
    """Play episodes in worker processes.

    When `stop` says so, running episodes are finished and no more are begun. When the caller leaves early, by an
    exception or by closing the iterator, the workers are ended at once; episodes that they had not written are lost.

    Args:
        run: the run.
        tasks: the episodes, in the order in which they are begun; each is taken when it is begun.
        stop: asked several times a second whether to stop.
        workers: the number of processes.
        steering: says as often how many episodes may be played at the same time; gets the names of the workers.

    Yields:
        Each episode that ended. One whose process dies has failed, and another process takes its place.

    Raises:
        LlmCoopError: no episode can be played.
    """
    waiting, over = iter(tasks), False
    busy: dict[Connection, Task] = {}
    steering = steering or Steering()
    with _worker_pool(run, steering) as start:
        idle = [start() for _ in range(workers)]
        while True:
            while idle and not over and len(busy) < steering.concurrency() and not stop():
                if (task := next(waiting, None)) is None:
                    over = True
                    break
                connection = idle.pop()
                busy[connection] = task
                with contextlib.suppress(OSError):  # a dead worker is found below
                    connection.send(task)
            if not busy and (over or stop()):
                return
            if not busy:
                time.sleep(POLL_SECONDS)
                continue
            for ready in multiprocessing.connection.wait(list(busy), timeout=POLL_SECONDS):
                assert isinstance(ready, Connection)
                task = busy.pop(ready)
                try:
                    answer = ready.recv()
                except (EOFError, OSError):
                    sentence = record_failure(run, run.conditions[task[0]], task[1], _DIED)
                    answer, ready = Failed(task=task, sentence=sentence), start()
                if isinstance(answer, Exception):
                    raise answer
                idle.append(ready)
                yield answer


@contextlib.contextmanager
def _worker_pool(run: Run, steering: Steering) -> Iterator[Callable[[], Connection]]:
    """Yield a function that starts a worker process; all of them end with the block."""
    context = multiprocessing.get_context("spawn")
    try:
        given = pickle.dumps((registered(), current_trust()))
    except Exception as error:  # anything that classes from outside raise
        raise RunError(f"a registered scenario cannot be given to other processes ({error}); use one worker") from error
    processes = []
    connections = []

    def start() -> Connection:
        name = secrets.token_hex(8)
        steering.workers = [*steering.workers, name]
        # Children inherit an ignored SIGINT from their very first instruction: Ctrl-C is the parent's to handle.
        with on_interrupt(signal.SIG_IGN), safe_path():
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve_tasks, args=(run, given, theirs, name), daemon=True)
            process.start()
            theirs.close()
        processes.append(process)
        connections.append(ours)
        return ours

    try:
        yield start
        for connection in connections:
            connection.close()
        for process in processes:
            process.join()
    finally:
        for process in processes:
            if process.is_alive():
                process.terminate()
        for process in processes:
            process.join()
        for name in steering.workers:
            with contextlib.suppress(OSError, RunError):  # a worker that was ended leaves its socket behind
                socket_path(name).unlink(missing_ok=True)
        steering.workers = ()


def _serve_tasks(run: Run, given: bytes, connection: Connection, name: str) -> None:
    """Serve as a worker process: play the tasks that the parent sends until it closes the connection."""
    forget_safe_path()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    scenarios, trust = pickle.loads(given)
    set_trust(trust)
    for scenario in scenarios:
        register(scenario)
    for condition in run.conditions:
        with contextlib.suppress(LlmCoopError):  # what cannot be loaded is said when its first episode is played
            program_of(condition)  # hashes the files now, before somebody edits them
    loop = asyncio.new_event_loop()
    steering = Steering()
    with contextlib.ExitStack() as opened:
        with contextlib.suppress(OSError, RunError):  # the main process has told the user
            opened.enter_context(answer_orders(name, steering))
        while True:
            try:
                task = connection.recv()
            except (EOFError, OSError):
                return
            answer: Any
            try:
                answer = _play_one(loop, run, task, steering)
            except LlmCoopError as error:
                answer = error
            try:
                connection.send(answer)
            except OSError:
                return


def _end_with_parent() -> None:
    """End this process when its parent ends, even within an episode: learning alone can take hours."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    multiprocessing.connection.wait([parent.sentinel])
    os._exit(1)


def _play_one(loop: asyncio.AbstractEventLoop, run: Run, task: Task, steering: Steering) -> Finished | Failed:
    """Play and write one episode."""
    condition, seed = run.conditions[task[0]], task[1]
    started = time.perf_counter()
    try:
        with steering.follow_episode(f"{condition.name}/{seed}") as follow:
            played = run_coroutine(play_episode(run.manifest["seed"], condition, seed, on_step=follow), loop)
        files = run.write_events(condition.name, seed, played)
    except Exception as error:
        if not is_own(error):
            raise
        return Failed(task=task, sentence=record_failure(run, condition, seed, error))
    return Finished(task=task, seconds=time.perf_counter() - started, files=files)
