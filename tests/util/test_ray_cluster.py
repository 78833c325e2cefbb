"""What is said where Ray is missing, unreachable, or of another version."""

import socket
import sys
import time

import pytest

import llm_coop_envs
from llm_coop_envs.errors import MissingExtra, RunError
from llm_coop_envs.util import ray_cluster
from llm_coop_envs.util.ray_cluster import connected, same_version


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"--ray auto needs.*llm-coop-envs\[ray\]"), connected("auto", 1, "--ray {}"):
        pass


def test_workers_of_another_version_are_refused():
    same_version(llm_coop_envs.__version__)
    with pytest.raises(
        RunError, match=rf"worker has llm-coop-envs {llm_coop_envs.__version__}, the driver 9.9; install"
    ):
        same_version("9.9")


@pytest.mark.ray
@pytest.mark.parametrize("at", ["silent", "closed", "nobody.invalid:6379", "auto", "word"])
def test_an_address_where_there_is_no_cluster_is_a_sentence_after_seconds(at, monkeypatch):
    pytest.importorskip("ray", reason="needs the extra 'ray'")
    monkeypatch.setattr(ray_cluster, "_ANSWER_SECONDS", 5.0)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as server:  # is connected to, and says nothing
        address = f"127.0.0.1:{server.getsockname()[1]}" if at in ("silent", "closed") else at
        if at == "closed":
            server.close()
        start = time.monotonic()
        said = rf"--ray {address}: no Ray cluster is reached there"
        with pytest.raises(RunError, match=said), connected(address, 1, "--ray {}"):
            pass
    assert time.monotonic() - start < 30
