import json

import pytest
from llm_tools import question

from llm_coop_envs.policies.llm.chat import ChatError, ChatMessage, ChatRequest, Usage
from llm_coop_envs.policies.llm.clients import Endpoint
from llm_coop_envs.policies.llm.clients.lean import LeanClient
from llm_coop_envs.policies.llm.clients.wire import (
    LONGEST_REPLY,
    StreamedReply,
    clean,
    load_body,
    read_completion,
    request_body,
    stream_events,
)


def body(request, tokens_field="max_tokens", stream=False, **form):
    return request_body(request, model="name", tokens_field=tokens_field, stream=stream, **form)


def read(data, request=None):
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return read_completion(load_body(raw, "there"), request or question(), where="there", latency=0.5)


def completion(**message):
    finish = message.pop("finish_reason", "stop")
    return {"model": "real", "choices": [{"message": {"role": "assistant", **message}, "finish_reason": finish}]}


def test_a_plain_body():
    assert body(ChatRequest("m", (ChatMessage("user", "hi"),))) == {
        "model": "name",
        "messages": [{"role": "user", "content": "hi"}],
    }


def test_every_setting_is_sent_under_its_name():
    request = question(
        temperature=0.0,
        top_p=0.9,
        max_tokens=7,
        stop=("\n", "END"),
        seed=0,
        reasoning_effort="low",
        json_schema={"type": "object"},
        extra={"top_k": 5, "temperature": 1},
    )
    found = body(request, tokens_field="max_completion_tokens", stream=True)
    del found["messages"]
    assert found == {
        "model": "name",
        "temperature": 1,
        "top_p": 0.9,
        "max_completion_tokens": 7,
        "stop": ["\n", "END"],
        "seed": 0,
        "reasoning_effort": "low",
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "answer", "schema": {"type": "object"}, "strict": True},
        },
        "stream": True,
        "stream_options": {"include_usage": True},
        "top_k": 5,
    }


def test_a_local_model_gets_a_grammar_with_the_bounds_and_a_hosted_one_a_schema_without(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    schema = {"type": "object", "properties": {"price": {"type": "number", "minimum": 2, "maximum": 14}}}
    request = question(json_schema=schema)
    forms = {}
    for endpoint in (
        Endpoint(model="local:m", base_url="http://127.0.0.1:1/v1"),
        Endpoint(model="m", base_url="http://127.0.0.1:1/v1"),
        Endpoint(model="gpt-4o-mini"),
    ):
        forms[endpoint.model] = LeanClient(endpoint).form
    assert forms == {"local:m": "llguidance", "m": "json_schema with bounds", "gpt-4o-mini": "json_schema"}
    grammar = body(request, form="llguidance")
    assert "response_format" not in grammar
    assert grammar["grammar"].startswith("%llguidance {}\nstart: %json {")
    spacing = {"x-guidance": {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}}
    assert json.loads(grammar["grammar"].partition("%json ")[2]) == {**schema, **spacing}
    found = body(request, form="json_schema with bounds")["response_format"]["json_schema"]["schema"]
    assert found == schema
    found = body(request)["response_format"]["json_schema"]["schema"]
    assert found == {"type": "object", "properties": {"price": {"type": "number"}}}


def test_a_usual_answer():
    usage = {
        "prompt_tokens": 20,
        "completion_tokens": 9,
        "completion_tokens_details": {"reasoning_tokens": 4},
        "prompt_tokens_details": {"cached_tokens": 16},
    }
    found = read({**completion(content="42"), "usage": usage})
    assert (found.text, found.finish_reason, found.model, found.latency) == ("42", "stop", "real", 0.5)
    assert found.usage == Usage(20, 9, 4, 16)
    assert (found.cost, found.refusal, found.reasoning) == (None, None, None)


@pytest.mark.parametrize(
    ("message", "text", "refusal", "reasoning"),
    [
        ({"content": None}, "", None, None),
        ({"content": None, "refusal": "I can't."}, "", "I can't.", None),
        ({"content": "", "tool_calls": [{"function": {"arguments": '{"n": 4}'}}]}, '{"n": 4}', None, None),
        ({"content": None, "tool_calls": [{"function": {"arguments": {"n": 4}}}]}, '{"n": 4}', None, None),
        ({"content": [{"type": "text", "text": "4"}, {"type": "text", "text": "2"}]}, "42", None, None),
        ({"content": "42", "reasoning_content": "hm"}, "42", None, "hm"),
        ({"content": "42", "reasoning": "hm"}, "42", None, "hm"),
        ({"content": "cut \ud83d"}, "cut \ufffd", None, None),
        ({"content": "whole \ud83d\ude42"}, "whole 🙂", None, None),
    ],
)
def test_unusual_answers(message, text, refusal, reasoning):
    found = read(completion(**message))
    assert (found.text, found.refusal, found.reasoning) == (text, refusal, reasoning)


def test_a_missing_finish_reason_is_unknown():
    assert read(completion(content="4", finish_reason=None)).finish_reason == "unknown"


def test_usage_that_is_not_sent_is_estimated_and_said_so():
    found = read(completion(content="x" * 41, reasoning_content="y" * 8), question("z" * 18))
    assert found.usage == Usage(5 + 6, 11 + 2, reasoning_tokens=2, estimated=True)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": None}, "12", []])
def test_useless_usage_counts_as_none(usage):
    assert read({**completion(content="4"), "usage": usage}).usage.estimated


def test_a_cost_that_the_provider_states_is_taken():
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.25}
    assert read({**completion(content="4"), "usage": usage}).cost == 0.25


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"<html>502</html>",
        b'{"choices": [{"message": {"content": "4',
        b"{}",
        b"[]",
        b"null",
        b'{"choices": []}',
        b'{"choices": null}',
        b'{"choices": [null]}',
        b'{"choices": [{}]}',
        b'{"choices": [{"message": null}]}',
        b'{"ok": true}',
        b"\xff\xfe",
        b'{"choices": [{"message": {"content": "' + b"x" * LONGEST_REPLY + b'"}}]}',
    ],
)
def test_what_is_no_answer_is_a_failed_attempt_that_may_be_on_the_bill(raw):
    with pytest.raises(ChatError, match="there answered with") as raised:
        read(raw)
    assert (raised.value.kind, raised.value.maybe_paid) == ("bad_reply", True)
    assert len(str(raised.value)) < 200


