import asyncio
import json
import subprocess
import sys
import urllib.request

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_tools import ENVIRONMENT

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.testing.faults import CONTENT, KINDS, SLOW, TRANSPORT, Faults
from llm_coop_envs.policies.llm.testing.server import ScriptedServer, digest_answer, in_thread


def test_the_kinds_of_fault():
    assert set(KINDS) == set(TRANSPORT) | set(CONTENT) | set(SLOW)
    assert len(set(KINDS)) == len(TRANSPORT) + len(CONTENT) + len(SLOW) == 15


@given(st.integers(), st.text(), st.integers(0, 5))
def test_a_fate_hangs_on_seed_question_and_repetition_alone(seed, asked, time):
    one, other = Faults.evenly(0.5, seed=seed), Faults.evenly(0.5, seed=seed)
    assert one.draw_fault(asked, time) == other.draw_fault(asked, time)


def test_shares_are_kept():
    faults = Faults(shares={"reset": 0.1, "timeout": 0.2}, seed=4)
    fates = [faults.draw_fault(str(n), 0) for n in range(20_000)]
    assert fates.count("reset") == pytest.approx(2000, rel=0.1)
    assert fates.count("timeout") == pytest.approx(4000, rel=0.1)
    assert fates.count(None) == pytest.approx(14_000, rel=0.1)
    assert Faults().draw_fault("x", 0) is None
    assert {faults.draw_fault("x", time) for time in range(100)} == {None, "reset", "timeout"}
    other = Faults(shares={"reset": 0.1, "timeout": 0.2}, seed=5)
    assert [other.draw_fault(str(n), 0) for n in range(50)] != fates[:50]


@pytest.mark.parametrize(
    "given",
    [
        {"shares": {"earthquake": 0.1}},
        {"shares": {"reset": -0.1}},
        {"shares": {"reset": "half"}},
        {"shares": {"reset": 0.6, "timeout": 0.6}},
        {"hang": -1},
        {"slow": -1},
        {"retry_after": -1},
        {"huge": 0},
    ],
)
def test_impossible_faults(given):
    with pytest.raises(SettingsError, match=next(iter(given))):
        Faults(**given)


def exchange(path, body=None, headers=None, raw=None, **fields):
    async def go():
        async with ScriptedServer(**fields) as server, aiohttp.ClientSession() as session:
            url = server.base_url.removesuffix("/v1") + path
            if body is None and raw is None:
                async with session.get(url) as response:
                    return response.status, await response.read(), server
            data = raw if raw is not None else json.dumps(body).encode()
            async with session.post(url, data=data, headers=headers) as response:
                return response.status, await response.read(), server

    return asyncio.run(go())


BODY = {"model": "x", "messages": [{"role": "system", "content": "a"}, {"role": "user", "content": "b"}]}
CHAT = "/v1/chat/completions"


def test_a_completion():
    status, raw, server = exchange(CHAT, BODY, {"Idempotency-Key": "k"})
    found = json.loads(raw)
    assert status == 200
    assert found["object"] == "chat.completion"
    assert found["choices"][0]["message"]["content"] == digest_answer("a\n\nb")
    assert found["usage"]["total_tokens"] == found["usage"]["prompt_tokens"] + found["usage"]["completion_tokens"]
    assert (server.asked, server.answered, server.fates) == ({"k": 1}, {"k": 1}, {"answer": 1})
    assert (server.in_flight, server.most_in_flight) == (0, 1)


def test_a_stream():
    _, raw, _ = exchange(CHAT, {**BODY, "stream": True, "stream_options": {"include_usage": True}})
    events = [line[6:] for line in raw.decode().splitlines() if line]
    assert events[-1] == "[DONE]"
    pieces = [json.loads(event) for event in events[:-1]]
    assert all(piece["object"] == "chat.completion.chunk" for piece in pieces)
    assert "".join(p["choices"][0]["delta"].get("content", "") for p in pieces[:-1]) == digest_answer("a\n\nb")
    assert pieces[-1]["choices"] == []
    assert "usage" in pieces[-1]
    assert "usage" not in exchange(CHAT, {**BODY, "stream": True})[1].decode()


def test_models_and_counts():
    status, raw, _ = exchange("/v1/models")
    assert (status, [m["id"] for m in json.loads(raw)["data"]]) == (200, ["scripted"])
    assert json.loads(exchange("/counts")[1]) == {"asked": {}, "answered": {}, "fates": {}}
    assert exchange("/v1/else")[0] == 404


@pytest.mark.parametrize("field", ["max_tokens", "max_completion_tokens"])
def test_the_longest_answer_is_kept(field):
    choice = json.loads(exchange(CHAT, {**BODY, field: 3})[1])["choices"][0]
    assert choice["finish_reason"] == "length"
    assert digest_answer("a\n\nb").startswith(choice["message"]["content"])
    assert 0 < len(choice["message"]["content"]) <= 12


@pytest.mark.parametrize("stop", ["about", ["zzz", "about"]])
def test_stops_are_kept(stop):
    choice = json.loads(exchange(CHAT, {**BODY, "stop": stop})[1])["choices"][0]
    assert choice["message"]["content"] == "I have thought "


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"model": "x"}', b'{"model": "x", "messages": [1]}'])
def test_what_is_no_request_is_refused(raw):
    assert exchange(CHAT, raw=raw)[0] == 400


def test_too_many_at_once():
    async def go():
        async with ScriptedServer(at_once=3, latency=0.05) as server, aiohttp.ClientSession() as session:

            async def one(n):
                body = {**BODY, "user": str(n)}
                async with session.post(server.base_url + "/chat/completions", json=body) as response:
                    return response.status

            found = await asyncio.gather(*[one(n) for n in range(10)])
            return sorted(found), server.most_in_flight

    assert asyncio.run(go()) == ([200] * 3 + [429] * 7, 3)


def test_in_a_thread():
    with in_thread(ScriptedServer(lambda prompt, metadata: prompt.upper() + metadata.get("question", ""))) as server:
        request = urllib.request.Request(server.base_url + "/chat/completions", json.dumps(BODY).encode())
        found = json.loads(urllib.request.urlopen(request).read())
        asked = urllib.request.Request(
            server.base_url + "/chat/completions", json.dumps({**BODY, "metadata": {"question": "?"}}).encode()
        )
        told = json.loads(urllib.request.urlopen(asked).read())
    assert found["choices"][0]["message"]["content"] == "A\n\nB"
    assert told["choices"][0]["message"]["content"] == "A\n\nB?"


def test_as_a_program():
    process = subprocess.Popen(
        [sys.executable, "-m", "llm_coop_envs.policies.llm.testing"],
        stdout=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    try:
        url = process.stdout.readline().strip()
        found = json.loads(urllib.request.urlopen(url + "/models").read())
        assert found["data"][0]["owned_by"] == "llm-coop-envs"
    finally:
        process.terminate()
        process.communicate()
