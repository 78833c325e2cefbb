import asyncio
import random

import pytest
from llm_tools import TurnedClock, key, question, reply

from llm_coop_envs.errors import RunError
from llm_coop_envs.policies.llm.asking.counters import RequestCounters
from llm_coop_envs.policies.llm.asking.dispatch import Dispatcher, Job
from llm_coop_envs.policies.llm.chat import BudgetReached, ChatError, EndpointStopped, RunStopped, Usage
from llm_coop_envs.policies.llm.clients.endpoint import Limits, Retry


class Bench:
    """A dispatcher over a scripted endpoint, and what it did."""

    def __init__(self, act, *, limits=None, retry=None, latency=1.0, **more):
        self.clock = TurnedClock()
        self.act = act
        self.latency = latency
        self.begun: list[tuple[float, int]] = []
        self.done: set[int] = set()
        self.under_way = 0
        self.most = 0
        self.said: list[str] = []
        self.stops: list[RunStopped] = []
        self.counters = RequestCounters()
        self.dispatcher = Dispatcher(
            attempt=self.attempt,
            where="there",
            limits=limits or Limits(),
            retry=retry or Retry(),
            counters=self.counters,
            notify=self.said.append,
            stop=self.stop,
            clock=self.clock,
            generator=random.Random(0),
            **more,
        )

    async def attempt(self, job):
        self.begun.append((self.clock.time(), int(job.key.agent.split("_")[1])))
        number = len(self.begun)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            if self.latency:
                await self.clock.sleep(self.latency)
            found = self.act(number, job)
            if isinstance(found, BaseException):
                raise found
            return found or reply(str(job.key.agent))
        finally:
            self.under_way -= 1

    def stop(self, reason):
        self.stops.append(reason)
        self.dispatcher.halt(reason)

    def submit(self, number, tokens=0.0):
        request = question()
        future = asyncio.get_running_loop().create_future()

        def done(found):
            assert number not in self.done
            self.done.add(number)
            if isinstance(found, Exception):
                future.set_exception(found)
            else:
                future.set_result(found)

        self.dispatcher.submit(Job(key(number), request, request.digest(), tokens, done))
        return future

    async def all(self, count, **fields):
        futures = [self.submit(n, **fields) for n in range(count)]
        done = asyncio.gather(*futures, return_exceptions=True)
        return await self.clock.until(done)


def run(act, use, **fields):
    async def go():
        bench = Bench(act, **fields)
        await use(bench)
        return bench

    return asyncio.run(go())


def fine(number, job):
    return None


def test_every_question_gets_its_own_answer():
    async def use(bench):
        found = await bench.all(500)
        assert [r.text for r in found] == [f"player_{n}" for n in range(500)]

    bench = run(fine, use)
    assert len(bench.begun) == 500
    assert bench.counters.in_flight == bench.counters.waiting == 0
    assert bench.counters.retries == 0


def test_first_come_first_served():
    async def use(bench):
        await bench.all(100)

    bench = run(fine, use)
    assert [n for _, n in bench.begun] == list(range(100))


def test_there_are_as_many_tasks_as_requests_in_flight():
    async def use(bench):
        futures = [bench.submit(n) for n in range(10_000)]
        await bench.clock.settle()
        assert len(asyncio.all_tasks()) == 1 + 8
        assert bench.counters.waiting == 10_000 - 8
        bench.stop(RunStopped("enough"))
        await bench.clock.until(asyncio.gather(*futures, return_exceptions=True))

    run(fine, use)


def test_the_limit_is_found_by_trying_and_kept():
    async def use(bench):
        await bench.all(2000)

    bench = run(fine, use, limits=Limits(start=8, most=300))
    assert bench.most == 300
    assert bench.counters.limit == 300
    # 8 + 16 + 32 + 64 + 128 + 256 in the first six seconds, then 300 a second
    assert bench.clock.time() - 1000 == pytest.approx(6 + 5, abs=1)


