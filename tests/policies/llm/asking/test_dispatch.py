import asyncio
import random

import pytest
from dispatching import fine, run
from llm_tools import reply

from llm_coop_envs.errors import RunError
from llm_coop_envs.policies.llm.chat import BudgetReached, ChatError, EndpointStopped, RunStopped, Usage
from llm_coop_envs.policies.llm.clients.endpoint import Limits, Retry


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


def test_drain_does_not_wait_for_attempts_that_were_abandoned_before_they_began():
    async def use(bench):
        bench.submit(0)
        bench.dispatcher.abandon()
        await asyncio.wait_for(bench.dispatcher.drain(), 5.0)
        assert not bench.begun

    run(fine, use)
