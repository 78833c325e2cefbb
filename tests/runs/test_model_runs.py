"""Runs with a language model: budgets, Ctrl-C, shared answers, faults on the way, and no key anywhere."""

import asyncio
import gc
import importlib.util
import json
import os
import signal
import subprocess
import threading
import warnings
from pathlib import Path

import pytest
import zstandard
from invoking import invoke
from llm_tools import ENVIRONMENT
from model_studies import SHORT, TINY, answering, asking, play, study_with_model
from small import command, contents, events_in, small_study

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.asking.budget import Budget
from llm_coop_envs.policies.llm.chat import EndpointStopped
from llm_coop_envs.policies.llm.journal import read_run
from llm_coop_envs.policies.llm.testing.answers import scripted_answer
from llm_coop_envs.policies.llm.testing.faults import Faults
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.watcher import Watcher
from llm_coop_envs.storage.folder import INTERRUPTED

KEY = "sk-proj-Zx81kQv7Lw02TtYpAa99SecretSecret"
CLIENTS = ["lean", "openai", "litellm"]


def need(client):
    if client == "litellm" and importlib.util.find_spec("litellm") is None:
        pytest.skip("litellm is not installed")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The short study without any trouble; not to be changed."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    with answering() as server:
        play(server, folder)
    return folder


def test_a_run_is_played_where_an_event_loop_runs_already(tmp_path, whole):
    async def notebook():
        with answering() as server:
            return play(server, tmp_path / "run")

    assert asyncio.run(notebook()).complete
    assert contents(tmp_path / "run") == contents(whole)


@pytest.mark.parametrize("budget", [{"calls": 40}, {"tokens": 30_000}, {"usd": 0.02}])
def test_a_budget_is_never_passed_and_the_run_goes_on(tmp_path, whole, budget):
    prices = tmp_path / "prices.yaml"
    prices.write_text("scripted: {input: 1.0, output: 2.0}\n")
    folder = tmp_path / "run"
    faults = Faults.evenly(0.1, ("server_error", "rate_limit", "half_body"))
    with answering(latency=0.002, faults=faults) as server:
        outcome = play(server, folder, prices=prices, budget=Budget(**budget))
        assert not outcome.complete
        assert outcome.why.startswith("stopped at the budget")
        run = open_run(folder)
        assert run.manifest["status"] == INTERRUPTED
        (session,) = run.manifest["sessions"]
        assert session["asking"]["budget"] == budget
        assert session["asking"]["prices"] == {"scripted": {"input": 1.0, "output": 2.0, "source": "prices.yaml"}}
        (report,) = read_run(folder)
        assert report.calls == sum(server.asked.values())
        assert report.calls <= budget.get("calls", 10**9)
        assert report.tokens <= budget.get("tokens", 10**9)
        assert report.usd <= budget.get("usd", 10**9)
        # It stopped because the next question would not fit, not long before.
        used = {"calls": report.calls / 40, "tokens": report.tokens / 30_000, "usd": report.usd / 0.02}
        assert used[next(iter(budget))] > 0.8
        server.faults = Faults()
        # What is not given again holds as before.
        assert play(server, folder).why.startswith("stopped at the budget")
        larger = Budget(**{name: 1_000 * amount for name, amount in budget.items()})
        assert play(server, folder, budget=larger).complete
        assert [session["asking"]["prices"] for session in open_run(folder).manifest["sessions"]] == 3 * [
            session["asking"]["prices"]
        ]
    # Where prices are known the headers tell the cost; without them the same was played.
    unpriced = {name for name, content in contents(whole).items() if contents(folder)[name] != content}
    assert not {name for name in unpriced if "rounds" in name or "messages" in name}


def test_the_first_ctrl_c_waits_for_answers_and_the_run_goes_on(tmp_path, whole):
    asked = 0

    def answer(prompt, metadata):
        nonlocal asked
        asked += 1
        if asked == 60:
            os.kill(os.getpid(), signal.SIGINT)
        return scripted_answer(prompt, metadata)

    folder = tmp_path / "run"
    before = signal.getsignal(signal.SIGINT)
    with answering(answer, latency=0.01) as server:
        outcome = play(server, folder)
        assert not outcome.complete
        assert outcome.why is None
        (report,) = read_run(folder)
        # What was under way was waited for and kept.
        assert report.answers == report.calls == sum(server.asked.values()) >= 60
        assert report.lost == 0
        assert open_run(folder).manifest["status"] == INTERRUPTED
        assert open_run(folder).manifest["sessions"][0]["asked"]["counters"]["answers"] == report.answers
        assert play(server, folder).complete
        assert set(server.asked.values()) == {1}
    assert signal.getsignal(signal.SIGINT) is before
    assert contents(folder) == contents(whole)


