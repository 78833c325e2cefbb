"""Steering a run from outside while it is played: pause, resume, stop, limit."""

import contextlib
import json
import os
import socket
import stat
import time

import pytest
from invoking import assert_sentence, invoke
from model_studies import SHORT, TINY, answering, play
from orders import in_background, status, until
from small import KBC, contents, small_study

from llm_coop_envs.errors import RunError
from llm_coop_envs.page.known_runs import KnownRuns
from llm_coop_envs.runs import control
from llm_coop_envs.runs.control import listen_for_orders, order, query_sessions, read_sessions
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.steering import Steering


def asked(folder):
    return (status(folder) or {}).get("counters", {}).get("calls", 0)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    with answering() as server:
        play(server, folder)
    return contents(folder)


def test_a_paused_run_asks_nothing_and_goes_on_without_loss(tmp_path, undisturbed):
    folder = tmp_path / "run"
    with answering(latency=0.02) as server, in_background(lambda: play(server, folder)) as found:
        until(lambda: asked(folder) > 3)
        assert invoke("pause", folder).exit_code == 0
        until(lambda: status(folder)["paused"] and status(folder)["counters"]["in_flight"] == 0)
        time.sleep(0.7)  # a tick
        before = sum(server.asked.values())
        time.sleep(0.5)
        assert sum(server.asked.values()) == before
        assert not found
        shown = status(folder)
        assert shown["counters"]["answers"] == before
        assert 0 < len(shown["playing"]) == len(shown["shares"])
        assert invoke("resume", folder).exit_code == 0
    assert found["value"].complete
    assert set(server.asked.values()) == {1}
    assert contents(folder) == undisturbed
    assert order(folder, {"do": "status"}) == {}


def test_what_became_of_answers_is_told_while_an_episode_is_played(tmp_path):
    folder = tmp_path / "run"
    with answering(lambda *question: "%%%", latency=0.05) as server, in_background(lambda: play(server, folder, TINY)):
        rates = until(lambda: (status(folder) or {}).get("rates", {}).get("fallbacks") and status(folder)["rates"])
        assert rates["asked"] >= rates["fallbacks"] + rates["repaired"]
        (shown,) = KnownRuns(tmp_path).runs()
        assert shown["finished"] == 0
        assert shown["rates"]["fallbacks"] >= rates["fallbacks"]
        order(folder, {"do": "stop"})


def test_stopping_keeps_what_was_paid(tmp_path, undisturbed):
    folder = tmp_path / "run"
    with answering(latency=0.02) as server:
        with in_background(lambda: play(server, folder)) as found:
            until(lambda: asked(folder) > 3)
            stopped = invoke("stop", folder)
            assert "continue with: llm-coop run" in stopped.stdout.replace("\n", " ")
            invoke("stop", folder)  # again: it is no second Ctrl-C, which would drop what is under way
        assert not found["value"].complete
        assert open_run(folder).manifest["status"] == "interrupted"
        assert play(server, folder).complete
        assert set(server.asked.values()) == {1}
    assert contents(folder) == undisturbed


def test_a_paused_run_can_be_stopped(tmp_path):
    folder = tmp_path / "run"
    with answering(latency=0.02) as server, in_background(lambda: play(server, folder)) as found:
        until(lambda: asked(folder) > 3)
        order(folder, {"do": "pause"})
        time.sleep(0.7)
        order(folder, {"do": "stop"})
    assert not found["value"].complete


def test_the_limit_is_kept(tmp_path):
    folder = tmp_path / "run"
    text = SHORT.replace("seeds: [0, 1]", "seeds: [0, 1, 2]")
    with answering(latency=0.05) as server, in_background(lambda: play(server, folder, text)) as found:
        until(lambda: server.most_in_flight > 4)
        assert invoke("limit", folder, 2).exit_code == 0
        until(lambda: status(folder)["counters"]["limit"] == 2 and status(folder)["counters"]["in_flight"] <= 2)
        server.most_in_flight = 0
        time.sleep(1)
        assert 0 < server.most_in_flight <= 2
        assert order(folder, {"do": "limit", "most": 4000})["main"]["most"] == 4000
        until(lambda: server.most_in_flight > 2)
    assert found["value"].complete


def settled(folder):
    """How many episodes there are, once that has not changed for a while: what was begun is finished."""
    found, since = -1, time.monotonic()
    while time.monotonic() < since + 1.5:
        there = len(list(folder.rglob("*.jsonl.gz")))
        found, since = there, since if there == found else time.monotonic()
        time.sleep(0.05)
    return found


