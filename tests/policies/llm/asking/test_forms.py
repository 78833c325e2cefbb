"""The form in which an endpoint takes constrained answers is found by asking; trouble is not taken for a refusal."""

import asyncio
import dataclasses
import json

import pytest
from hostile import HostileServer, head
from llm_tools import key, question

from llm_coop_envs.policies.llm.asking.live import open_chat
from llm_coop_envs.policies.llm.chat import EndpointStopped
from llm_coop_envs.policies.llm.clients import Endpoint
from llm_coop_envs.policies.llm.clients.endpoint import Retry
from llm_coop_envs.policies.llm.clients.wire import FORMS
from llm_coop_envs.policies.llm.journal import read_run

BOUNDED = {"why": {"type": "string", "maxLength": 99}, "price": {"type": "number", "minimum": 0, "maximum": 9.5}}
SCHEMA = {"type": "object", "properties": BOUNDED, "required": ["price"]}
UNBOUNDED = {**SCHEMA, "properties": {"why": {"type": "string"}, "price": {"type": "number"}}}
# As llama-cpp-python says it: a list of pydantic's, as a text, with a status that means trouble.
PYDANTIC = (
    "[{'type': 'literal_error', 'loc': ('body', 'response_format', 'type'), 'msg': \"Input should be 'text' or "
    "'json_object'\", 'input': 'json_schema', 'ctx': {'expected': \"'text' or 'json_object'\"}}]"
)
DETAIL = [{"type": "extra_forbidden", "loc": ["body", "response_format", "schema"], "msg": "Extra inputs"}]


def error(status, said):
    return head(f"{status} No") + json.dumps({"error": {"message": said, "type": "internal_server_error"}}).encode()


def sent_form(body):
    asked = body.get("response_format")
    if asked is None:
        return "none"
    if asked["type"] == "json_schema":
        bounded = asked["json_schema"]["schema"] == SCHEMA
        assert bounded or asked["json_schema"]["schema"] == UNBOUNDED
        return "json_schema with bounds" if bounded else "json_schema"
    assert asked["type"] == "json_object"
    assert asked.get("schema", SCHEMA) == SCHEMA
    return "json_object with schema" if "schema" in asked else "json_object"


REFUSALS = {
    "a 500 of pydantic's": lambda form: error(500, PYDANTIC),
    "a 400 that names it": lambda form: error(400, f"response_format: {form} is not supported by this model"),
    "a 400 that says nothing": lambda form: error(400, "Bad request."),
    "a 422 of FastAPI's": lambda form: head("422 No") + json.dumps({"detail": DETAIL}).encode(),
    "a 501": lambda form: error(501, "Unsupported parameter: response_format"),
}


class Picky(HostileServer):
    """Takes one form (and none, if none is asked for)."""

    def __init__(self, takes, refusal):
        super().__init__(self.judge)
        self.takes = takes
        self.refusal = refusal
        self.refused = 0

    def judge(self, body, time):
        form = sent_form(body)
        if form == self.takes or form == "none":
            return None
        self.refused += 1
        return self.refusal(form)


def play(folder, server, count=40, first=0, client="lean", said=None, **fields):
    async def go():
        async with server:
            endpoint = Endpoint(
                model="m", base_url=server.base_url, client=client, retry=Retry(first_pause=0.0), **fields
            )
            notify = (said if said is not None else []).append
            async with open_chat(folder, endpoint, notify=notify) as chat:
                asked = [chat.ask(key(n), question(str(n), json_schema=SCHEMA)) for n in range(first, first + count)]
                return await asyncio.gather(*asked, return_exceptions=True), chat.counters

    return asyncio.run(go())


@pytest.mark.parametrize("client", ["lean", pytest.param("openai", marks=pytest.mark.rare)])
@pytest.mark.parametrize("refusal", REFUSALS)
@pytest.mark.parametrize("takes", FORMS[1:])
def test_the_form_is_found_by_asking_and_recorded(tmp_path, takes, refusal, client):
    said = []
    server = Picky(takes, REFUSALS[refusal])
    found, counters = play(tmp_path, server, client=client, said=said)
    assert not any(isinstance(one, Exception) for one in found)
    assert counters.forms == {"m": takes}
    # Those that were under way at the same time are refused too, and nobody later.
    assert server.refused == counters.errors["form"] <= 8 * FORMS[1:].index(takes)
    assert (
        sum(takes in one for one in said) == len([one for one in said if "JSON" in one]) == ("json_schema" not in takes)
    )
    (report,) = read_run(tmp_path)
    assert report.forms == {"m": takes}
    # A continuation knows it.
    again = Picky(takes, REFUSALS[refusal])
    found, counters = play(tmp_path, again, first=100, client=client)
    assert again.refused == 0
    assert counters.forms == {"m": takes}


def test_a_continuation_at_another_server_finds_its_form(tmp_path):
    play(tmp_path, Picky("json_object", REFUSALS["a 500 of pydantic's"]))
    server = Picky("json_schema", REFUSALS["a 400 that names it"])
    found, counters = play(tmp_path, server, first=100)
    assert not any(isinstance(one, Exception) for one in found)
    assert counters.forms == {"m": "json_schema"}


def test_a_server_in_trouble_keeps_its_form(tmp_path):
    server = HostileServer(lambda body, time: error(500, "Internal server error") if time < 2 else None)
    found, counters = play(tmp_path, server)
    assert not any(isinstance(one, Exception) for one in found)
    assert counters.errors == {"server": 80}
    assert counters.forms == {"m": FORMS[1]}


@pytest.mark.parametrize("status", [400, 422, 500])
def test_another_parameter_that_is_not_taken_ends_the_run_and_is_named(tmp_path, status):
    message = "1 validation error for Body: temperature: Input should be less than or equal to 1"
    server = HostileServer(lambda body, time: error(status, message))
    found, _ = play(tmp_path, server)
    assert all(isinstance(one, EndpointStopped) for one in found)
    assert "temperature: Input should be" in str(found[0])
    assert "check the sampling settings against what the model takes" in str(found[0])
    assert sum(server.asked.values()) <= 8 * len(FORMS)


def test_without_a_schema_no_form_is_looked_for(tmp_path):
    async def go():
        async with HostileServer(lambda body, time: error(400, "Bad request.")) as server:
            endpoint = Endpoint(model="m", base_url=server.base_url)
            async with open_chat(tmp_path, dataclasses.replace(endpoint, wait=1.0)) as chat:
                with pytest.raises(EndpointStopped):
                    await chat.ask(key(), question())
                assert sum(server.asked.values()) == 1
                assert chat.counters.forms == {}

    asyncio.run(go())


@pytest.mark.parametrize("status", [400, 422])
def test_a_refusal_that_names_nothing_known_blames_no_sampling_settings(tmp_path, status):
    server = HostileServer(lambda body, time: error(status, "the moon is in the seventh house"))
    found, _ = play(tmp_path, server)
    assert all(isinstance(one, EndpointStopped) for one in found)
    assert "sampling settings" not in str(found[0])
    assert "look into the server's own log" in str(found[0])