def test_the_second_ctrl_c_drops_what_is_under_way(tmp_path, whole):
    def interrupt():
        os.kill(os.getpid(), signal.SIGINT)

    folder = tmp_path / "run"
    slow = Faults(shares={"timeout": 0.2}, hang=60.0)
    with answering(faults=slow, latency=0.002) as server:
        timers = [threading.Timer(seconds, interrupt) for seconds in (3.0, 3.5)]
        for timer in timers:
            timer.start()
        with pytest.raises(KeyboardInterrupt):
            play(server, folder, endpoint={"timeout": 50.0})
        for timer in timers:
            timer.join()
        assert open_run(folder).manifest["status"] == INTERRUPTED
        (report,) = read_run(folder)
        assert report.answers > 0
        server.faults = Faults()
        assert play(server, folder).complete
    assert contents(folder) == contents(whole)


def test_ctrl_c_while_tables_are_written_is_no_error(tmp_path):
    class Late(Watcher):
        def tables(self):
            signal.raise_signal(signal.SIGINT)

    with answering() as server:
        study = study_with_model(TINY)
        assert run_study(study, tmp_path / "run", access=asking(server), watcher=Late()).complete


def test_a_journal_that_was_cut_short_is_mended_and_that_is_said(tmp_path, whole):
    folder = tmp_path / "run"
    with answering(latency=0.002) as server:
        play(server, folder, budget=Budget(calls=60))
        (journal,) = (folder / "journal").glob("*.zst")
        journal.write_bytes(journal.read_bytes()[:-7])
        said = []
        watcher = Watcher()
        watcher.say = said.append
        outcome = run_study(
            study_with_model(), folder, access=asking(server, budget=Budget(calls=10_000)), watcher=watcher
        )
    assert outcome.complete
    assert any("the last commit was cut short" in sentence for sentence in said)
    notes = outcome.run.manifest["sessions"][1]["asked"]["notes"]
    assert any("the last commit was cut short" in sentence for sentence in notes)
    assert contents(folder) == contents(whole)


def test_runs_share_answers_only_when_asked(tmp_path):
    cold = "llm:scripted {parameters: {default: {temperature: 0, max_tokens: 200}}}"
    with answering() as server:
        play(server, tmp_path / "a", TINY, cold, cache=tmp_path / "cache")
        first = sum(server.asked.values())
        outcome = play(server, tmp_path / "b", TINY, cold, cache=tmp_path / "cache")
        assert sum(server.asked.values()) == first
        counters = outcome.run.manifest["sessions"][0]["asked"]["counters"]
        assert (counters["calls"], counters["cached"]) == (0, first)
        play(server, tmp_path / "c", TINY, cold)
        assert sum(server.asked.values()) == 2 * first
    # What was played is the same; only what it cost is not.
    a, b = open_run(tmp_path / "a"), open_run(tmp_path / "b")
    for name, seed in a.finished():
        assert a.read_events(name, seed)[1] == b.read_events(name, seed)[1]
    # A run with shared answers is whole without the cache.
    replay = ModelAccess(replay=tmp_path / "b")
    assert run_study(study_with_model(TINY, cold), tmp_path / "d", access=replay).complete
    assert contents(tmp_path / "d") == contents(tmp_path / "b")


def test_one_model_has_one_address():
    seats = SHORT.replace(
        "policies: price_matching",
        "policies: {firm_0: {name: 'llm:scripted', options: {base_url: 'http://127.0.0.1:1/v1'}}, "
        "firm_1: 'llm:scripted'}",
    )
    with pytest.raises(SettingsError, match="two ways"):
        ModelAccess().endpoints(small_study(seats))
    (endpoint,) = ModelAccess(endpoint={"base_url": "http://127.0.0.1:2/v1"}).endpoints(small_study(seats))
    assert endpoint.url == "http://127.0.0.1:2/v1"


def test_address_client_and_budget_change_nothing_in_what_is_played():
    plain = study_with_model()
    reached = study_with_model(player="llm:scripted {base_url: 'http://127.0.0.1:1/v1', limits: {most: 3}, key_env: K}")
    assert plain.digest == reached.digest == study_with_model(player="llm {model: scripted}").digest
    assert plain.digest != study_with_model(player="llm:scripted {pack: en-b}").digest
    assert plain.digest != study_with_model(player="llm:n").digest


