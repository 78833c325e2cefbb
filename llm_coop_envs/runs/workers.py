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
import traceback
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

from llm_coop_envs.core.registry import register, registered
from llm_coop_envs.errors import LlmCoopError, RunError, TrustError
from llm_coop_envs.runs.control import answer_orders, socket_path
from llm_coop_envs.runs.episode import play_episode
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.provenance import program_of
from llm_coop_envs.runs.steering import Steering
from llm_coop_envs.storage.files import write_whole
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.util.interrupts import on_interrupt
from llm_coop_envs.util.trust import current_trust, set_trust
from llm_coop_envs.util.waiting import run_coroutine

Task = tuple[int, int]  # index of the condition, seed
POLL_SECONDS = 0.1


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
) -> Generator[Finished, None, None]:
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
) -> Generator[Finished, None, None]:
    """Play episodes in worker processes.

    When `stop` says so, running episodes are finished and no more are begun. When the caller leaves early, by an
    exception or by closing the iterator, the workers are ended at once; episodes that they had not written are lost.

    Args:
        run: the run.
        tasks: the episodes, in the order in which they are begun; each is taken when it is begun.
        stop: asked several times a second whether to stop.
        workers: the number of processes.
        steering: says as often how many episodes may be played at the same time; gets the names of the workers.

    Raises:
        RunError: an episode failed or a worker died.
    """
    waiting, over = iter(tasks), False
    busy: dict[Connection, Task] = {}
    steering = steering or Steering()
    with _start_workers(run, workers, steering) as connections:
        idle = list(connections)
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
                except (EOFError, OSError) as error:
                    name = run.conditions[task[0]].name
                    raise RunError(
                        f"the process that played condition '{name}', seed {task[1]}, ended unexpectedly "
                        "(out of memory?); fewer --workers need less"
                    ) from error
                if isinstance(answer, Exception):
                    raise answer
                idle.append(ready)
                yield answer


@contextlib.contextmanager
def _start_workers(run: Run, count: int, steering: Steering) -> Iterator[list[Connection]]:
    context = multiprocessing.get_context("spawn")
    try:
        given = pickle.dumps((registered(), current_trust()))
    except Exception as error:  # anything that classes from outside raise
        raise RunError(f"a registered scenario cannot be given to other processes ({error}); use one worker") from error
    processes = []
    connections = []
    steering.workers = [secrets.token_hex(8) for _ in range(count)]
    try:
        # Children inherit an ignored SIGINT from their very first instruction: Ctrl-C is the parent's to handle.
        with on_interrupt(signal.SIG_IGN):
            for name in steering.workers:
                ours, theirs = context.Pipe()
                process = context.Process(target=_serve_tasks, args=(run, given, theirs, name), daemon=True)
                process.start()
                theirs.close()
                processes.append(process)
                connections.append(ours)
        yield connections
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


def _play_one(loop: asyncio.AbstractEventLoop, run: Run, task: Task, steering: Steering) -> Finished:
    """Play and write one episode."""
    condition, seed = run.conditions[task[0]], task[1]
    started = time.perf_counter()
    try:
        with steering.follow_episode(f"{condition.name}/{seed}") as follow:
            played = run_coroutine(play_episode(run.manifest["seed"], condition, seed, on_step=follow), loop)
        files = run.write_events(condition.name, seed, played)
    except (RunError, TrustError):
        raise
    except Exception as error:
        raise record_failure(run, condition, seed, error) from error
    return Finished(task=task, seconds=time.perf_counter() - started, files=files)


def record_failure(run: Run, condition: Condition, seed: int, error: Exception) -> RunError:
    """Write the traceback of an episode that raised to a file, and return the error to raise instead."""
    path = run.folder / "failures" / f"{condition.name}-{seed}.txt"
    sentence = f"condition '{condition.name}', seed {seed} failed: {type(error).__name__}: {error}"
    with contextlib.suppress(RunError):
        write_whole(path, "".join(traceback.format_exception(error)).encode())
        sentence += f"; the traceback is in {path}"
    return RunError(sentence)


def usable_cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
