import asyncio
import dataclasses
import importlib.util
import sys

import pytest
from live_chats import ENDPOINT, Client, ask_many, asking, price, use_again, with_chat
from llm_tools import TurnedClock, key, question, reply

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.asking import live as room
from llm_coop_envs.policies.llm.asking.live import open_chat
from llm_coop_envs.policies.llm.chat import (
    ChatError,
    EndpointStopped,
    NotInJournal,
    RunStopped,
)
from llm_coop_envs.policies.llm.clients import Endpoint
from llm_coop_envs.policies.llm.clients.endpoint import Limits, Retry
from llm_coop_envs.policies.llm.journal import JournalError, read_run
from llm_coop_envs.policies.llm.testing.faults import TRANSPORT, Faults
from llm_coop_envs.policies.llm.testing.server import ScriptedServer, digest_answer


def test_an_answer_is_asked_for_once(tmp_path):
    async def use(chat, client):
        first = await chat.ask(key(1), question("a"))
        assert await chat.ask(key(1), question("a")) == first
        assert chat.counters.replayed == 1
        return first

    found, client = with_chat(tmp_path, use)
    assert found.text == "a"
    assert len(client.asked) == 1
    again, client = with_chat(tmp_path, use_again)
    assert again == found
    assert not client.asked


def test_two_who_ask_the_same_at_once_share_one_attempt(tmp_path):
    async def use(chat, client):
        return await asyncio.gather(*[chat.ask(key(1), question("a")) for _ in range(5)])

    found, client = with_chat(tmp_path, use)
    assert len(client.asked) == 1
    assert len({id(r) for r in found}) == 1


def test_one_key_is_one_question(tmp_path):
    async def use(chat, client):
        found = await asyncio.gather(
            chat.ask(key(1), question("a")), chat.ask(key(1), question("b")), return_exceptions=True
        )
        assert isinstance(found[1], NotInJournal)
        with pytest.raises(NotInJournal, match="message 2, line 1 was 'a', is now 'b'"):
            await chat.ask(key(1), question("b"))

    with_chat(tmp_path, use)
    with pytest.raises(NotInJournal, match="is now 'c'"):
        with_chat(tmp_path, lambda chat, client: chat.ask(key(1), question("c")))


def test_an_answer_is_journalled_before_it_is_used(tmp_path):
    async def use(chat, client):
        await chat.ask(key(1), question("a"))
        (report,) = read_run(tmp_path)
        assert report.answers == 1

    with_chat(tmp_path, use)


def test_who_gives_up_does_not_lose_the_answer(tmp_path):
    async def use(chat, client):
        client.gate.clear()
        waiting = asyncio.ensure_future(chat.ask(key(1), question("a")))
        while not client.asked:
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        again = asyncio.ensure_future(chat.ask(key(1), question("a")))
        await asyncio.sleep(0)
        client.gate.set()
        assert (await again).text == "a"

    _, client = with_chat(tmp_path, use)
    assert len(client.asked) == 1


def test_leaving_waits_for_what_is_under_way(tmp_path):
    said = []

    async def use(chat, client):
        client.gate.clear()
        waiting = [asyncio.ensure_future(chat.ask(key(n), question(str(n)))) for n in range(20)]
        while len(client.asked) < 8:
            await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(0.02, client.gate.set)
        return waiting

    waiting, client = with_chat(tmp_path, use, notify=said.append)
    assert len(client.asked) == 8
    assert said == ["waiting for 8 answers under way; Ctrl-C drops them"]
    assert sum(task.exception() is None for task in waiting) == 8
    assert all(isinstance(task.exception(), RunStopped) for task in waiting if task.exception() is not None)
    assert read_run(tmp_path)[0].answers == 8


def test_a_second_interrupt_drops_what_is_under_way_and_closes_all_the_same(tmp_path):
    async def go():
        client = Client()

        async def run():
            async with open_chat(tmp_path, ENDPOINT, connect=lambda e: client, notify=lambda s: None) as chat:
                client.gate.clear()
                await chat.ask(key(1), question("a"))

        task = asyncio.ensure_future(run())
        while not client.asked:
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.sleep(0.01)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert client.closed

    asyncio.run(go())
    assert read_run(tmp_path)[0].lost == 1
    assert with_chat(tmp_path, use_again)[0].text == "a"