def test_an_endpoint_that_is_not_there_stops_the_run(tmp_path):
    study = study_with_model(TINY, "llm:scripted")
    endpoint = {"base_url": "http://127.0.0.1:9/v1", "wait": 1.0}
    with pytest.raises(EndpointStopped, match=r"\(Connection refused\), and has not answered anything"):
        run_study(study, tmp_path / "run", access=ModelAccess(endpoint=endpoint))
    run = open_run(tmp_path / "run")
    assert run.manifest["status"] == INTERRUPTED
    assert run.manifest["sessions"][0]["asked"]["counters"]["errors"]["network"] >= 2


@pytest.mark.slow
@pytest.mark.parametrize("client", [CLIENTS[0], *(pytest.param(name, marks=pytest.mark.rare) for name in CLIENTS[1:])])
def test_with_thirty_percent_faults_everything_is_as_without(tmp_path, whole, client):
    need(client)
    faults = Faults.evenly(0.3, seed=7)
    quick = {"client": client, "timeout": 2.0, "retry": {"first_pause": 0.01, "longest_pause": 0.2}}
    with answering(faults=faults) as server:
        outcome = play(server, tmp_path / "run", endpoint=quick)
    if client == "litellm":
        # It forgets connections of its own after time-outs; they are collected here, and not said at the very end.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()
    assert outcome.complete
    assert contents(tmp_path / "run") == contents(whole)
    counters = outcome.run.manifest["sessions"][0]["asked"]["counters"]
    assert counters["retries"] > 0.2 * counters["answers"]
    assert {kind for kind, count in server.fates.items() if count} == {"answer", *faults.shares}


def everything(folder):
    """All bytes of all files below a folder, as they are and unpacked."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            raw = path.read_bytes()
            yield path.name, raw
            if path.suffix == ".zst":
                yield path.name, zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True).read()


@pytest.mark.parametrize("client", CLIENTS)
def test_the_key_is_nowhere_after_a_run_that_failed(tmp_path, study_file, client):
    need(client)
    folder, path = tmp_path / "run", study_file(TINY)
    with answering(key="another") as server:  # its refusal quotes the key that was sent
        flags = ["--policy", "llm:scripted", "--base-url", server.base_url, "--client", client, "--key-env", "MY_KEY"]
        process = subprocess.Popen(
            command("run", path, "-o", folder, *flags, "--cache", tmp_path / "cache"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**ENVIRONMENT, "MY_KEY": KEY},
            cwd=tmp_path,
        )
        arguments = Path(f"/proc/{process.pid}/cmdline")
        shown = arguments.read_bytes() if arguments.exists() else b""
        said = process.communicate(timeout=120)[0]
    assert process.returncode == 2
    assert b"[hidden]" in said
    found = [*everything(tmp_path), ("output", said), ("arguments", shown)]
    assert any(b'"type":"failed"' in raw for _, raw in found)
    assert [name for name, raw in found if KEY[8:28].encode() in raw] == []
    assert json.loads((folder / "run.json").read_text())["sessions"][0]["asking"]["endpoints"][0]["key_env"] == "MY_KEY"


@pytest.mark.parametrize(
    "flags",
    [
        ["--policy", "llm:scripted", "--key-env", KEY],
        ["--policy", "llm:scripted", "--key-env", KEY.replace("-", "_").lower()],
        ["--policy", "llm:scripted", "--base-url", f"http://user:{KEY}@127.0.0.1:1/v1"],
        ["--policy", "llm:scripted", "--base-url", f"http://127.0.0.1:1/v1?key={KEY}"],
        ["--policy", f"llm:scripted {{parameters: {{default: {{extra: {{x: {KEY}}}}}}}}}"],
        ["--policy", "llm:scripted {parameters: {default: {extra: {api_key: swordfish-and-chips}}}}"],
        ["--policy", f"llm:scripted {{system: 'the key is {KEY}'}}"],
        ["--policy", f"llm:scripted {KEY}"],
    ],
)
def test_a_key_where_none_belongs_is_refused_and_not_shown(tmp_path, study_file, flags):
    path = study_file(TINY)
    refused = invoke("run", path, *flags, "-o", tmp_path / "run")
    assert refused.exit_code == 2
    assert "[hidden]" in refused.stderr
    for secret in (KEY, KEY.replace("-", "_").lower(), "swordfish"):
        assert secret not in refused.stderr + refused.stdout
    assert not (tmp_path / "run").exists()
    assert not events_in(tmp_path)
