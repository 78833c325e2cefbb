"""One suite through OpenAI's SDK, litellm and the lean client, against a real server on this machine."""

import asyncio

import pytest
from llm_tools import WAYS, question

from llm_coop_envs.policies.llm.chat import ChatError, Usage
from llm_coop_envs.policies.llm.clients import Endpoint, connect
from llm_coop_envs.policies.llm.testing.faults import Faults
from llm_coop_envs.policies.llm.testing.server import ScriptedServer, digest_answer
from llm_coop_envs.policies.llm.tokens import estimate_tokens

PROMPT = "You are player one.\n\nWhich number?"

pytestmark = pytest.mark.parametrize("way", WAYS)


def through(way, use, **fields):
    """Start a server, connect a client, use both."""

    async def go():
        async with ScriptedServer(**fields) as server:
            client = connect(Endpoint(model="m", base_url=server.base_url, **way))
            try:
                return await use(client, server)
            finally:
                await client.aclose()
                await client.aclose()

    return asyncio.run(go())


def ask(way, request=None, **fields):
    return through(way, lambda client, server: client.complete(request or question()), **fields)


def failure(way, request=None, **fields):
    with pytest.raises(ChatError) as raised:
        ask(way, request, **fields)
    assert "127.0.0.1" in str(raised.value)
    # No traceback may show what a library raised: it holds requests with their headers.
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None or raised.value.__suppress_context__
    return raised.value


def test_an_answer(way):
    found = ask(way)
    assert (found.text, found.finish_reason, found.model) == (digest_answer(PROMPT), "stop", "scripted:m")
    assert found.usage == Usage(estimate_tokens(PROMPT), estimate_tokens(found.text))
    assert 0 < found.latency < 10
    assert found.refusal is None


def test_all_settings_arrive(way):
    seen = {}

    class Watching(ScriptedServer):
        def _completed(self, body, fault):
            seen.update(body)
            return super()._completed(body, fault)

    async def go():
        async with Watching() as server:
            client = connect(Endpoint(model="m", base_url=server.base_url, **way))
            await client.complete(
                question(
                    temperature=0.25,
                    top_p=0.5,
                    max_tokens=33,
                    stop=("END",),
                    seed=7,
                    json_schema={"type": "object", "properties": {}},
                    extra={"frequency_penalty": 0.5},
                )
            )
            await client.aclose()

    asyncio.run(go())
    assert [m["content"] for m in seen["messages"]] == ["You are player one.", "Which number?"]
    assert [m["role"] for m in seen["messages"]] == ["system", "user"]
    expected = {"model": "m", "temperature": 0.25, "top_p": 0.5, "max_tokens": 33, "seed": 7, "frequency_penalty": 0.5}
    assert {name: seen[name] for name in expected} == expected
    assert seen["stop"] in ("END", ["END"])
    assert seen["response_format"]["json_schema"]["schema"] == {"type": "object", "properties": {}}
    assert bool(seen.get("stream")) == bool(way.get("stream"))


def test_nothing_is_sent_that_was_not_set(way):
    seen = {}

    class Watching(ScriptedServer):
        def _completed(self, body, fault):
            seen.update(body)
            return super()._completed(body, fault)

    async def go():
        async with Watching() as server:
            client = connect(Endpoint(model="m", base_url=server.base_url, **way))
            await client.complete(question(max_tokens=None))
            await client.aclose()

    asyncio.run(go())
    assert set(seen) - {"stream", "stream_options"} == {"model", "messages"}


def test_the_idempotency_key_arrives(way):
    async def use(client, server):
        await client.complete(question(), idempotency_key="k1")
        await client.complete(question(), idempotency_key="k1")
        await client.complete(question("Other?"), idempotency_key="k2")
        return server.asked, server.answered

    assert through(way, use) == ({"k1": 2, "k2": 1}, {"k1": 2, "k2": 1})


def test_many_at_once(way):
    async def use(client, server):
        found = await asyncio.gather(*[client.complete(question(str(n))) for n in range(60)])
        return [r.text for r in found]

    assert through(way, use) == [digest_answer(f"You are player one.\n\n{n}") for n in range(60)]


@pytest.mark.parametrize("text", ["naïve 数字 🙂", "system: ignore\n</s>", '"quoted" \\ \t', "x" * 200_000])
def test_every_text_survives(way, text):
    found = ask(way, question(text, max_tokens=None), answer=lambda prompt, metadata: prompt.split("\n\n", 1)[1][:1000])
    assert found.text == text[:1000]


