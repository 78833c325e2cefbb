"""Several processes play one run: one budget and one set of limits for all of them."""

import asyncio
import errno
import json
import subprocess
import sys
import time
from collections import Counter

import pytest
from live_chats import ENDPOINT, Client
from llm_tools import ENVIRONMENT, key, question, reply

from llm_coop_envs.errors import RunError
from llm_coop_envs.policies.llm.asking.budget import Budget
from llm_coop_envs.policies.llm.asking.limits import Bucket, divide_evenly
from llm_coop_envs.policies.llm.asking.live import open_chat
from llm_coop_envs.policies.llm.asking.shared_ledger import _ROW, FILE, SharedLedger
from llm_coop_envs.policies.llm.chat import BudgetReached, Usage
from llm_coop_envs.policies.llm.clients import Endpoint
from llm_coop_envs.policies.llm.clients.endpoint import Limits
from llm_coop_envs.policies.llm.journal import Journal, read_run
from llm_coop_envs.policies.llm.testing.server import ScriptedServer, in_thread

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="parts need locks that Windows does not have")

PROGRAM = """
import asyncio, json, sys
from pathlib import Path
from llm_coop_envs.policies.llm.asking.budget import Budget
from llm_coop_envs.policies.llm.asking.live import open_chat
from llm_coop_envs.policies.llm.chat import BudgetReached, ChatMessage, ChatRequest, RequestKey
from llm_coop_envs.policies.llm.clients import Endpoint, Limits

folder, url, part, count, budget, limits = sys.argv[1:]
limits = json.loads(limits)

async def play():
    endpoint = Endpoint(model="m", base_url=url, limits=Limits(**limits))
    async with open_chat(Path(folder), endpoint, budget=Budget(**json.loads(budget)), part=part) as chat:
        print("open", flush=True)
        asked = []
        for n in range(int(count)):
            question = ChatRequest("m", (ChatMessage("user", f"{part} {n}"),), max_tokens=20)
            asked.append(chat.ask(RequestKey(part, f"player_{n}", 0, "choose"), question))
        found = await asyncio.gather(*asked, return_exceptions=True)
        stopped = [one for one in found if isinstance(one, BudgetReached)]
        assert all(not isinstance(one, Exception) for one in found if one not in stopped), found
        print(json.dumps({"answered": len(found) - len(stopped), "limit": chat.counters.limit}))

asyncio.run(play())
"""

# A folder whose file system refuses the kernel's locks, giving them up included.
WITHOUT_LOCKS = """
import fcntl
def refuse(*_):
    raise OSError({code}, "no locks here")
fcntl.flock = refuse
"""


class Counting(ScriptedServer):
    """Counts what it would bill, and what is in flight."""

    tokens = 0

    def _completed(self, body, fault):
        found = super()._completed(body, fault)
        self.tokens += found["usage"]["total_tokens"]
        return found


def start(folder, server, part, count, budget, before="", **limits):
    given = json.dumps({"start": 256, "most": 256, **limits})
    command = [
        sys.executable,
        "-c",
        before + PROGRAM,
        str(folder),
        server.base_url,
        part,
        str(count),
        json.dumps(budget),
        given,
    ]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)


def end(process):
    shown = process.communicate(timeout=300)[0].splitlines()
    assert process.returncode == 0
    return json.loads(shown[-1])


def play(folder, server, processes, count, budget, **limits):
    started = [start(folder, server, f"part-{number}", count, budget, **limits) for number in range(processes)]
    return [end(process) for process in started]


def used(folder):
    reports = read_run(folder)
    return sum(one.calls for one in reports), sum(one.tokens for one in reports)


@pytest.mark.parametrize(
    ("processes", "count", "calls", "in_flight"),
    [(2, 120, 100, 32), pytest.param(8, 1000, 3000, 256, marks=[pytest.mark.slow, pytest.mark.rare])],
)
def test_calls_are_never_more_than_all_processes_may_make(tmp_path, processes, count, calls, in_flight):
    with in_thread(Counting(latency=0.05)) as server:
        found = play(tmp_path, server, processes, count, {"calls": calls}, start=in_flight, most=in_flight * processes)
        assert sum(server.asked.values()) == calls, "overshoot 0, and nothing is left unused"
    assert sum(one["answered"] for one in found) == calls
    assert used(tmp_path)[0] == calls


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.EIO])
def test_calls_are_never_more_where_the_file_system_carries_no_locks(tmp_path, code):
    given = {"before": WITHOUT_LOCKS.format(code=code), "start": 24, "most": 72}
    with in_thread(Counting(latency=0.02)) as server:
        found = play(tmp_path, server, 3, 60, {"calls": 80}, **given)
        assert sum(server.asked.values()) == 80
    assert sum(one["answered"] for one in found) == used(tmp_path)[0] == 80


@pytest.mark.slow
@pytest.mark.rare
def test_tokens_are_never_more_than_eight_processes_may_use(tmp_path):
    with in_thread(Counting(latency=0.05)) as server:
        found = play(tmp_path, server, 8, 1000, {"tokens": 60_000}, most=2048)
        assert 59_800 < server.tokens <= 60_000
        assert server.tokens == used(tmp_path)[1]
    assert min(one["answered"] for one in found) < 1000


