import asyncio

import pytest
from dispatching import Bench, fine, run
from llm_tools import reply

from llm_coop_envs.policies.llm.chat import BudgetReached, ChatError, EndpointStopped
from llm_coop_envs.policies.llm.clients.endpoint import Limits, Retry


def test_a_dead_endpoint_is_paused_told_and_found_alive_again():
    bench_of = {}

    def act(number, job):
        alive = bench_of["bench"].clock.time() > 1040
        return None if alive else ChatError("there cannot be reached", kind="network")

    async def use(bench):
        bench_of["bench"] = bench
        found = await bench.all(64)
        assert not any(isinstance(r, Exception) for r in found)

    bench = run(act, use, limits=Limits(start=64))
    assert "there does not answer (12 failures in a row" in bench.said[0]
    assert "paused for 5 s" in bench.said[0]
    assert "paused for 10 s" in bench.said[1]
    assert bench.said[-1] == "there answers again"
    assert bench.counters.paused is None
    # after the first wave of 64: one probe per pause
    dead = [at for at, _ in bench.begun if 1001 < at <= 1040]
    assert len(dead) <= 3


@pytest.mark.parametrize(
    ("kind", "row"), [("network", 10), ("timeout", 10), ("server", 10), ("server", 100), ("bad_reply", 100)]
)
def test_an_endpoint_that_answers_seven_of_ten_is_not_said_to_be_silent(kind, row):
    """Nor one that answers with errors, thirty in a row."""
    error = ChatError("there had a fault", kind=kind)
    patient = Retry(attempts=1000, total=1e6)
    bench = run(
        lambda number, job: error if number % row >= 0.7 * row else None,
        lambda bench: bench.all(300),
        **{"limits": Limits(start=16), "retry": patient},
    )
    assert bench.counters.errors[kind] > 60
    assert not [sentence for sentence in bench.said if "does not answer" in sentence or "has not answered" in sentence]


def test_a_pause_is_shown_while_it_lasts():
    async def use(bench):
        future = bench.submit(0)
        await bench.clock.pass_time(3)
        assert bench.counters.paused == "there asks to wait"
        await bench.clock.until(future)
        assert bench.counters.paused is None

    run(
        lambda number, job: ChatError("wait", kind="rate_limit", retry_after=20.0) if number == 1 else None,
        use,
    )


def test_an_endpoint_that_stays_dead_stops_the_run_after_half_an_hour():
    async def use(bench):
        found = await bench.all(64)
        assert all(isinstance(r, EndpointStopped) for r in found)
        assert "has not answered for" in str(found[0])

    bench = run(lambda number, job: ChatError("gone", kind="network"), use, limits=Limits(start=64))
    assert 1800 < bench.clock.time() - 1000 < 1800 + 200
    assert len(bench.begun) < 64 + 40


def test_time_in_which_the_endpoint_is_paused_does_not_count_against_a_question():
    bench_of = {}

    def act(number, job):
        return None if bench_of["bench"].clock.time() > 1700 else ChatError("gone", kind="network")

    async def use(bench):
        bench_of["bench"] = bench
        found = await bench.all(30)
        assert not any(isinstance(r, Exception) for r in found)

    run(act, use, limits=Limits(start=30), retry=Retry(total=60))


REFUSED = ChatError("there cannot be reached (Connection refused)", kind="network")


@pytest.mark.parametrize(
    "error",
    [
        REFUSED,
        ChatError("there broke off the connection", kind="network", maybe_paid=True),
        ChatError("there took no connection for 30 s", kind="timeout"),
        ChatError("there answered with something that is not JSON", kind="bad_reply", maybe_paid=True),
    ],
)
def test_an_endpoint_that_never_answers_is_told_at_once_and_given_up_within_thirty_seconds(error):
    async def use(bench):
        found = await bench.all(64)
        assert all(isinstance(r, EndpointStopped) for r in found)
        assert f"{error}, and has not answered anything for" in str(found[0])
        assert "give --wait SECONDS" in str(found[0])

    bench = run(lambda number, job: error, use, patience=20.0, latency=0.1)
    assert 20 <= bench.clock.time() - 1000 < 30
    assert bench.said == [f"{error}; tried again for 20 s (--wait says how long)"]
    assert len(bench.begun) < 8 + 25