def piece(delta=None, finish=None, **more):
    choices = [] if delta is None else [{"delta": delta, "finish_reason": finish}]
    return {"model": "real", "choices": choices, **more}


def streamed(*pieces):
    reply = StreamedReply()
    for one in pieces:
        reply.add(one, "there")
    return read_completion(reply.completion("there"), question(), where="there", latency=0.5)


def test_a_stream_is_put_together():
    found = streamed(
        piece({"role": "assistant", "content": ""}),
        piece({"reasoning_content": "h"}),
        piece({"reasoning": "m"}),
        piece({"content": "4"}),
        piece({"content": "2"}),
        piece({}, "stop"),
        piece(usage={"prompt_tokens": 3, "completion_tokens": 2}),
    )
    assert (found.text, found.reasoning, found.finish_reason, found.model) == ("42", "hm", "stop", "real")
    assert found.usage == Usage(3, 2)


def test_tool_calls_in_a_stream():
    def call(part):
        return {"tool_calls": [{"index": 0, "function": {"arguments": part}}]}

    assert streamed(piece(call('{"n"')), piece(call(": 4}")), piece({}, "tool_calls")).text == '{"n": 4}'


@pytest.mark.parametrize(
    ("pieces", "kind"),
    [
        ((), "bad_reply"),
        ((piece(),), "bad_reply"),
        ((piece({"content": "4"}),), "bad_reply"),
        ((None,), "bad_reply"),
        ((piece({"content": "4"}), {"error": {"message": "out of memory"}}), "server"),
        ((piece({"content": "x" * LONGEST_REPLY}), piece({"content": "y"}, "stop")), "bad_reply"),
    ],
)
def test_a_stream_that_broke_off_is_no_answer(pieces, kind):
    with pytest.raises(ChatError) as raised:
        streamed(*pieces)
    assert raised.value.kind == kind
    assert raised.value.maybe_paid


def test_events_of_a_stream():
    lines = [b": hello", b"", b'data: {"a": 1}', b"data:{}", b"event: x", b"data: [DONE]", b'data: {"late": 1}']
    assert list(stream_events(lines)) == [{"a": 1}, {}]


def test_an_answer_may_have_16_mebibytes():
    assert LONGEST_REPLY == 16 * 2**20
    frame = json.dumps(completion(content="")).encode()
    raw = frame.replace(b'"content": ""', b'"content": "' + b"x" * (LONGEST_REPLY - len(frame)) + b'"')
    assert len(raw) == LONGEST_REPLY
    assert len(read(raw).text) == LONGEST_REPLY - len(frame)
    with pytest.raises(ChatError, match="more than 16 MiB"):
        read(raw + b" ")


def test_clean_text_can_be_written():
    assert clean("a\ud800b") == "a\ufffdb"
    assert clean("grüß 🙂") == "grüß 🙂"
