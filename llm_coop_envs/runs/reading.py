"""Reading of many episodes: in this process, or in several, where whoever started the program allows it."""

from __future__ import annotations

import contextlib
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any, TypeVar

from llm_coop_envs.core.registry import register, registered
from llm_coop_envs.errors import RunError
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.util.children import forget_safe_path, safe_path
from llm_coop_envs.util.interrupts import on_interrupt
from llm_coop_envs.util.trust import current_trust, set_trust

Episodes = Sequence[tuple[Condition, int]]
Part = TypeVar("Part")

PORTION = 250
FEWEST = 2_000
"""From how many episodes on further processes are worth the second that each takes to start."""
_processes = 1
_run: Run


@contextlib.contextmanager
def reading_in(processes: int) -> Iterator[None]:
    """Let many episodes be read in so many processes meanwhile.

    `multiprocessing` imports the main module again in each, which a script without `if __name__ == "__main__"` does not
    survive. So it is one process unless a command says otherwise.
    """
    global _processes
    outer, _processes = _processes, processes
    try:
        yield
    finally:
        _processes = outer


def read_portions(run: Run, read: Callable[[Run, Episodes], Part]) -> Iterator[Part]:
    """Read every finished episode, conditions in the study's order, seeds in the condition's.

    Args:
        run: the run.
        read: reads some of its episodes; a module's function, as another process may call it.

    Yields:
        What `read` made of each portion, in order.

    Raises:
        RunError: an episode's file is damaged, or a process ended.
    """
    finished = run.finished()
    episodes = [(condition, seed) for condition, seed in run.episodes if (condition.name, seed) in finished]
    portions = [episodes[first : first + PORTION] for first in range(0, len(episodes), PORTION)]
    context = _packed((run, registered(), current_trust())) if _processes > 1 and len(episodes) >= FEWEST else None
    if context is None:
        yield from (read(run, portion) for portion in portions)
        return
    indices = {condition.name: index for index, condition in enumerate(run.conditions)}
    pool = ProcessPoolExecutor(_processes, mp_context=get_context("spawn"), initializer=_begin, initargs=(context,))
    try:
        # Processes that are started here inherit that Ctrl-C is the parent's to handle.
        with on_interrupt(signal.SIG_IGN), safe_path():
            parts = [
                pool.submit(_read_packed, read, [(indices[condition.name], seed) for condition, seed in portion])
                for portion in portions
            ]
        for portion, part in zip(portions, parts, strict=True):
            packed = part.result()
            yield read(run, portion) if packed is None else pickle.loads(packed)
    except BrokenProcessPool as error:
        raise RunError(f"{run.folder}: a process that read episodes ended unexpectedly (out of memory?)") from error
    finally:
        pool.shutdown(cancel_futures=True)


def _begin(context: bytes) -> None:
    """Begin as a process that reads."""
    global _run
    forget_safe_path()
    _run, scenarios, trust = pickle.loads(context)
    set_trust(trust)
    for scenario in scenarios:
        register(scenario)


def _read_packed(read: Callable[[Run, Episodes], Any], episodes: Sequence[tuple[int, int]]) -> bytes | None:
    """What `read` makes of episodes, by the index of their condition and seed; `None` if it cannot be sent."""
    return _packed(read(_run, [(_run.conditions[index], seed) for index, seed in episodes]))


def _packed(data: Any) -> bytes | None:
    """Data for another process; `None` if it holds what cannot be sent, as classes from outside may."""
    try:
        return pickle.dumps(data, pickle.HIGHEST_PROTOCOL)
    except Exception:
        return None
