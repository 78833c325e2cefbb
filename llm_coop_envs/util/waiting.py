"""Running coroutines for callers who cannot await, whether or not an event loop runs around them."""

from __future__ import annotations

import asyncio
import contextvars
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


async def by_hands(work: Callable[[], Awaitable[None]], hands: int) -> None:
    """Let so many tasks work side by side, each pulling from what is left, until all have ended.

    A task per piece of work would cost memory for all that waits its turn, and a semaphore time that grows with the
    square of them. An error is raised when the others have ended.
    """
    for outcome in await asyncio.gather(*(work() for _ in range(hands)), return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


def run_through(coroutine: Coroutine[Any, Any, T], wait: Callable[[Coroutine[Any, Any, T]], T] | None = None) -> T:
    """The result of a coroutine that is not known to wait; no event loop is needed as long as it does not.

    Before it waits for the first time, the coroutine says so with `asyncio.sleep(0)`; the rest of it runs in a loop.

    Args:
        coroutine: what to run.
        wait: runs the rest of a coroutine that begins to wait; `run_coroutine` by default.

    Raises:
        RuntimeError: it waits without having said so.
    """
    try:
        pending = coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    if pending is None:
        return (wait or run_coroutine)(_go_on(coroutine))
    coroutine.close()
    raise RuntimeError(f"{coroutine!r} waits for something, but a policy in it says that it never does")


async def _go_on(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run the rest of a coroutine that was begun outside of a loop."""
    return await _rest_of(coroutine)


@types.coroutine
def _rest_of(coroutine: Coroutine[Any, Any, T]) -> Generator[Any, Any, T]:
    result: T = yield from coroutine
    return result


def call_apart(function: Callable[[], T]) -> T:
    """The result of a function that may run an event loop of its own, such as an agent's `run_sync`.

    Where a loop runs in this thread already, the function is called in another one meanwhile.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return function()
    with ThreadPoolExecutor(1, thread_name_prefix="llm_coop") as pool:
        return pool.submit(contextvars.copy_context().run, function).result()


def run_coroutine(coroutine: Coroutine[Any, Any, T], loop: asyncio.AbstractEventLoop | None = None) -> T:
    """The result of a coroutine.

    Where an event loop runs in this thread already (a notebook, an asynchronous server), the coroutine runs in another
    thread meanwhile, because a running loop can neither be entered again nor left.

    Args:
        coroutine: what to run.
        loop: in which event loop, one that is not running; by default in a new one.
    """

    def run(coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run(coroutine) if loop is None else loop.run_until_complete(coroutine)

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run(coroutine)
    begun: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def noted() -> T:
        task = asyncio.current_task()
        assert task is not None, "a coroutine of an event loop runs in a task"
        begun.append((asyncio.get_running_loop(), task))
        return await coroutine

    with ThreadPoolExecutor(1, thread_name_prefix="llm_coop") as pool:
        outcome = pool.submit(contextvars.copy_context().run, run, noted())
        try:
            return outcome.result()
        except KeyboardInterrupt:
            # Leaving waits for the thread: let it end what it does.
            if begun and not outcome.done():
                loop_of_task, task = begun[0]
                loop_of_task.call_soon_threadsafe(task.cancel)
            raise
