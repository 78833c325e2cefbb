import hashlib
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_tools import key, question

from llm_coop_envs.errors import LlmCoopError
from llm_coop_envs.policies.llm.chat import (
    RETRYABLE,
    BudgetReached,
    ChatError,
    ChatMessage,
    ChatRequest,
    EndpointStopped,
    NotInJournal,
    RunStopped,
)
from llm_coop_envs.util.fastjson import loads
from llm_coop_envs.util.fixed_schema import FixedSchema

SCHEMA = FixedSchema({"type": "object", "required": []})
texts = st.text(st.characters(), max_size=20)  # surrogates included
messages = st.lists(st.builds(ChatMessage, st.sampled_from(["system", "user", "assistant"]), texts), max_size=4)
requests = st.builds(
    ChatRequest,
    model=texts,
    messages=messages.map(tuple),
    temperature=st.none() | st.floats(0, 2),
    top_p=st.none() | st.floats(0, 1),
    max_tokens=st.none() | st.integers(1, 4096),
    stop=st.lists(texts, max_size=2).map(tuple),
    seed=st.none() | st.integers(0, 2**31),
    reasoning_effort=st.none() | st.sampled_from(["low", "high"]),
    json_schema=st.none() | st.just({"type": "object"}) | st.just(SCHEMA),
    extra=st.dictionaries(texts, st.integers(-(2**63), 2**64 - 1), max_size=2),  # larger ones are read as floats
)


@given(requests, requests)
def test_requests_have_the_same_digest_just_if_they_are_equal(one, other):
    assert (one.digest() == other.digest()) == (one.plain() == other.plain())
    assert loads(one.packed()) == json.loads(json.dumps(one.plain()))
    assert len(one.digest()) == 64


def test_the_digest_is_the_one_that_journals_hold():
    # Replays of old runs depend on it: a change needs a new journal format.
    asked = question(temperature=0.7, stop=("\n",), json_schema={"b": 1, "a": 2})
    settings = b'{"json_schema":{"a":2,"b":1},"max_tokens":50,"model":"m","stop":["\\n"],"temperature":0.7}'
    hashed = settings + b"\nsystem 19\nYou are player one." + b"\nuser 13\nWhich number?"
    assert asked.digest() == hashlib.sha256(hashed).hexdigest()


def test_text_that_moves_between_messages_changes_the_digest():
    one = ChatRequest("m", (ChatMessage("user", "ab"), ChatMessage("user", "c")))
    other = ChatRequest("m", (ChatMessage("user", "a"), ChatMessage("user", "bc")))
    forged = ChatRequest("m", (ChatMessage("user", "ab\nuser 1\nc"),))
    assert len({one.digest(), other.digest(), forged.digest()}) == 3


def test_extra_fields_are_hashed_whatever_their_order():
    assert question(extra={"a": 1, "b": 2}).digest() == question(extra={"b": 2, "a": 1}).digest()


def test_unset_fields_are_left_out():
    assert ChatRequest("m", ()).plain() == {"model": "m", "messages": []}
    assert loads(ChatRequest("m", ()).packed()) == {"model": "m", "messages": []}
    assert set(question().plain()) == {"model", "messages", "max_tokens"}


def test_keys_name_themselves():
    assert str(key(3)) == "kbc/1, player_3, step 0, choose"
    assert str(key(3, attempt=2)) == "kbc/1, player_3, step 0, choose, attempt 2"


def test_errors_survive_a_process_pool():
    error = ChatError("gone", kind="server", status=503, retry_after=2.0, maybe_paid=True)
    found = pickle.loads(pickle.dumps(error))
    assert (str(found), found.kind, found.status, found.retry_after, found.maybe_paid) == (
        "gone",
        "server",
        503,
        2.0,
        True,
    )
    for kind in (RunStopped, BudgetReached, EndpointStopped, NotInJournal):
        found = pickle.loads(pickle.dumps(kind("stopped")))
        assert type(found) is kind
        assert str(found) == "stopped"


def test_what_stops_a_run_is_no_failed_attempt():
    # A policy that catches ChatError must not catch the end of the money.
    assert not issubclass(RunStopped, ChatError)
    assert issubclass(BudgetReached, RunStopped)
    assert issubclass(EndpointStopped, RunStopped)
    assert all(issubclass(kind, LlmCoopError) for kind in (ChatError, RunStopped, NotInJournal))


@pytest.mark.parametrize("kind", ["auth", "quota", "not_found", "bad_request", "content_filter", "context_too_long"])
def test_what_cannot_succeed_is_not_retried(kind):
    assert not ChatError("no", kind=kind).may_retry


@pytest.mark.parametrize("kind", sorted(RETRYABLE))
def test_what_may_succeed_is_retried(kind):
    assert ChatError("no", kind=kind).may_retry
    assert kind in ("rate_limit", "server", "network", "timeout", "bad_reply", "form")


def test_the_hash_of_a_fixed_schema_is_that_of_any_other():
    plain = {"type": "object", "properties": {"price": {"type": "number", "maximum": 7}}}
    messages = (ChatMessage("user", "Which price?"),)
    fixed = FixedSchema(plain)
    digest = ChatRequest("m", messages, json_schema=plain).digest()
    assert [ChatRequest("m", messages, json_schema=fixed).digest() for _ in range(2)] == [digest, digest]
    assert ChatRequest("m", messages, json_schema=FixedSchema({**plain, "title": "x"})).digest() != digest
    plain["title"] = "x"
    assert ChatRequest("m", messages, json_schema=plain).digest() != digest
    assert ChatRequest("m", messages).digest() != digest
    assert fixed.size == len(json.dumps(fixed))
