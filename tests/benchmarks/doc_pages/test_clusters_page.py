"""The page on several machines is what was recorded, and the simulation does what its laws say."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from llm_tools import ENVIRONMENT

from llm_coop_envs.benchmarks.doc_pages import clusters
from llm_coop_envs.benchmarks.doc_pages.clusters import PARTS, RECORD, STEPS_OF_A_CLAIM, Cluster, page, simulate

DOCS = Path(__file__).parents[3] / "docs" / "clusters.md"
IDLE = {"cpu": 1e-5, "operation": 1e-6, "sync": 1e-5}


def test_the_page_is_up_to_date():
    assert DOCS.read_text(encoding="utf-8") == page(), (
        "write it anew: python -m llm_coop_envs.benchmarks.doc_pages.clusters > docs/clusters.md"
    )
    assert "{{" not in page()


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(clusters, "EPISODES", 50)


@pytest.mark.parametrize(
    ("changes", "calls", "bottleneck"),
    [
        ({}, 3 * PARTS * 50 / 1.0, "latency"),
        ({"cpu": 0.05}, 3 * PARTS / 0.05, "own code"),
        ({"model": 20.0}, 3 * 20.0, "model"),
        ({"provider": 30.0}, 30.0, "model"),
        ({"operation": 0.02}, None, "folder"),
    ],
)
def test_what_is_slowest_sets_the_rate(small, changes, calls, bottleneck):
    simulated = simulate(Cluster(machines=3, **{**IDLE, **changes}), 40.0)
    assert simulated.bottleneck == bottleneck
    if bottleneck == "folder":  # every sync takes along what came meanwhile, so that there is no rate of its own
        assert simulated.calls < 0.9 * 3 * PARTS * 50
    else:
        assert simulated.calls == pytest.approx(calls, rel=0.05)


def test_a_part_of_the_record_comes_out_again():
    recorded = json.loads(RECORD.read_text(encoding="utf-8"))
    rates = {name: figures["median"] for name, figures in recorded["measured"].items()}
    for name, (first, *_) in clusters.scenarios(rates).items():
        assert simulate(first, 3.0).calls == pytest.approx(recorded["simulated"][name][0]["calls"], rel=0.05)


def test_the_operations_of_a_claim_are_counted(tmp_path):
    code = f"""
import os, sys
from pathlib import Path
from small import small_study
from llm_coop_envs.runs.claims import Claims
from llm_coop_envs.runs.folder import make_run
run = make_run(small_study(), Path({str(tmp_path / "run")!r}))
claims = Claims(run, "a")
seen = []
def hook(event, arguments):
    if event in ("open", "os.listdir", "os.remove", "os.rename", "os.mkdir", "os.utime"):
        if str({str(tmp_path)!r}) in str(arguments[0]):
            seen.append(event)
assert claims.claim((0, 1))
claims.release((0, 1))
sys.addaudithook(hook)
assert claims.claim((0, 2))
claims.number(run.conditions[0].name + "/2")
claims.release((0, 2))
print(len(seen))
"""
    env = {**ENVIRONMENT, "PYTHONPATH": os.pathsep.join([ENVIRONMENT["PYTHONPATH"], *sys.path])}
    result = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    counted = int(result.stdout or result.stderr)
    assert STEPS_OF_A_CLAIM / 2 <= counted + 3 <= STEPS_OF_A_CLAIM  # events: written aside, synced, renamed
