"""A command is told what happens to a run, while the run goes on."""

import json
import shlex
import sys
import threading
import time
from types import SimpleNamespace

import pytest
from invoking import assert_sentence, invoke
from model_studies import TINY, answering, asking, study_with_model
from rich.console import Console
from small import KBC, long_study, small_study

from llm_coop_envs.errors import LlmCoopError
from llm_coop_envs.policies.llm.asking.budget import Budget
from llm_coop_envs.runs import notify, side_by_side
from llm_coop_envs.runs.control import order
from llm_coop_envs.runs.notify import NOTICES, Notifier
from llm_coop_envs.runs.progress import RichWatcher
from llm_coop_envs.runs.runner import run_study


@pytest.fixture
def told(tmp_path):
    """A command that keeps what it is told, and a function that reads it."""
    script, kept = tmp_path / "keep.py", tmp_path / "kept.jsonl"
    script.write_text(f"import sys; open({str(kept)!r}, 'ab').write(sys.stdin.buffer.read())")

    def read():
        return [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []

    return shlex.join([sys.executable, str(script)]), read


def play(command, study, folder, **more):
    with RichWatcher(Console(quiet=True), command) as watcher:
        return run_study(study, folder, watcher=watcher, **more)


def test_the_end_of_a_run_is_told(told, tmp_path):
    command, read = told
    play(command, small_study(), tmp_path / "run", limit=2)
    play(command, small_study(), tmp_path / "run")
    stopped, finished = read()
    assert (stopped["event"], finished["event"]) == ("stopped", "finished")
    assert stopped["sentence"] == "run: stopped: 2 of 5 episodes."
    assert finished["sentence"] == "run: finished, 5 episodes."
    assert finished["run"] == str(tmp_path / "run")
    assert (finished["study"], finished["finished"], finished["total"]) == ("small", 5, 5)
    assert {"stopped", "finished"} <= set(NOTICES)


def test_a_finished_run_that_is_given_again_is_no_news_unless_something_was_missing(told, tmp_path):
    command, read = told
    for _ in range(3):
        play(command, small_study(), tmp_path / "run")
    assert [notice["event"] for notice in read()] == ["finished"]
    next((tmp_path / "run" / "events").rglob("*.gz")).unlink()
    play(command, small_study(), tmp_path / "run")
    assert [notice["event"] for notice in read()] == ["finished"] * 2


def test_the_command_line_tells_it_and_keeps_the_command_out_of_the_run(told, tmp_path, monkeypatch):
    command, read = told
    (tmp_path / "study.yaml").write_text(KBC)
    secret = f"{command} https://hooks.example/secret-path"
    assert invoke("run", tmp_path / "study.yaml", "-o", tmp_path / "a", "--notify", secret).exit_code == 0
    monkeypatch.setenv("LLM_COOP_NOTIFY", command)
    assert invoke("run", tmp_path / "study.yaml", "-o", tmp_path / "b").exit_code == 0
    assert [notice["event"] for notice in read()] == ["finished", "finished"]
    for path in (tmp_path / "a").rglob("*"):
        assert not path.is_file() or b"secret-path" not in path.read_bytes()


def test_pauses_by_a_person_are_told(told, tmp_path):
    command, read = told
    playing = threading.Thread(target=lambda: play(command, small_study(long_study(400)), tmp_path / "run"))
    playing.start()
    end = time.monotonic() + 30
    while not list((tmp_path / "run").glob(".control-*")) and time.monotonic() < end:
        time.sleep(0.02)
    for what in ("pause", "pause", "resume", "stop"):
        order(tmp_path / "run", {"do": what})
    playing.join(60)
    assert [notice["event"] for notice in read()] == ["paused", "resumed", "stopped"]


def test_a_budget_that_is_used_up_is_told(told, tmp_path):
    command, read = told
    with answering() as server:
        access = asking(server, **{"budget": Budget(calls=4)})
        play(command, study_with_model(TINY), tmp_path / "run", access=access)
    (notice,) = read()
    assert notice["event"] == "budget"
    assert "4 of 4" in notice["sentence"]


def test_rising_fallbacks_are_told(told, tmp_path):
    command, read = told
    more = TINY.replace("seeds: [0]", "seeds: [0, 1, 2, 3]")
    with answering(lambda *question: "no answer at all") as server:
        play(command, study_with_model(more), tmp_path / "run", access=asking(server))
    events = [notice["event"] for notice in read()]
    assert "fallbacks" in events
    assert events[-1] == "finished"


def test_a_pause_that_lasts_is_told_once_and_so_is_its_end(told, monkeypatch):
    heard = []

    class Watching:
        def notice(self, kind, sentence):
            heard.append((kind, sentence))

    clock = iter([0.0, 30.0, 61.0, 90.0, 200.0, 210.0])
    monkeypatch.setattr(side_by_side, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    table = object.__new__(side_by_side.SideBySide)
    table._watcher, table._steering = Watching(), side_by_side.Steering()
    table._paused_since, table._is_pause_told = float("inf"), False
    for reason in ("no answer", "no answer", "no answer", "no answer", None, "again"):
        table._watch_pauses(reason)
    assert heard == [("paused", "paused: no answer"), ("resumed", "going on")]


def test_an_error_that_ends_a_run_is_told(told, tmp_path):
    command, read = told
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "other.txt").write_text("somebody's")
    with pytest.raises(LlmCoopError):
        play(command, small_study(), tmp_path / "run")
    (notice,) = read()
    assert notice["event"] == "failed"
    assert "neither empty nor a run folder" in notice["sentence"]


def test_a_command_that_fails_or_hangs_does_not_hold_the_run(tmp_path, monkeypatch):
    said = []
    failing = Notifier(shlex.join([sys.executable, "-c", "raise SystemExit(3)"]), said.append)
    for _ in range(5):
        failing.send("finished", "x")
    failing.close()
    assert len(said) == 3  # then nobody wants to read it again
    assert "ended with code 3; the run goes on" in said[0]
    monkeypatch.setattr(notify, "SECONDS", 0.2)
    hanging = Notifier(shlex.join([sys.executable, "-c", "import time; time.sleep(60)"]), said.append)
    hanging.send("finished", "x")
    hanging.close()
    assert "took more than" in said[-1]


@pytest.mark.parametrize("command", ["", "   ", "'x", "no-such-program-anywhere --a"])
def test_what_is_no_command_is_refused_before_anything_is_played(tmp_path, command):
    (tmp_path / "study.yaml").write_text(KBC)
    done = invoke("run", tmp_path / "study.yaml", "-o", tmp_path / "run", "--notify", command)
    assert_sentence(done, "notify=")
    assert not (tmp_path / "run" / "run.json").exists()


def test_no_shell_reads_the_command(tmp_path):
    notifier = Notifier(f"{sys.executable} -c pass ; touch {tmp_path / 'made'}", lambda sentence: None)
    notifier.send("finished", "$(touch x) `touch y`")
    notifier.close()
    assert not list(tmp_path.iterdir())