def test_models_go_to_their_endpoints(tmp_path):
    clients = {}

    async def go():
        def connect(endpoint):
            clients[endpoint.model] = Client(lambda request: reply(f"from {endpoint.model}"))
            return clients[endpoint.model]

        endpoints = [ENDPOINT, dataclasses.replace(ENDPOINT, model="other")]
        async with open_chat(tmp_path, endpoints, connect=connect) as chat:
            one = await chat.ask(key(1), question("a"))
            two = await chat.ask(key(2), question("a", model="other"))
            with pytest.raises(SettingsError, match=r"model='third'.*m, other"):
                await chat.ask(key(3), question("a", model="third"))
        return one.text, two.text

    assert asyncio.run(go()) == ("from m", "from other")
    assert all(client.closed for client in clients.values())


def test_a_model_has_one_endpoint(tmp_path):
    with pytest.raises(SettingsError, match="two endpoints"):
        with_chat(tmp_path, asking(1), endpoints=[ENDPOINT, ENDPOINT])


def too_long(request):
    return ChatError("there answered 413: too long", kind="context_too_long", status=413)


def test_a_question_that_was_too_long_is_asked_again_on_continuation(tmp_path):
    async def use(chat, client):
        with pytest.raises(ChatError, match="too long") as raised:
            await chat.ask(key(1), question("a"))
        assert raised.value.kind == "context_too_long"

    for _ in range(2):
        assert len(with_chat(tmp_path, use, too_long)[1].asked) == 1
        with_chat(tmp_path / "elsewhere", use, replay=tmp_path)
    # With the server mended it is answered, once, and a replay knows the answer.
    found, client = with_chat(tmp_path, use_again)
    assert (found.text, len(client.asked)) == ("a", 1)
    found, client = with_chat(tmp_path, use_again)
    assert (found.text, len(client.asked)) == ("a", 0)
    assert with_chat(tmp_path / "elsewhere", use_again, replay=tmp_path)[0].text == "a"


def test_a_question_that_was_made_shorter_stays_too_long(tmp_path):
    """Else the run would go on otherwise than it did."""

    async def use(chat, client):
        with pytest.raises(ChatError):
            await chat.ask(key(1), question("a long question"))
        return await chat.ask(key(1, attempt=1), question("a"))

    def act(request):
        return too_long(request) if "long" in request.messages[-1].content else reply("b")

    assert len(with_chat(tmp_path, use, act)[1].asked) == 2
    found, client = with_chat(tmp_path, use)
    assert (found.text, client.asked) == ("b", [])


@pytest.mark.parametrize("kind", ["auth", "bad_request"])
def test_what_stopped_a_run_is_asked_again_when_it_was_mended(tmp_path, kind):
    def refuse(request):
        return ChatError("there said no", kind=kind)

    found, client = with_chat(tmp_path, asking(50), refuse)
    assert all(isinstance(r, EndpointStopped) for r in found)
    assert len(client.asked) <= 8
    found, _ = with_chat(tmp_path, asking(50))
    assert [r.text for r in found] == [str(n) for n in range(50)]


def test_a_late_attempt_is_a_failed_one(tmp_path):
    clock = TurnedClock()
    gate = asyncio.Event()

    async def go():
        class Slow(Client):
            async def complete(self, request, *, idempotency_key=""):
                self.asked.append(idempotency_key)
                if len(self.asked) == 1:
                    await gate.wait()
                return reply("a")

        client = Slow()
        endpoint = dataclasses.replace(ENDPOINT, timeout=7.0)
        async with open_chat(tmp_path, endpoint, connect=lambda e: client, clock=clock) as chat:
            asked = asyncio.ensure_future(chat.ask(key(1), question("a")))
            while not client.asked:
                await asyncio.sleep(0)
            while not asked.done():
                await clock.pass_time(1.0)
                await asyncio.sleep(0.001)  # the journal's thread
            assert (await asked).text == "a"
            assert chat.counters.errors == {"timeout": 1}
            assert len(set(client.asked)) == 1
            assert len(client.asked) == 2

    asyncio.run(go())


def test_a_cache_is_shared_between_runs_and_journalled_in_each(tmp_path):
    async def cold(chat, client):
        found = await chat.ask(key(1), question("a", temperature=0))
        return found, chat.counters.cached

    (first, cached), client = with_chat(tmp_path / "one", cold, cache=tmp_path / "cache")
    assert (cached, len(client.asked)) == (0, 1)
    (second, cached), client = with_chat(tmp_path / "two", cold, cache=tmp_path / "cache")
    assert (cached, len(client.asked)) == (1, 0)
    assert second == dataclasses.replace(first, cost=0.0)
    (report,) = read_run(tmp_path / "two")
    assert (report.answers, report.cached, report.calls, report.tokens) == (1, 1, 0, 0)
    (third, _), _ = with_chat(tmp_path / "three", cold, replay=tmp_path / "two")
    assert third == second