def test_a_server_that_is_started_later_is_waited_for():
    async def use(bench):
        bench.act = lambda number, job: REFUSED if bench.clock.time() < 4000 else None
        found = await bench.all(64)
        assert not any(isinstance(r, Exception) for r in found)

    bench = run(fine, use, patience=3600.0)
    assert bench.clock.time() < 4020
    assert len(bench.said) == 2
    assert bench.said[1] == "there answers now"


def test_a_server_that_answered_once_is_given_half_an_hour():
    async def use(bench):
        await bench.all(1)
        bench.act = lambda number, job: REFUSED if bench.clock.time() < 1700 else None
        found = await bench.clock.until(asyncio.gather(*[bench.submit(n) for n in range(1, 30)]))
        assert len(found) == 29

    run(fine, use, patience=20.0, retry=Retry(attempts=40))


def hanging(there, **fields):
    async def is_reachable():
        return there

    async def use(bench):
        futures = [bench.submit(n) for n in range(20)]
        await bench.clock.pass_time(30)
        return futures

    return use, {"patience": 20.0, "latency": 10_000.0, "is_reachable": is_reachable, **fields}


def test_a_server_that_hangs_from_the_start_is_given_up_within_thirty_seconds():
    use, fields = hanging(there=False)

    async def and_look(bench):
        futures = await use(bench)
        assert all(future.done() for future in futures)
        for future in futures:
            with pytest.raises(EndpointStopped, match="first question for 20 s, nor anything else"):
                await future
        await bench.dispatcher.drain()

    run(fine, and_look, **fields)


def test_a_silent_server_that_is_started_later_is_told_and_waited_for():
    use, fields = hanging(there=False, patience=600.0)

    async def and_wait(bench):
        futures = await use(bench)
        assert len(bench.said) == 1
        assert "nor anything else; it is waited for 600 s (--wait)" in bench.said[0]
        await bench.clock.pass_time(600)
        assert all(future.done() for future in futures)
        found = await asyncio.gather(*futures, return_exceptions=True)
        assert all(isinstance(one, EndpointStopped) for one in found)

    run(fine, and_wait, **fields)


def test_a_server_that_is_slow_at_first_is_told_and_waited_for():
    use, fields = hanging(there=True, latency=120.0)

    async def and_wait(bench):
        futures = await use(bench)
        assert not any(future.done() for future in futures)
        await bench.clock.until(asyncio.gather(*futures))

    bench = run(fine, and_wait, **fields)
    assert len(bench.said) == 1
    assert "it is there, and may be loading its model: it is waited for" in bench.said[0]


def test_an_endpoint_that_is_not_there_is_never_stopped_at_the_budget():
    def act(number, job):
        return REFUSED if number < 10 else BudgetReached("stopped at the budget: 9 of 9 calls are used")

    async def use(bench):
        found = await bench.all(20)
        assert all(isinstance(r, EndpointStopped) for r in found)
        assert str(found[0]).startswith(str(REFUSED))
        assert "stopped at the budget" not in str(found[0])

    run(act, use, patience=20.0)


def test_a_wait_of_a_day_is_no_wait_and_no_negative_time():
    async def use(bench):
        found = await bench.all(3)
        assert "busy; it asks to wait 86400 s, more than the 1800 s that are waited at most" in str(found[0])
        assert "-" not in str(found[0])

    run(lambda number, job: ChatError("busy", kind="rate_limit", status=429, retry_after=86400.0), use)


def test_answers_on_their_way_to_the_disk_count_as_answers():
    """When answers counted after the disk, and failures at once, a server that answered half was held for dead."""

    class Slow(Bench):
        async def attempt(self, job):
            if int(job.key.agent.split("_")[1]) % 2 and job.attempts == 1:
                raise ChatError("oh", kind="server")
            self.dispatcher.note_answer()
            await self.clock.sleep(5)  # the disk
            return reply()

    async def go():
        bench = Slow(fine, limits=Limits(start=64))
        await bench.all(64)
        return bench

    assert not asyncio.run(go()).said


@pytest.mark.parametrize(("status", "advice"), [(307, "give it with --base-url"), (418, "the server's own log")])
def test_a_redirect_and_an_unknown_refusal_get_advice_that_helps(status, advice):
    refused = ChatError("there sends elsewhere (to http://other/v1)", kind="bad_request", status=status)
    bench = run(lambda number, job: refused, lambda bench: bench.all(1))
    assert advice in str(bench.stops[0])
    assert "sampling settings" not in str(bench.stops[0])
