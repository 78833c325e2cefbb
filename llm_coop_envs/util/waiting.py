"""Running coroutines for callers who cannot await, whether or not an event loop runs around them."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Awaitable, Callable, Coroutine
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


def run_through(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits; no event loop is needed.

    Raises:
        RuntimeError: it waits.
    """
    try:
        coroutine.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    coroutine.close()
    raise RuntimeError(f"{coroutine!r} waits for something, but a policy in it says that it never does")


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