def test_without_a_cache_runs_share_nothing(tmp_path):
    async def cold(chat, client):
        return await chat.ask(key(1), question("a", temperature=0))

    for name in ("one", "two"):
        assert len(with_chat(tmp_path / name, cold)[1].asked) == 1


def test_a_sample_is_taken_from_the_cache_if_it_is_stated(tmp_path):
    async def warm(chat, client):
        return await chat.ask(key(1), question("a", temperature=0.7))

    counts = [
        len(with_chat(tmp_path / str(n), warm, cache=tmp_path / "cache", sample=sample)[1].asked)
        for n, sample in enumerate((0, 0, 1, None))
    ]
    assert counts == [1, 0, 1, 1]


def test_a_replay_asks_nobody_and_writes_nothing(tmp_path):
    found, _ = with_chat(tmp_path / "run", asking(5))
    again, client = with_chat(tmp_path / "new", asking(5), replay=tmp_path / "run")
    assert again == found
    assert not client.asked
    assert not (tmp_path / "new").exists()
    missing, _ = with_chat(tmp_path / "new", asking(1, first=9), replay=tmp_path / "run")
    assert isinstance(missing[0], NotInJournal)


def test_a_journal_that_cannot_be_opened_leaves_no_client_open(tmp_path):
    (tmp_path / "journal").write_text("in the way")
    client = Client()

    async def go():
        async with open_chat(tmp_path, ENDPOINT, connect=lambda e: client):
            raise AssertionError("it opened")

    with pytest.raises(JournalError):
        asyncio.run(go())
    assert client.closed


def test_requests_of_one_question_have_one_idempotency_key_and_runs_differ(tmp_path):
    def flaky():
        failures = [ChatError("gone", kind="network")]
        return lambda request: failures.pop() if failures else reply("a")

    keys = []
    for name in ("one", "two"):
        retry = dataclasses.replace(ENDPOINT, retry=Retry(first_pause=0.0))
        _, client = with_chat(tmp_path / name, use_again, flaky(), endpoints=retry)
        assert len(client.asked) == 2
        keys.append({k for k, _ in client.asked})
    assert [len(k) for k in keys] == [1, 1]
    assert keys[0] != keys[1]


@pytest.mark.parametrize("way", ["lean", "lean-stream", "openai", "openai-stream", "litellm"])
def test_with_thirty_percent_faults_every_answer_arrives(tmp_path, way):
    if way == "litellm" and importlib.util.find_spec("litellm") is None:
        pytest.skip("litellm is not installed")
    client, _, stream = way.partition("-")
    count = 200 if client == "lean" else 60

    async def go():
        async with ScriptedServer(faults=Faults.evenly(0.3, (*TRANSPORT, "slow_bytes"), seed=5)) as server:
            endpoint = Endpoint(
                model="m",
                base_url=server.base_url,
                client=client,
                stream=bool(stream),
                timeout={"litellm": 2.0, "openai": 1.0, "lean": 0.5}[client],
                retry=Retry(first_pause=0.01),
                limits=Limits(start=32),
            )
            async with open_chat(tmp_path, endpoint) as chat:
                await ask_many(chat, 1)
                found = await ask_many(chat, count)
                assert chat.counters.answers == count
                assert chat.counters.retries == sum(chat.counters.errors.values()) > 5
                assert chat.counters.models == {"scripted:m": count}
                assert sum(server.asked.values()) <= chat.counters.calls
            return found

    found = asyncio.run(go())
    assert [r.text for r in found] == [digest_answer(f"You are player one.\n\n{n}") for n in range(count)]
    again, _ = with_chat(tmp_path / "new", asking(count), replay=tmp_path)
    assert again == found


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_no_more_connections_than_files_may_be_open(monkeypatch):
    import resource

    limits = {"now": (256, 1000)}
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda which, pair: limits.update(now=pair))
    assert room._most_connections() == 1000 - 128
    assert limits["now"] == (1000, 1000)
    assert room._cap_limits(Limits(start=900, most=4096), 872) == Limits(start=872, most=872)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY,) * 2)
    assert room._most_connections() == sys.maxsize


def test_the_line_for_a_progress_display(tmp_path):
    async def use(chat, client):
        await ask_many(chat, 3)
        return chat.counters.line(), chat.counters.plain()

    (line, plain), _ = with_chat(tmp_path, use)
    assert line == "3 answers, 0 in flight, 45 tokens, price unknown"
    assert plain["models"] == {"reported": 3}
    (line, _), _ = with_chat(tmp_path, use, prices=price(tmp_path))
    assert line == "0 answers, 3 from the journal, 0 in flight, 0 tokens, $0.0000"
