"""`llm-coop status`: the state of a run in lines for people and in one line for scripts."""

import json
import threading
import time

import pytest
from invoking import assert_sentence, invoke
from model_studies import TINY, answering, asking, play, study_with_model
from small import small_study

from llm_coop_envs.policies.llm.journal import read_run
from llm_coop_envs.runs.control import order
from llm_coop_envs.runs.runner import run_study


def state(folder):
    done = invoke("status", folder, "--json")
    assert done.exit_code == 0
    (line,) = done.stdout.splitlines()
    return json.loads(line)


def test_a_run_that_was_stopped_and_then_finished(tmp_path):
    run_study(small_study(), tmp_path / "run", limit=2)
    found = state(tmp_path / "run")
    assert (found["state"], found["finished"], found["total"], found["in_play"]) == ("interrupted", 2, 5, 0)
    assert found["run"] == str(tmp_path / "run")
    run_study(small_study(), tmp_path / "run")
    found = state(tmp_path / "run")
    assert (found["state"], found["finished"], found["seconds_left"], found["why"]) == ("complete", 5, None, None)
    assert invoke("status", tmp_path / "run").stdout == "small: complete, 5 of 5 episodes\n"


def test_a_run_of_a_model_while_it_is_played_and_afterwards(tmp_path):
    with answering(latency=0.05) as server:
        playing = threading.Thread(target=lambda: play(server, tmp_path / "run"))
        playing.start()
        end = time.monotonic() + 30
        found = {}
        while found.get("in_play_share") is None and time.monotonic() < end:
            time.sleep(0.1)
            found = state(tmp_path / "run") if (tmp_path / "run" / "run.json").exists() else {}
        assert found["state"] == "running"
        assert found["in_play"] > 0
        assert 0 <= found["in_play_share"] < 1
        assert found["parts"] == ["main"]
        order(tmp_path / "run", {"do": "pause"})
        assert state(tmp_path / "run")["state"] in ("pausing", "paused")
        server.latency = 0.0
        order(tmp_path / "run", {"do": "resume"})
        playing.join(60)
    found = state(tmp_path / "run")
    assert found["calls"] == found["asked"] > 0
    assert found["cost_usd"] is None  # nobody knows the price
    lines = invoke("status", tmp_path / "run").stdout.splitlines()
    assert lines[0] == "short: complete, 5 of 5 episodes"
    assert "price unknown" in lines[1]
    assert "0 % fell back" in lines[2]


def test_what_is_no_run_is_a_sentence(tmp_path):
    assert_sentence(invoke("status", tmp_path, "--json"), "is no run folder")
    (tmp_path / "run.json").write_text("{")
    assert_sentence(invoke("status", tmp_path), "is damaged")


def test_what_a_killed_session_paid_is_counted(tmp_path, monkeypatch):
    prices = tmp_path / "prices.yaml"
    prices.write_text("scripted: {input: 1000, output: 2000}\n")

    def paid():
        (report,) = read_run(tmp_path / "run")
        return report.calls, report.prompt_tokens + report.completion_tokens, pytest.approx(report.usd)

    with answering() as server:
        access = asking(server, prices=prices)
        with monkeypatch.context() as killed:  # a killed session closes nothing: its counters are nowhere
            killed.setattr("llm_coop_envs.runs.runner._Runner._close", lambda *_: None)
            run_study(study_with_model(TINY), tmp_path / "run", access=access, limit=1)
        found = state(tmp_path / "run")
        assert found["state"] == "interrupted"
        assert (found["calls"], found["tokens"], found["cost_usd"]) == paid()
        assert found["cost_usd"] > 0
        before = found["calls"]
        run_study(study_with_model(TINY), tmp_path / "run", access=access)
    found = state(tmp_path / "run")
    assert found["state"] == "complete"
    assert (found["calls"], found["tokens"], found["cost_usd"]) == paid()
    assert found["calls"] == found["asked"] > before > 0
