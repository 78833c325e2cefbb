"""No key in anything that a run leaves behind: files, logs, tracebacks, process arguments."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest
import zstandard
from llm_tools import ENVIRONMENT

from llm_coop_envs.policies.llm.testing.faults import Faults
from llm_coop_envs.policies.llm.testing.server import ScriptedServer, in_thread

PROGRAM = Path(__file__).parents[3] / "tools" / "failing.py"
KEY = "sk-proj-Zx81kQv7Lw02TtYpAa99SecretSecret"


def run(folder, url, client, variable="MY_PROVIDER_KEY", **environment):
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), str(folder), url, client, variable],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**ENVIRONMENT, **environment},
        cwd=folder,
    )
    arguments = Path(f"/proc/{process.pid}/cmdline")
    shown = arguments.read_bytes() if arguments.exists() else b""
    said = process.communicate()[0]
    return process.returncode, said, shown


def everything(folder):
    """All bytes of all files below a folder, as they are and unpacked."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            raw = path.read_bytes()
            yield path.name, raw
            if path.suffix == ".zst":
                yield path.name, zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True).read()


@pytest.mark.parametrize("client", ["lean", "openai", "litellm"])
@pytest.mark.parametrize("way", ["refused", "faults"])
def test_the_key_is_in_no_artefact_of_a_failed_run(tmp_path, client, way):
    if client == "litellm" and importlib.util.find_spec("litellm") is None:
        pytest.skip("litellm is not installed")
    folder = tmp_path / "run"
    folder.mkdir()
    server = ScriptedServer(
        key="another" if way == "refused" else KEY,  # the refusal quotes the key that was sent
        faults=Faults(shares={"server_error": 0.2, "reset": 0.2, "half_body": 0.1, "broken_json": 0.4}, seed=1),
    )
    with in_thread(server):
        status, said, shown = run(folder, server.base_url, client, MY_PROVIDER_KEY=KEY)
    assert status == 1
    assert b"EndpointStopped" in said
    if way == "refused":
        assert b"Incorrect API key provided: [hidden]" in said
    else:
        assert sum(server.asked.values()) >= 4  # it did send the right key
    found = list(everything(folder))
    assert any(b'"type":"failed"' in raw for _, raw in found)
    assert [name for name, raw in [*found, ("output", said), ("arguments", shown)] if KEY.encode() in raw] == []
    # Nor a piece of it that would be enough to guess the rest.
    assert [name for name, raw in [*found, ("output", said)] if KEY[8:28].encode() in raw] == []


@pytest.mark.parametrize("client", ["lean", "openai"])
def test_a_key_given_in_place_of_its_variable_is_not_shown(tmp_path, client):
    status, said, _ = run(tmp_path, "http://127.0.0.1:1/v1", client, variable=KEY)
    assert status == 1
    assert b"must be the name of an environment variable" in said
    assert KEY.encode() not in said


@pytest.mark.parametrize("client", ["lean", "openai"])
def test_an_unusable_key_is_not_shown(tmp_path, client):
    status, said, _ = run(tmp_path, "http://127.0.0.1:1/v1", client, MY_PROVIDER_KEY=f"{KEY}\nx")
    assert status == 1
    assert b"MY_PROVIDER_KEY" in said
    assert KEY.encode() not in said