def test_a_refusal_shrinks_the_limit_and_is_retried():
    def act(number, job):
        return ChatError("too many", kind="rate_limit", status=429) if number == 50 else None

    async def use(bench):
        found = await bench.all(400)
        assert all(not isinstance(r, Exception) for r in found)

    bench = run(act, use, limits=Limits(start=100))
    assert bench.counters.limit < 100
    assert bench.counters.errors == {"rate_limit": 1}
    assert bench.counters.retries == 1
    assert len(bench.begun) == 401


def test_retry_after_is_honoured_by_all():
    def act(number, job):
        return ChatError("wait", kind="rate_limit", status=429, retry_after=33.0) if number == 1 else None

    async def use(bench):
        await bench.all(20)

    bench = run(act, use, limits=Limits(start=4))
    refused_at = 1001.0
    later = [at for at, _ in bench.begun[4:]]
    assert min(later) == pytest.approx(refused_at + 33.0)


def test_a_job_that_waits_for_its_next_attempt_holds_no_worker():
    def act(number, job):
        return ChatError("gone", kind="server") if job.attempts < 3 and job.key.agent == "player_0" else None

    async def use(bench):
        future = bench.submit(0)
        others = [bench.submit(n) for n in range(1, 30)]
        await bench.clock.until(asyncio.gather(future, *others))

    bench = run(act, use, limits=Limits(start=1, most=1), retry=Retry(first_pause=100, longest_pause=100))
    begun = [n for _, n in bench.begun]
    assert begun.count(0) == 3
    first, second, third = (i for i, n in enumerate(begun) if n == 0)
    assert second - first > 1
    assert third > second


def test_a_retry_goes_before_what_was_not_tried():
    def act(number, job):
        return ChatError("gone", kind="server") if number == 1 else None

    async def use(bench):
        await bench.all(10)

    bench = run(act, use, limits=Limits(start=1, most=1), retry=Retry(first_pause=0))
    assert [n for _, n in bench.begun][:3] in ([0, 0, 1], [0, 1, 0])


def test_attempts_are_capped_and_then_the_run_stops():
    def act(number, job):
        return ChatError("there answered 500: oh", kind="server") if job.key.agent == "player_0" else None

    async def use(bench):
        future = bench.submit(0)
        await bench.clock.until(asyncio.gather(*[bench.submit(n) for n in range(1, 20)]))
        with pytest.raises(EndpointStopped, match=r"player_0.* 3 attempts .*answered 500: oh.*run again"):
            await bench.clock.until(future)

    bench = run(act, use, retry=Retry(attempts=3))
    assert sum(n == 0 for _, n in bench.begun) == 3
    assert len(bench.stops) == 1


def test_total_time_is_capped():
    def act(number, job):
        return ChatError("oh", kind="server") if job.key.agent == "player_0" else None

    async def use(bench):
        future = bench.submit(0)
        with pytest.raises(EndpointStopped):
            await bench.clock.until(future)

    bench = run(act, use, retry=Retry(attempts=1000, total=30), latency=8.0)
    assert 30 <= bench.clock.time() - 1000 < 120
    assert len(bench.begun) < 12


@pytest.mark.parametrize("kind", ["auth", "quota", "not_found", "bad_request"])
def test_what_cannot_succeed_stops_the_run_at_once(kind):
    async def use(bench):
        found = await bench.all(30)
        assert all(isinstance(r, EndpointStopped) for r in found)
        assert "there said no" in str(found[0])

    bench = run(lambda number, job: ChatError("there said no", kind=kind), use, limits=Limits(start=2))
    assert len(bench.begun) == 2
    assert bench.counters.retries == 0


def test_a_question_that_is_too_long_is_the_policys_to_mend():
    def act(number, job):
        return ChatError("too long", kind="context_too_long") if number == 1 else None

    async def use(bench):
        found = await bench.all(20)
        assert isinstance(found[0], ChatError)
        assert found[0].kind == "context_too_long"
        assert not any(isinstance(r, Exception) for r in found[1:])

    bench = run(act, use, limits=Limits(start=1))
    assert not bench.stops
    assert len(bench.begun) == 20