@pytest.mark.parametrize(
    ("fault", "kinds", "status"),
    [
        ("rate_limit", {"rate_limit"}, 429),
        ("rate_limit_after", {"rate_limit"}, 429),
        ("server_error", {"server"}, 500),
        ("unavailable", {"server"}, 503),
        ("reset", {"network", "server"}, None),
        ("half_body", {"network", "server"}, None),
        ("broken_json", {"bad_reply", "server"}, None),
        ("wrong_json", {"bad_reply", "server"}, None),
        ("empty_choice", {"bad_reply"}, None),
    ],
)
def test_a_failed_attempt_is_one_error_and_no_retry(way, fault, kinds, status):
    seen = []

    async def use(client, server):
        try:
            await client.complete(question())
        finally:
            seen.append(sum(server.asked.values()))

    with pytest.raises(ChatError) as raised:
        through(way, use, faults=Faults(shares={fault: 1.0}))
    error = raised.value
    assert error.kind in kinds
    if way["client"] != "litellm":  # which turns broken connections and bodies into errors of the server
        assert error.kind == sorted(kinds)[0]
        assert error.status == status
        assert error.maybe_paid == (status is None)
    assert error.maybe_paid or status is not None
    assert error.retry_after == (0.01 if fault == "rate_limit_after" else None)
    assert seen == [1]


@pytest.mark.parametrize(
    ("fault", "finish", "refused"),
    [
        ("refusal", "stop", True),
        ("truncated", "length", False),
        ("garbage", "stop", False),
        ("slow_bytes", "stop", False),
    ],
)
def test_odd_answers_are_answers(way, fault, finish, refused):
    found = ask(way, faults=Faults(shares={fault: 1.0}))
    whole = digest_answer(PROMPT)
    assert found.finish_reason == finish
    assert (found.refusal is not None) == refused
    expected = {"refusal": "", "truncated": whole[: len(whole) // 2], "slow_bytes": whole}
    assert found.text == expected.get(fault, found.text)
    if fault == "garbage":
        assert found.text.endswith("\u0000\ufffd\u202e")


def test_a_huge_answer_is_read(way):
    found = ask(
        way,
        question(max_tokens=None),
        faults=Faults(shares={"huge": 1.0}, huge=1_000_000 if not way.get("stream") else 20_000),
    )
    assert len(found.text) >= 20_000


def test_an_answer_beyond_measure_is_none(way):
    if way.get("stream"):
        pytest.skip("a million pieces take too long to send")
    assert failure(way, faults=Faults(shares={"huge": 1.0}, huge=17 * 2**20)).kind == "bad_reply"


def test_a_server_that_is_not_there(way):
    async def go():
        async with ScriptedServer() as server:
            url = server.base_url
        client = connect(Endpoint(model="m", base_url=url, **way))
        try:
            await client.complete(question())
        finally:
            await client.aclose()

    with pytest.raises(ChatError) as raised:
        asyncio.run(go())
    assert raised.value.kind in ("network", "server")
    if way["client"] != "litellm":
        assert raised.value.kind == "network"
        assert not raised.value.maybe_paid


def test_an_attempt_that_is_given_up_leaves_the_client_usable(way):
    async def use(client, server):
        given_up = asyncio.ensure_future(client.complete(question()))
        while not server.in_flight:
            await asyncio.sleep(0.001)
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        server.faults = Faults()
        return await client.complete(question())

    assert through(way, use, faults=Faults(shares={"timeout": 1.0})).text == digest_answer(PROMPT)


def test_the_key_is_sent_and_a_wrong_one_is_not_shown(way, monkeypatch):
    monkeypatch.setenv("SOME_SECRET", "the-right-key-123")
    way = {**way, "key_env": "SOME_SECRET"}
    assert ask(way, key="the-right-key-123").text == digest_answer(PROMPT)
    monkeypatch.setenv("SOME_SECRET", "the-wrong-key-456")
    error = failure(way, key="the-right-key-123")
    assert (error.kind, error.status) == ("auth", 401)
    assert "Incorrect API key provided" in str(error)
    assert "the-wrong-key-456" not in str(error)


def test_without_usage_tokens_are_estimated(way):
    found = ask(way, count=None)
    if way["client"] == "litellm":
        return  # it counts by itself and does not say so
    assert found.usage.estimated


def test_a_filtered_question_is_a_refusal(way):
    def refuse(prompt, metadata):
        raise ValueError("content_filter: rejected by the content management policy")

    found = ask(way, answer=refuse)
    assert (found.text, found.finish_reason) == ("", "content_filter")
    assert "content management policy" in found.refusal


def test_a_question_that_is_too_long_is_told_apart(way):
    def refuse(prompt, metadata):
        raise ValueError("This model's maximum context length is 8192 tokens")

    error = failure(way, answer=refuse)
    assert error.kind == "context_too_long"
    assert not error.may_retry


def test_nothing_secret_in_what_a_client_shows(way, monkeypatch):
    monkeypatch.setenv("SOME_SECRET", "very-secret-key")
    client = connect(Endpoint(model="m", base_url="http://127.0.0.1:1/v1", key_env="SOME_SECRET", **way))
    assert "very-secret" not in repr(client)
    asyncio.run(client.aclose())
