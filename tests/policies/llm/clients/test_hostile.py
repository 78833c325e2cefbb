"""Servers that break HTTP and the format: every client fails in an orderly way, asks nobody else, and goes on."""

import asyncio
import contextlib
import json
import tracemalloc

import pytest
from hostile import BROKEN, HostileServer, head
from llm_tools import WAYS, question

from llm_coop_envs.policies.llm.chat import ChatError
from llm_coop_envs.policies.llm.clients import Endpoint, client, connect
from llm_coop_envs.policies.llm.clients.client import proxy_for
from llm_coop_envs.policies.llm.testing.server import digest_answer

ANSWER = digest_answer("You are player one.\n\nWhich number?")

pytestmark = pytest.mark.parametrize("way", WAYS)


def through(way, use, *args, **fields):
    async def go():
        async with HostileServer(*args, **fields) as server:
            client = connect(Endpoint(model="m", base_url=server.base_url, **way))
            try:
                return await use(client, server)
            finally:
                await client.aclose()

    return asyncio.run(go())


def failure(way, *args, **fields):
    async def use(client, server):
        with pytest.raises(ChatError) as raised:
            await client.complete(question())
        return raised.value

    return through(way, use, *args, **fields)


@pytest.mark.parametrize("kind", [kind for kind in BROKEN if kind != "unknown packing"])
def test_what_is_broken_is_worth_another_attempt(way, kind):
    async def use(client, server):
        tracemalloc.start()
        with pytest.raises(ChatError) as raised:
            await client.complete(question(), idempotency_key="k")
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert raised.value.may_retry
        assert str(raised.value).startswith(f"{server.base_url} ")
        assert most < 250 * 2**20  # 565 MiB when it was not limited
        if not way.get("stream"):  # the server streams nothing
            assert (await client.complete(question(), idempotency_key="k")).text == ANSWER

    through(way, use, lambda body, time: kind if time == 0 else None)


@pytest.mark.parametrize("delay", [0.0, 0.05])
def test_an_error_in_pieces_is_read_to_its_end(way, delay):
    said = b'{"error": {"code": "no", "message": "Sorry: insufficient_quota"}}'
    pieces = (head("429 No", f"Content-Length: {len(said)}"), said[:20], said[20:])
    assert failure(way, lambda body, time: pieces, delay=delay).kind == "quota"


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"])
def test_prompts_are_never_sent_on_to_another_address(way, status):
    async def go():
        async with HostileServer() as other:
            to = head(status, f"Location: {other.base_url}/chat/completions", "Content-Length: 0")
            async with HostileServer(lambda body, time: to) as server:
                client = connect(Endpoint(model="m", base_url=server.base_url, **way))
                with pytest.raises(ChatError, match=r"sends elsewhere \(to http\S+\), which is not followed") as raised:
                    await client.complete(question())
                await client.aclose()
            assert not other.requests
            return raised.value

    assert not asyncio.run(go()).may_retry


@pytest.mark.parametrize(
    "message",
    [
        '{"content": null, "tool_calls": [{"function": {"arguments": ' + "[" * 1000 + "]" * 1000 + "}}]}",
        '{"content": ' + "[" * 1000 + "]" * 1000 + "}",
    ],
)
def test_a_deeply_nested_answer_is_none_or_empty(way, message):
    raw = f'{{"choices": [{{"message": {message}, "finish_reason": "stop"}}]}}'.encode()

    async def use(client, server):
        try:
            return (await client.complete(question())).text
        except ChatError as error:
            return error.kind

    assert through(way, use, lambda body, time: head() + raw) in ("", "bad_reply", "server")


@pytest.mark.parametrize("error", ['{"error": %s}', '{"error": {"message": %s}}', '{"error": {"code": %s}}', "%s"])
def test_a_deeply_nested_error_is_an_error(way, error):
    said = (error % ("[" * 900 + "]" * 900)).encode()
    assert failure(way, lambda body, time: head("400 Bad") + said).kind == "bad_request"


def test_no_password_is_taken_from_a_file(way, tmp_path, monkeypatch):
    (tmp_path / "netrc").write_text("machine 127.0.0.1\nlogin me\npassword very-secret\n")
    (tmp_path / "netrc").chmod(0o600)
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.setattr(client, "is_loopback", lambda url: False)
    monkeypatch.setattr("llm_coop_envs.policies.llm.clients.openai_sdk.is_loopback", lambda url: False)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)

    async def use(client, server):
        with contextlib.suppress(ChatError):  # the server streams nothing
            await client.complete(question())
        return [headers.get("authorization", "") for _, _, headers in server.requests]

    for sent in through(way, use):
        assert "Basic" not in sent


def test_a_proxy_is_still_taken_from_the_environment(way, monkeypatch):
    if way["client"] != "lean":
        pytest.skip("the SDK's own affair")
    monkeypatch.setenv("http_proxy", "http://proxy.example:3128")
    monkeypatch.setenv("no_proxy", "inside.example")
    assert proxy_for("http://model.example/v1") == "http://proxy.example:3128"
    assert proxy_for("http://inside.example/v1") is None
    assert proxy_for("http://127.0.0.1:8000/v1") is None


@pytest.mark.parametrize("said", ["\x1b[2J\x1b]0;owned\x07", "\u202egnp", "\x9b31m", "a\r\nb"])
def test_what_a_server_says_does_not_act_on_a_terminal(way, said):
    body = json.dumps({"error": {"message": f"before{said}after"}}).encode()
    error = failure(way, lambda body_, time: head("400 Bad") + body)
    assert str(error).replace("\n", "").isprintable()
    assert "after" in str(error)