@pytest.mark.parametrize("workers", [1, 2])
def test_runs_of_rules_are_steered_between_episodes(tmp_path, workers):
    folder = tmp_path / "run"
    text = small_study().text.replace("[1, 2, 3]", str(list(range(200))))
    with in_background(lambda: run_study(small_study(text), folder, workers=workers)) as found:
        until(lambda: (status(folder) or {}).get("finished", 0) > 2)
        order(folder, {"do": "pause"})
        before = settled(folder)
        time.sleep(0.5)
        assert len(list(folder.rglob("*.jsonl.gz"))) == before < 200
        order(folder, {"do": "limit", "most": 1})
        order(folder, {"do": "resume"})
        until(lambda: len(list(folder.rglob("*.jsonl.gz"))) > before)
        order(folder, {"do": "stop"})
    assert not found["value"].complete


def test_events_of_an_episode_that_is_played_can_be_read(tmp_path):
    folder = tmp_path / "run"
    with answering(latency=0.02) as server, in_background(lambda: play(server, folder)):
        until(lambda: asked(folder) > 3)
        order(folder, {"do": "pause"})
        until(lambda: status(folder)["counters"]["in_flight"] == 0)
        (name, told), *_ = status(folder)["playing"].items()
        found = order(folder, {"do": "events", "episode": name, "first": 0, "most": 1000})["main"]
        assert found["events"][0]["type"] == "start"
        assert len(found["events"]) == found["there"] >= told["events"]
        rest = order(folder, {"do": "events", "episode": name, "first": 1, "most": 1})["main"]
        assert rest["events"] == found["events"][1:2]
        with pytest.raises(RunError, match="is not being played"):
            order(folder, {"do": "events", "episode": "nothing/0"})
        order(folder, {"do": "resume"})


@pytest.mark.parametrize("workers", [1, 2])
def test_events_of_rules_can_be_read_while_they_play(tmp_path, workers):
    """In this process, or in a worker, which has a socket of its own that is gone afterwards."""
    folder = tmp_path / "run"
    text = KBC.replace("[1, 2, 3]", "[1, 2]").replace(
        "talk: false, players: 5", "talk: false, players: 200, session: repeated, rounds: 60"
    )
    with in_background(lambda: run_study(small_study(text), folder, workers=workers)) as found:

        def look():
            told = query_sessions(folder).get("main", {"playing": {}})["playing"]
            for name, one in told.items():
                with contextlib.suppress(RunError):  # it is finished by now
                    what = {"do": "events", "episode": name, "first": 0, "most": 10}
                    found = control.ask(one["by"], what)
                    if found["there"] > 10:
                        assert found["events"][0]["type"] == "start"
                        return one["by"]
            return None

        by = until(look)
        if workers > 1:
            assert len(until(lambda: query_sessions(folder)["main"]["devices"])) > 1
        order(folder, {"do": "stop"})
    assert not found["value"].complete
    assert not control.socket_path(by).exists()


