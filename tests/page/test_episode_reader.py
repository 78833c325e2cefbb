"""What is taken in of an episode and of the journal, and what is left for a process of its own."""

import contextlib
import dataclasses
import gzip
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
import toy
from browser import FRONT
from invoking import assert_sentence, invoke

from llm_coop_envs.benchmarks.speed.view import make_large
from llm_coop_envs.core import registry
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.errors import RunError
from llm_coop_envs.kbc.faces.scene import KbcTracker
from llm_coop_envs.page import agents as agent_queries
from llm_coop_envs.page import episodes as room
from llm_coop_envs.page import index as indexes
from llm_coop_envs.page import one_file
from llm_coop_envs.page.episode_reader import EpisodeReader
from llm_coop_envs.page.episodes import Episodes, Indexing
from llm_coop_envs.page.index import Index, Taking
from llm_coop_envs.page.known_runs import KnownRuns
from llm_coop_envs.policies import play
from llm_coop_envs.render.scenes.on_page import face_of
from llm_coop_envs.runs.devices import describe_devices
from llm_coop_envs.runs.folder import open_run


def read(scenario, events, header=None, large=False):
    reader = EpisodeReader(scenario, header or {}, large=large)
    messages = list(reader.messages(events))
    reader.moving()
    return reader, messages


@pytest.mark.parametrize("name", ["kbc-talk", "bertrand-talk", "evacuation-talk"])
def test_an_episode_is_read_in_one_pass(runs, name):
    run = open_run(runs / "deep" / "model")
    header, events = run.read_events(name, 0)
    scenario = next(one for one in run.conditions if one.name == name).spec
    reader, messages = read(scenario, events, header)
    about, agents = reader.summarise(), list(reader.agents())
    assert [one[3] for one in messages] == [event["text"] for event in events if event["type"] == "message"]
    assert [one[1] for one in agents] == events[0]["agents"]
    assert {one[2] for one in agents} == {"llm:scripted"}
    settled = [event["round"] for event in events if event["type"] == "round"]
    assert about["rounds"][-len(settled) :] == settled
    assert about["end"] == events[-1]["reason"]
    # The same without keeping events, as large ones are read.
    again, _ = read(scenario, iter(events), header, large=True)
    assert again.frames == reader.frames
    assert list(again.agents()) == agents


def test_a_scenario_without_a_page_is_a_table(monkeypatch):
    monkeypatch.setitem(registry._registered, "toy", toy.TOY)
    env = toy.ToyEnv(record=True)
    play(env, toy.Constant(), seed=0)
    reader, _ = read(toy.TOY, env.events)
    assert reader.summarise()["kind"] == "table"
    last = reader.frames[-1]
    assert len(last["choices"]) == len(env.possible_agents)
    assert set(last) >= {"players", "totals", "round", "doing"}


def test_a_scenario_with_scenes_of_its_own_and_no_page_is_a_table(monkeypatch):
    """As the example of a fourth scenario is, which has a window."""
    monkeypatch.setitem(registry._registered, "toy", dataclasses.replace(toy.TOY, scene=toy.__name__ + ":Drawn"))
    monkeypatch.setattr(toy, "Drawn", KbcTracker, raising=False)
    env = toy.ToyEnv(record=True)
    play(env, toy.Constant(), seed=0)
    reader, _ = read(registry.find_scenario("toy"), env.events)
    assert len(reader.frames[-1]["choices"]) == len(env.possible_agents)


def test_moments_of_each_scenario():
    start = {"type": "start", "agents": ["firm_0", "firm_1"]}

    def settled(number, close, *prices):
        return {"type": "round", "round": number, "together": close, "prices": list(prices)}

    events = [start, settled(1, False, 3, 3), settled(2, True, 8, 8), settled(3, True, 8, 7.5), settled(4, False, 7, 8)]
    assert face_of(find_scenario("bertrand").page).moments(events) == [
        (2, "first collusive round: prices close, above Nash"),
        (4, "firm_0 deviates: 8 to 7"),
    ]
    kbc = face_of(find_scenario("kbc").page)
    rounds = [{"type": "round", "round": k, "choices": one} for k, one in enumerate([[1, 2], [3, 3], [0, 0]])]
    assert kbc.moments(rounds) == [(1, "everybody chose 3 for the first time")]


def test_first_agreements_are_found(runs):
    run = open_run(runs / "rules")
    header, events = run.read_events("kbc-talk", 0)
    reader, _ = read(run.conditions[1].spec, events, header)
    assert any("first agreement" in one["text"] for one in reader.summarise()["moments"])


def test_changes_of_exit_after_a_message_are_moments():
    scenario = find_scenario("evacuation")
    env = scenario.environment(record=True, preset="team_up", people=100, rounds=6)
    play(env, scenario.policies["shares"](), seed=4)
    reader, _ = read(scenario, env.events)
    told = {one["round"]: one["text"] for one in reader.summarise()["moments"] if "changed exit" in one["text"]}
    assert told == {
        row["round"]: f"{row['changed_after_message']} changed exit after a message"
        for row in scenario.round_rows(env.events)
        if row["changed_after_message"]
    }
    assert told