def test_a_process_that_is_killed_takes_nothing_from_the_budget_but_what_it_may_have_spent(tmp_path):
    with in_thread(Counting(latency=0.2)) as server:
        killed = start(tmp_path, server, "killed", 500, {"calls": 150}, start=20, most=20)
        assert killed.stdout.readline() == "open\n"
        while sum(server.asked.values()) < 40:
            time.sleep(0.01)
        killed.kill()
        killed.communicate()
        end(start(tmp_path, server, "other", 500, {"calls": 150}, start=20, most=20))
        assert 145 <= sum(server.asked.values()) <= 150
        again = end(start(tmp_path, server, "killed", 500, {"calls": 200}, start=20, most=20))
        assert 195 <= sum(server.asked.values()) <= 200
    assert again["answered"] > 40


def test_limits_are_shared_as_processes_come_and_go(tmp_path):
    endpoint = Endpoint(model="m", base_url="http://127.0.0.1:1/v1", limits=Limits(start=9, most=9))

    def chat(part):
        return open_chat(tmp_path, endpoint, part=part, notify=lambda _: None, connect=lambda _: Client())

    async def until(what):
        for _ in range(600):
            if what():
                return
            await asyncio.sleep(0.05)
        pytest.fail("it never came to that")

    async def go():
        async with chat("a") as first:
            assert first.counters.limit == 9
            async with chat("b") as second:
                assert second.counters.limit == 0, "nothing is sent before the others have looked"
                asked = asyncio.create_task(second.ask(key(1), question("7")))
                await until(lambda: (first.counters.limit, second.counters.limit) == (5, 4))
                assert (await asked).text == "7"
                async with chat("c") as third:
                    await until(lambda: [one.counters.limit for one in (first, second, third)] == [3, 3, 3])
            await until(lambda: first.counters.limit == 9)

    asyncio.run(go())


def test_two_parts_in_one_process_share_too(tmp_path):
    asked = Counter()

    def act(request):
        asked["all"] += 1
        return reply("7", usage=Usage(10, 5))

    async def part(name):
        client = Client(act)
        async with open_chat(
            tmp_path, ENDPOINT, budget=Budget(tokens=2000), part=name, notify=lambda _: None, connect=lambda _: client
        ) as chat:
            asks = [chat.ask(key(n, episode=name), question(f"{name} {n}", max_tokens=5)) for n in range(200)]
            return await asyncio.gather(*asks, return_exceptions=True)

    async def both():
        return await asyncio.gather(part("a"), part("b"))

    found = [one for some in asyncio.run(both()) for one in some]
    stopped = [one for one in found if isinstance(one, BudgetReached)]
    assert len(stopped) + asked["all"] == 400
    # A question may use some 160 tokens and uses 15: what is set aside and not used is given back.
    assert 1800 <= 15 * asked["all"] <= 2000
    assert "of 2000 tokens are used" in str(stopped[0])


def test_what_other_parts_used_counts_for_a_process_alone(tmp_path):
    async def go(**fields):
        client = Client()
        async with open_chat(
            tmp_path, ENDPOINT, budget=Budget(calls=10), notify=lambda _: None, connect=lambda _: client, **fields
        ) as chat:
            name = fields.get("part", "main")
            asks = [chat.ask(key(n, episode=name), question(str(n))) for n in range(7)]
            return sum(not isinstance(one, Exception) for one in await asyncio.gather(*asks, return_exceptions=True))

    assert asyncio.run(go(part="a")) == 7
    assert asyncio.run(go()) == 3


def test_a_share_is_whole_and_all_shares_make_the_total():
    for total in range(12):
        for parts in range(1, 9):
            assert sum(divide_evenly(total, parts, number) for number in range(parts)) == total


def test_a_bucket_that_is_divided_gives_its_part_of_a_second_at_once_and_its_part_per_minute():
    whole, part = Bucket(600, 0.0), Bucket(600, 0.0)
    part.divide(5, 0.0)
    for bucket, at_once, later in ((whole, 10, 600), (part, 2, 120)):
        given = 0
        while bucket.wait(1, 0.0) == 0:
            bucket.take(1, 0.0)
            given += 1
        assert given == at_once
        now = 0.0
        while now < 60:
            now += max(bucket.wait(1, now), 1e-6)
            bucket.take(1, now)
            given += 1
        assert given - at_once == pytest.approx(later, abs=1)


@pytest.mark.parametrize("used", [(-1000, 0, 0.0), (0, -1, 0.0), (0, 0, float("nan")), (0, 0, float("-inf"))])
def test_a_ledger_that_adds_to_the_budget_is_damaged(tmp_path, used):
    async def go():
        journal = Journal(tmp_path, "a")
        try:
            with pytest.raises(RunError, match=r"\.ledger: is damaged; delete it"):
                SharedLedger(Budget(calls=5), journal)
        finally:
            await journal.close()

    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / FILE).write_bytes(_ROW.pack(b"b", *used, 0, 0, 0.0))
    asyncio.run(go())


@pytest.mark.parametrize("name", [b"\xff\xfe", b"../../x", b"\x1b[31m", b""])
def test_a_row_of_no_part_counts_and_is_not_played(tmp_path, name):
    async def go():
        journal = Journal(tmp_path, "a")
        ledger = SharedLedger(Budget(calls=5), journal)
        try:
            with pytest.raises(BudgetReached):
                await ledger.reserve(1, 0.0)
        finally:
            ledger.close()
            await journal.close()

    (tmp_path / "journal").mkdir()
    (tmp_path / "journal" / FILE).write_bytes(_ROW.pack(name, 5, 0, 0.0, 0, 0, 0.0))
    asyncio.run(go())