@pytest.fixture
def far(tmp_path, monkeypatch):
    """A session on another machine that shares the folder."""
    here = socket.gethostname()
    monkeypatch.setattr(control, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(socket, "gethostname", lambda: "far")
    steering = Steering(progress={"finished": 2})
    with listen_for_orders(tmp_path, "a", steering) as why:
        assert why == ""
        monkeypatch.setattr(socket, "gethostname", lambda: here)
        yield tmp_path, steering


def test_a_session_elsewhere_does_what_is_left_for_it_in_the_folder(far):
    folder, steering = far
    assert order(folder, {"do": "pause"})["a"]["paused"] is True
    assert steering.paused
    assert order(folder, {"do": "limit", "most": 3})["a"]["most"] == 3
    assert order(folder, {"do": "resume"})["a"]["paused"] is False
    with pytest.raises(RunError, match="must be an integer"):
        order(folder, {"do": "limit", "most": 0})
    found = until(lambda: query_sessions(folder))
    assert found["a"]["finished"] == 2
    order(folder, {"do": "pause"})
    until(lambda: query_sessions(folder)["a"]["paused"])


def test_what_other_users_leave_is_not_done(far, monkeypatch):
    folder, steering = far
    monkeypatch.setattr(control, "FAR_SECONDS", 0.5)
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(RunError, match="part a on far did not answer"):
        order(folder, {"do": "pause"})
    assert not steering.paused
    assert list(folder.glob(".order-*")) == []


def test_what_was_left_for_a_session_that_is_gone_is_not_done_by_the_next(tmp_path, monkeypatch):
    monkeypatch.setattr(control, "LOOK_SECONDS", 0.05)
    (tmp_path / ".order-main.json").write_text('{"do": "stop"}')
    stopped = []
    with listen_for_orders(tmp_path, "main", Steering(stop=lambda: stopped.append(1))):
        time.sleep(0.3)
    assert not stopped


def test_a_silent_session_elsewhere_counts_as_gone(tmp_path):
    told = {"name": "0" * 16, "host": "far", "pid": 1, "answer": {"paused": False}}
    (tmp_path / ".control-a.json").write_text(json.dumps(told))
    assert query_sessions(tmp_path) == {"a": {"paused": False}}
    os.utime(tmp_path / ".order-a.json", (1, 1))
    assert query_sessions(tmp_path) == {}


@pytest.fixture
def steered(tmp_path):
    steering = Steering(progress={"finished": 0})
    with listen_for_orders(tmp_path, "main", steering) as why:
        assert why == ""
        yield tmp_path, steering


def test_other_users_are_refused(steered, monkeypatch):
    folder, steering = steered
    monkeypatch.setattr(control, "peer_user", lambda talk: os.getuid() + 1)
    with pytest.raises(RunError, match="belongs to another user"):
        order(folder, {"do": "pause"})
    assert not steering.paused


def test_the_kernel_says_who_the_peer_is():
    one, other = socket.socketpair()
    with one, other:
        assert control.peer_user(one) == os.getuid()


@pytest.mark.parametrize("what", ["no order", [], {"do": "fly"}, {"do": "limit", "most": 0}, {"do": "limit"}, None])
def test_what_is_no_order_is_refused(steered, what):
    folder, _ = steered
    with pytest.raises(RunError):
        order(folder, what)
    assert order(folder, {"do": "status"})["main"]["paused"] is False


def test_what_is_nested_too_deep_ends_nobody(steered):
    folder, _ = steered
    (session,) = read_sessions(folder)
    with socket.socket(socket.AF_UNIX) as talk:
        talk.connect(str(control.socket_path(session["name"])))
        talk.sendall(b"[" * 60_000 + b"\n")
        assert b"error" in talk.recv(1000)
    assert order(folder, {"do": "status"})["main"]["paused"] is False


def test_a_silent_peer_keeps_nobody_out_for_long(steered, monkeypatch):
    folder, _ = steered
    (session,) = read_sessions(folder)
    monkeypatch.setattr(control, "ANSWER_SECONDS", 0.2)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.connect(str(control._own_folder() / session["name"]))
        time.sleep(0.5)
        monkeypatch.setattr(control, "ANSWER_SECONDS", 5.0)
        assert order(folder, {"do": "status"})["main"]["finished"] == 0


def test_the_socket_lies_where_nobody_else_may_go(steered, tmp_path, monkeypatch):
    folder, _ = steered
    (session,) = read_sessions(folder)
    place = control._own_folder()
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert len(str(place / session["name"])) < 104
    open_to_all = tmp_path / "llm-coop"
    open_to_all.mkdir(mode=0o755)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(RunError, match="not a folder of this user alone"):
        control._own_folder()
    with listen_for_orders(tmp_path, "other", Steering()) as why:
        assert "cannot be paused or steered" in why  # and the run goes on


def test_a_long_folder_name_needs_no_long_socket(tmp_path, monkeypatch):
    deep = tmp_path / ("d" * 100) / ("e" * 100)
    deep.mkdir(parents=True)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(deep))
    with listen_for_orders(deep, "main", Steering()) as why:
        assert why == ""
        assert order(deep, {"do": "status"})["main"]["paused"] is False


def test_pointers_lead_nowhere_else(tmp_path):
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(tmp_path / "other"))
        other.listen()
        other.settimeout(0.2)
        for name in (str(tmp_path / "other"), "../other", "", 5):
            told = {"name": name, "host": socket.gethostname(), "pid": 1}
            (tmp_path / ".control-main.json").write_text(json.dumps(told))
            assert order(tmp_path, {"do": "stop"}) == {}
        with pytest.raises(TimeoutError):
            other.accept()


def test_leaving_costs_nothing(tmp_path):
    """The thread is woken; on a socket that was shut down it would spin for seconds."""
    with listen_for_orders(tmp_path, "main", Steering()):
        time.sleep(0.1)
        began, used = time.monotonic(), time.process_time()
    assert time.monotonic() - began < 2
    assert time.process_time() - used < 0.5


def test_nothing_is_left_behind(steered):
    folder, _ = steered
    (session,) = read_sessions(folder)
    (folder / "sub").mkdir()
    with listen_for_orders(folder / "sub", "main", Steering()):
        (other,) = read_sessions(folder / "sub")
    assert read_sessions(folder / "sub") == []
    assert not (control._own_folder() / other["name"]).exists()
    assert (control._own_folder() / session["name"]).exists()


def test_sentences(tmp_path, everything, monkeypatch):
    assert_sentence(invoke("pause", tmp_path), "is no run folder")
    result = invoke("pause", everything)
    assert_sentence(result, "nobody plays it now", "12 of 12 episodes")
    told = {"name": "0" * 16, "host": "elsewhere", "pid": 1}
    (tmp_path / ".control-a.json").write_text(json.dumps(told))
    monkeypatch.setattr(control, "FAR_SECONDS", 0.2)
    with pytest.raises(RunError, match="part a on elsewhere did not answer; give the order there"):
        order(tmp_path, {"do": "pause"})
    (tmp_path / ".control-a.json").write_text(json.dumps({**told, "host": socket.gethostname()}))
    assert order(tmp_path, {"do": "pause"}) == {}  # killed