def test_the_budget_stops_everything_but_what_is_under_way():
    def act(number, job):
        return BudgetReached("no money") if number == 6 else None

    async def use(bench):
        found = await bench.all(50)
        answers = [r for r in found if not isinstance(r, Exception)]
        assert len(answers) == len(bench.begun) - 1 < 15
        assert all(isinstance(r, BudgetReached) for r in found if isinstance(r, Exception))

    run(act, use, limits=Limits(start=8))


def test_an_error_of_the_disk_stops_the_run_with_its_sentence():
    async def use(bench):
        found = await bench.all(3)
        assert isinstance(found[0], RunError)
        assert all(isinstance(r, RunStopped) and "disk full" in str(r) for r in found[1:])

    run(lambda number, job: RunError("disk full"), use, limits=Limits(start=1))


def test_a_mistake_of_ours_is_shown_and_stops_the_run():
    async def use(bench):
        found = await bench.all(3)
        assert isinstance(found[0], ZeroDivisionError)
        assert all(isinstance(r, RunStopped) for r in found[1:])

    run(lambda number, job: ZeroDivisionError("oops"), use, limits=Limits(start=1))


def test_after_the_stop_nothing_is_taken():
    async def use(bench):
        bench.stop(RunStopped("over"))
        with pytest.raises(RunStopped, match="over"):
            await bench.submit(1)

    bench = run(fine, use)
    assert not bench.begun


def test_requests_per_minute():
    async def use(bench):
        await bench.all(300)

    bench = run(fine, use, limits=Limits(start=100, requests_per_minute=60))
    times = [at for at, _ in bench.begun]
    assert max(sum(start <= t < start + 60 for t in times) for start in times) <= 61
    assert times[-1] - times[0] == pytest.approx(299, abs=2)


def test_tokens_per_minute_are_settled_by_what_was_used():
    def act(number, job):
        return reply(usage=Usage(90, 10))

    async def use(bench):
        await bench.all(40, tokens=1000)

    bench = run(act, use, limits=Limits(start=1, most=1, tokens_per_minute=6000))
    # 100 tokens a second, 100 tokens used a time: what was set aside too much is given back
    assert bench.begun[-1][0] - bench.begun[0][0] == pytest.approx(39, rel=0.3)


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


def test_thirty_percent_failures_lose_nothing():
    draw = random.Random(3)
    kinds = ["rate_limit", "server", "network", "timeout", "bad_reply"]

    def act(number, job):
        return ChatError("bad luck", kind=draw.choice(kinds)) if draw.random() < 0.3 else None

    async def use(bench):
        found = await bench.all(1000)
        assert [r.text for r in found] == [f"player_{n}" for n in range(1000)]

    bench = run(act, use)
    assert not bench.said
    assert bench.counters.retries == sum(bench.counters.errors.values()) == len(bench.begun) - 1000


def test_drain_waits_for_what_is_under_way():
    async def use(bench):
        futures = [bench.submit(n) for n in range(20)]
        await bench.clock.settle()
        bench.stop(RunStopped("closing"))
        drained = asyncio.ensure_future(bench.dispatcher.drain())
        await bench.clock.until(drained)
        found = await asyncio.gather(*futures, return_exceptions=True)
        assert [isinstance(r, RunStopped) for r in found] == [False] * 8 + [True] * 12

    run(fine, use)


def test_abandoned_attempts_say_so():
    async def use(bench):
        future = bench.submit(0)
        await bench.clock.settle()
        bench.dispatcher.abandon()
        with pytest.raises(RunStopped, match="broken off"):
            await future
        await bench.dispatcher.drain()

    bench = run(fine, use)
    assert bench.counters.in_flight == 0


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
    async def is_there():
        return there

    async def use(bench):
        futures = [bench.submit(n) for n in range(20)]
        await bench.clock.pass_time(30)
        return futures

    return use, {"patience": 20.0, "latency": 10_000.0, "is_there": is_there, **fields}


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
            self.dispatcher.heard()
            await self.clock.sleep(5)  # the disk
            return reply()

    async def go():
        bench = Slow(fine, limits=Limits(start=64))
        await bench.all(64)
        return bench

    assert not asyncio.run(go()).said
