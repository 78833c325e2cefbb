import asyncio
import contextlib
import threading

import pytest

from llm_coop_envs.util.waiting import call_apart, run_coroutine, run_through


async def at_once():
    return 7


async def later():
    await asyncio.sleep(0.001)
    return threading.current_thread()


async def failing():
    await asyncio.sleep(0)
    raise LookupError("no such thing")


def test_what_never_waits_needs_no_loop():
    assert run_through(at_once()) == 7

    async def inside():
        return run_through(at_once())

    assert asyncio.run(inside()) == 7


def test_what_waits_after_all_goes_on_in_a_loop():
    async def waiting(seen):
        seen.append("begun")
        with contextlib.suppress(LookupError):
            await failing()
        await asyncio.sleep(0.001)
        return [*seen, asyncio.get_running_loop().is_running()]

    async def inside():
        return run_through(waiting([]))

    assert run_through(waiting([])) == ["begun", True]
    assert asyncio.run(inside()) == ["begun", True]
    with pytest.raises(LookupError, match="no such thing"):
        run_through(failing())
    loop = asyncio.new_event_loop()
    assert run_through(waiting([]), loop.run_until_complete) == ["begun", True]
    loop.close()


def test_what_waits_without_a_word_is_refused():
    async def inside():
        with pytest.raises(RuntimeError, match="later at 0x"):
            run_through(later())

    asyncio.run(inside())


def test_a_loop_of_ones_own_runs_in_another_thread():
    async def inside():
        return call_apart(lambda: asyncio.run(later()))

    assert call_apart(lambda: asyncio.run(later())) is threading.current_thread()
    assert asyncio.run(inside()) is not threading.current_thread()


def test_without_a_loop_it_runs_here():
    assert run_coroutine(later()) is threading.current_thread()
    loop = asyncio.new_event_loop()
    assert run_coroutine(later(), loop) is threading.current_thread()
    loop.close()


def test_inside_a_loop_it_runs_beside():
    loop = asyncio.new_event_loop()

    async def inside():
        with pytest.raises(LookupError, match="no such thing"):
            run_coroutine(failing())
        return run_coroutine(later()), run_coroutine(later(), loop), run_coroutine(later(), loop)

    assert threading.current_thread() not in asyncio.run(inside())
    # The same loop serves inside and outside.
    assert run_coroutine(later(), loop) is threading.current_thread()
    loop.close()


def test_an_interrupt_ends_what_runs_beside(monkeypatch):
    ended = []

    async def endless():
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    async def inside():
        from concurrent.futures import Future

        waited = Future.result

        def interrupted(self, timeout=None):
            while not self.running():
                pass
            monkeypatch.setattr(Future, "result", waited)
            threading.Event().wait(0.05)
            raise KeyboardInterrupt

        monkeypatch.setattr(Future, "result", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_coroutine(endless())

    asyncio.run(inside())
    assert ended == [True]