@pytest.mark.parametrize("damage", ["no start", "unknown agent", "nothing"])
def test_damaged_events_are_told(runs, damage):
    run = open_run(runs / "rules")
    _, events = run.read_events("kbc-talk", 0)
    if damage == "no start":
        events = events[1:]
    elif damage == "unknown agent":
        events[2] = {**events[2], "type": "message", "agent": "nobody", "hearers": None, "text": ""}
    else:
        events = []
    with pytest.raises(RunError, match=r"damaged|no events"):
        read(run.conditions[1].spec, events)


def test_what_was_read_is_found_again_and_what_is_new_is_added(runs, tmp_path):
    import shutil

    shutil.copytree(runs / "deep" / "model", tmp_path / "run")
    (journal,) = (tmp_path / "run" / "journal").glob("main.*")
    everything = journal.read_bytes()
    index = Index(open_run(tmp_path / "run"))
    journal.write_bytes(everything[: len(everything) // 2])  # cut somewhere in a commit
    index.take_journal()
    first = calls(index)
    assert first
    journal.write_bytes(everything)
    index.take_journal()
    assert calls(index)[: len(first)] == first
    assert len(calls(index)) == 333
    assert index.journal_left() == (0, len(everything))
    index.take_episode("kbc-talk", 0)
    known = index.mark("kbc-talk", 0)
    assert index.holds("kbc-talk/0", known)
    path = tmp_path / "run" / "events" / "kbc-talk" / "0.jsonl.gz"
    path.touch()
    assert not index.holds("kbc-talk/0", index.mark("kbc-talk", 0))
    index.take_episode("kbc-talk", 0)
    with index.connect() as table:
        assert table.execute("SELECT COUNT(*) FROM agents").fetchone() == (4,)


def calls(index):
    with index.connect() as table:
        return table.execute("SELECT episode, agent, step, call, start, line FROM calls ORDER BY id").fetchall()


def test_what_is_large_is_read_by_a_process_of_its_own(runs, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(indexes, "LARGE", 100)
    monkeypatch.setattr(room, "LARGE", 100)
    found = Episodes(KnownRuns(runs))
    with pytest.raises(Indexing, match="kbc-talk/0"):
        found.summarise("deep/model", "kbc-talk", 0)

    def patiently(ask):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            with contextlib.suppress(Indexing):
                return ask()
            time.sleep(0.1)
        raise AssertionError("it takes too long")

    assert patiently(lambda: found.summarise("deep/model", "kbc-talk", 0))["players"] == 4
    assert patiently(lambda: found.story("deep/model", "kbc-talk", 0, 1))["calls"]
    found.close()


def test_nobody_waits_for_the_end_of_what_a_process_reads(runs, monkeypatch, tmp_path):
    """The little that is left of a journal is no reason to wait until the process that reads it lets others write."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = Episodes(KnownRuns(runs))
    folder = open_run(runs / "deep" / "model").folder
    busy = found._busy[folder, ""] = subprocess.Popen([sys.executable, "-c", "input()"], stdin=-1, stderr=-1)
    assert found.agents("deep/model", "kbc-talk", 0, {})["reading"].startswith("the journal")
    with pytest.raises(Indexing, match="the journal"):
        found.story("deep/model", "kbc-talk", 0, 1)
    busy.communicate(b"\n")
    assert found.agents("deep/model", "kbc-talk", 0, {})["reading"] == ""
    assert found.story("deep/model", "kbc-talk", 0, 1)["calls"]


def test_a_million_agents_are_not_too_much_to_be_read(tmp_path):
    run = make_large(tmp_path / "million", 300, talk=True)
    with gzip.open(run.events_path("contest", 0)) as file:
        assert len(file.read()) / 300 * 1_000_000 < indexes.MAX_STREAMED / 2


def test_what_is_large_is_shown_while_it_is_read(tmp_path, monkeypatch):
    """Its first round before the rest, then what was read; agents when all are there."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    run = make_large(tmp_path / "runs" / "million", 300)
    whole = Index(run)
    whole.take_episode("contest", 0)
    with whole.connect() as table:
        everything = [table.execute(f"SELECT * FROM {one}").fetchall() for one in ("frames", "agents", "episodes")]
    whole.path.unlink()
    for name in ("LARGE", "_BLOCK"):
        monkeypatch.setattr(indexes, name, 4000)
    monkeypatch.setattr(indexes, "_TOLD_SECONDS", 0.0)
    monkeypatch.setattr(room, "LARGE", 1)
    found = Episodes(KnownRuns(tmp_path / "runs"))
    monkeypatch.setattr(found, "_read_apart", lambda *_: True)
    shown = []
    keep = Taking.keep

    def kept(self, mark, **more):
        keep(self, mark, **more)
        shown.append(found.summarise("million", "contest", 0))
        if shown[-1]["reading"] is not None:
            with pytest.raises(Indexing, match=f"contest/0, {shown[-1]['reading']} %"):
                found.agents("million", "contest", 0, {})
        assert len(found.frames("million", "contest", 0, 0, 9)) == len(shown[-1]["rounds"])

    monkeypatch.setattr(Taking, "keep", kept)
    index = Index(run)
    index.take_episode("contest", 0)
    counts = [len(one["rounds"]) for one in shown]
    assert counts == sorted(counts)
    assert set(counts) == {1, 2, 3, 4, 5}
    assert {one["rounds"][0] for one in shown} == {1}  # what is shown first stays until there is more
    shares = [one["reading"] for one in shown]
    assert shares[0] == 0
    assert shares[:-1] == sorted(shares[:-1])
    assert shares[-1] is None
    with index.connect() as table:
        again = [table.execute(f"SELECT * FROM {one}").fetchall() for one in ("frames", "agents", "episodes")]
    assert again == everything


def test_who_was_asked_of_a_model_is_counted_as_the_journal_is_read(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    monkeypatch.setattr(indexes, "_COUNTED", 100)
    run = make_large(tmp_path / "runs" / "million", 300)
    found = Episodes(KnownRuns(tmp_path / "runs"))
    assert found.agents("million", "contest", 0, {"model": "m"})["total"] == 300
    with Index(run).connect() as table:
        assert table.execute("SELECT * FROM models").fetchall() == [("contest/0", "m", 300)]


def test_what_was_counted_while_the_journal_was_read_is_counted_again(runs, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = Episodes(KnownRuns(runs))
    place = "deep/model", "evacuation-talk", 0, {"model": "scripted:scripted"}

    def reading(index):
        raise Indexing("the journal, 0 %")

    with monkeypatch.context() as patch:
        patch.setattr(found, "_take_journal", reading)
        assert found.agents(*place)["total"] == 0
    assert found.agents(*place)["total"] == 6


def test_a_text_that_very_many_said_is_not_counted(runs, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = Episodes(KnownRuns(runs))
    few = found.agents("deep/model", "evacuation-talk", 0, {"said": "to MY mind"})
    monkeypatch.setattr(agent_queries, "_MOST_FOUND", 5)
    many = found.agents("deep/model", "evacuation-talk", 0, {"said": "to MY mind"})
    assert (few["total"], few["counted"]) == (6, True)
    assert (many["total"], many["counted"]) == (5, False)
    assert many["rows"] == few["rows"]
    assert found.agents("deep/model", "evacuation-talk", 0, {"said": "no such words"})["total"] == 0


def test_agents_have_their_calls_at_once(runs, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = Episodes(KnownRuns(runs)).agents("deep/model", "kbc-talk", 0, {"sort": "-last"})
    assert [one["calls_made"] for one in found["rows"]] == [7] * 4
    assert [one["choices"][-1] for one in found["rows"]] == sorted([one["choices"][-1] for one in found["rows"]])[::-1]


def test_an_index_that_is_damaged_is_named(runs, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    index = Index(open_run(runs / "rules"))
    index.path.write_bytes(b"no database at all" * 100)
    with pytest.raises(RunError, match="delete it"):
        index.take_episode("kbc-talk", 0)


def test_sentences_of_the_export(runs, tmp_path):
    target = tmp_path / "run.html"
    assert invoke("export", runs / "rules", "--to", "html", "-o", target).exit_code == 0
    assert_sentence(invoke("export", runs / "rules", "--to", "html", "-o", target), "is there already")
    assert_sentence(invoke("export", tmp_path, "--to", "html"), "is no run folder")
    assert not (runs / "rules" / "export").exists()


def test_what_has_no_room_in_a_page_is_told(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(one_file, "MOST_AGENTS", 3)
    monkeypatch.setattr(one_file, "MOST_CALLS", 1000)
    text = one_file.write_page(runs / "deep" / "model", tmp_path / "run.html").read_text(encoding="utf-8")
    assert "had no room for the 4 agents of kbc-talk 0" in text
    assert "some prompts and answers" in text


def test_nothing_in_a_page_ends_its_data():
    page = one_file.page_of({"runs": "</script><script>alert(1)</script><!--"})
    data = page[page.index('id="data">') : page.rindex('<script type="module">')]
    assert data.count("<") == 1  # the end of the element itself
    assert (FRONT.parent / "static" / "app.css").read_text(encoding="utf-8") in page


def test_slurm_and_ray_are_named(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "17")
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "4")
    node = {
        "NodeManagerHostname": "far",
        "NodeID": "0123456789",
        "Alive": True,
        "Resources": {"CPU": 8.0, "memory": 5.0},
    }
    ray = SimpleNamespace(is_initialized=lambda: True, nodes=lambda: [node])
    ray._private = SimpleNamespace(
        state=SimpleNamespace(available_resources_per_node=lambda: {"0123456789": {"CPU": 3.0}})
    )
    monkeypatch.setitem(sys.modules, "ray", ray)
    here, far = describe_devices()
    assert here["slurm"] == "17_4"
    assert here["cores"] >= 1
    assert (far["host"], far["used"], far["cores"]) == ("far", 5.0, 8.0)
