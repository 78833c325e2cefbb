import sys

import pytest

from llm_coop_envs.errors import MissingExtra, SettingsError
from llm_coop_envs.policies.llm.clients import Endpoint, connect
from llm_coop_envs.policies.llm.clients.endpoint import is_loopback

LOCAL = "http://127.0.0.1:8000/v1"


OPENAI = ("OPENAI_API_KEY", True, "max_completion_tokens")
OTHER = ("LLM_COOP_API_KEY", False, "max_tokens")
NEW = "max_completion_tokens"
URL = "https://api.openai.com/v1"


@pytest.mark.parametrize(
    ("given", "kind", "name", "where", "rest"),
    [
        ({"model": "openai/gpt-4o"}, "openai", "gpt-4o", "openai/gpt-4o", OPENAI),
        ({"model": "gpt-4o"}, "openai", "gpt-4o", "gpt-4o", OPENAI),
        ({"model": "gpt-4o", "client": "lean"}, "lean", "gpt-4o", "gpt-4o", OPENAI),
        ({"model": "maker/model"}, "litellm", "maker/model", "maker/model", OTHER),
        ({"model": "openai/oss", "base_url": LOCAL}, "lean", "openai/oss", LOCAL, OTHER),
        ({"model": "m", "base_url": LOCAL + "/", "client": "openai"}, "openai", "m", LOCAL, OTHER),
        ({"model": "m", "base_url": LOCAL, "key_env": "MINE"}, "lean", "m", LOCAL, ("MINE", True, "max_tokens")),
        ({"model": "m", "base_url": URL}, "lean", "m", URL, OPENAI),
        ({"model": "m", "base_url": LOCAL, "tokens_field": NEW}, "lean", "m", LOCAL, ("LLM_COOP_API_KEY", False, NEW)),
    ],
)
def test_what_is_meant(given, kind, name, where, rest):
    found = Endpoint(**given)
    assert (found.kind, found.name, found.where) == (kind, name, where)
    assert (found.key_variable, found.needs_key, found.sent_tokens_field) == rest


def test_openais_key_is_never_sent_elsewhere_unasked():
    for url in (LOCAL, "https://api.openai.com.example.org/v1", "https://example.org/api.openai.com"):
        assert Endpoint(model="m", base_url=url).key_variable == "LLM_COOP_API_KEY"
    assert Endpoint(model="m", base_url=LOCAL, key_env="OPENAI_API_KEY").key_variable == "OPENAI_API_KEY"


@pytest.mark.parametrize(
    "given",
    [
        {"model": ""},
        {"model": None},
        {"client": "curl"},
        {"timeout": 0},
        {"timeout": "5"},
        {"stream": 1},
        {"tokens_field": "tokens"},
        {"base_url": "127.0.0.1:8000"},
        {"base_url": "ftp://host/v1"},
        {"base_url": "http://"},
        {"base_url": "http://host:port/v1"},
        {"base_url": 8000},
        {"client": "litellm", "stream": True},
    ],
)
def test_impossible_endpoints(given):
    field = list(given)[-1]
    with pytest.raises(SettingsError, match=field):
        Endpoint(**{"model": "m", **given})


@pytest.mark.parametrize(
    "given",
    [
        {"base_url": "http://user:very-secret@host/v1"},
        {"base_url": "http://host/v1?key=very-secret"},
        {"base_url": "http://host/v1#very-secret"},
        {"base_url": "http://user:very-secret[@host/v1"},
        {"base_url": "http//user:very-secret@host/v1"},
        {"base_url": "user:very-secret@host:8000"},
        {"base_url": "ftp://user:very-secret@host/v1"},
        {"base_url": "http://user:very-secret@host:port/v1"},
        {"base_url": "http://user:very-secret/@host/v1"},
        {"base_url": "host/v1?key=very-secret"},
        {"key_env": "sk-very-secret"},
    ],
)
def test_a_secret_in_the_wrong_place_is_refused_unseen(given):
    with pytest.raises(SettingsError) as raised:
        Endpoint(model="m", **given)
    assert "very-secret" not in str(raised.value)
    assert raised.value.value == "[hidden]"


@pytest.mark.parametrize(
    ("client", "module", "extra"),
    [("lean", "aiohttp", "openai"), ("openai", "openai", "openai"), ("litellm", "litellm", "llm")],
)
def test_a_missing_library_is_named_by_its_extra(monkeypatch, client, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra, match=rf"llm-coop-envs\[{extra}\]"):
        connect(Endpoint(model="m", base_url=LOCAL, client=client))


def test_without_a_key_nothing_is_tried(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for client in ("lean", "openai"):
        with pytest.raises(SettingsError, match="OPENAI_API_KEY"):
            connect(Endpoint(model="gpt-4o", client=client))


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://127.0.0.1:1/v1", True),
        ("http://127.9.9.9/v1", True),
        ("http://[::1]:1/v1", True),
        ("http://localhost/v1", True),
        ("http://a.localhost/v1", True),
        ("http://localhost.example.org/v1", False),
        ("https://api.openai.com/v1", False),
        ("http://192.168.1.2/v1", False),
    ],
)
def test_what_is_this_machine(url, here):
    assert is_loopback(url) is here


def test_what_a_manifest_may_say():
    assert Endpoint(model="m", base_url=LOCAL).describe() == {
        "model": "m",
        "endpoint": LOCAL,
        "client": "lean",
        "stream": False,
    }
