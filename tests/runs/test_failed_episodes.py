"""An episode that fails costs its study that episode and no other, and is named wherever the run is looked at."""

import json

import pytest
from model_studies import answering, asking
from small import KBC, contents, events_in, llm_coop, small_study

from llm_coop_envs.core.base_policy import ScriptedPolicy
from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.export.export import export_run
from llm_coop_envs.kbc import scripted as kbc
from llm_coop_envs.page.known_runs import KnownRuns
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.reports.headline import read_answers
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.verify import verify_run
from llm_coop_envs.runs.watcher import Watcher
from llm_coop_envs.storage.folder import INTERRUPTED

FAILED = "condition 'silent', seed 2 failed: ZeroDivisionError: five lines"
POLICY = """\
import json, os, signal
from pathlib import Path
from llm_coop_envs.policies import ScriptedPolicy

class Crashing(ScriptedPolicy):
    def decide(self, request):
        order = json.loads(Path(__file__).with_name("orders.json").read_text()).get(self.episode.name)
        if order == "raise":
            raise ZeroDivisionError("five\\nlines")
        if order == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        return {"choice": 30.0}
"""
STUDY = KBC.replace("policies: poisson", "policies: 'crashing:Crashing'")


class Heard(Watcher):
    def __init__(self):
        self.said = []

    def say(self, sentence):
        self.said.append(sentence)


@pytest.fixture
def failing(monkeypatch):
    """The names of episodes in which the policy `broken` of the contest raises."""
    names = {}

    class Broken(ScriptedPolicy):
        def decide(self, request):
            if self.episode.name in names:
                raise names[self.episode.name]
            return {"choice": 30.0}

    monkeypatch.setitem(kbc.POLICIES, "broken", Broken)
    return names


def broken_study(text=KBC):
    return small_study(text.replace("policies: poisson", "policies: broken"))


def test_the_others_are_played_and_a_later_run_tries_it_again(tmp_path, failing):
    folder, heard = tmp_path / "run", Heard()
    failing["silent/2"] = ZeroDivisionError("five\nlines")
    outcome = run_study(broken_study(), folder, watcher=heard)
    assert (outcome.complete, outcome.played, outcome.finished) == (False, 4, 4)
    assert outcome.failed == {("silent", 2): FAILED}
    assert [sentence for sentence in heard.said if FAILED[1:] in sentence]
    assert open_run(folder).manifest["status"] == INTERRUPTED
    assert not list(folder.glob("*.parquet"))
    (trace,) = (folder / "failures").iterdir()
    assert "in decide" in trace.read_text()
    assert FAILED in outcome._repr_html_().replace("&#x27;", "'")

    again = run_study(broken_study(), folder)
    assert (again.played, [*again.failed]) == (0, [("silent", 2)])
    failing.clear()
    mended = run_study(broken_study(), folder)
    assert (mended.complete, mended.played, mended.failed) == (True, 1, {})
    assert not list((folder / "failures").iterdir())
    run_study(broken_study(), tmp_path / "whole")
    assert contents(folder) == contents(tmp_path / "whole")


def test_report_export_verify_and_page_name_it(tmp_path, failing):
    folder = tmp_path / "runs" / "one"
    failing["silent/2"] = ZeroDivisionError("five\nlines")
    run_study(broken_study(), folder)
    for use in (write_report, lambda run: export_run(run, "parquet")):
        with pytest.raises(
            RunError, match=r"4 of 5 episodes; 1 of 5 episodes failed: condition 'silent', seed 2 failed: Zero"
        ):
            use(folder)
    page = write_report(folder, partial=True).read_text(encoding="utf-8").replace("&#39;", "'")
    assert f"<li>{FAILED}.</li>" in page
    assert "1 of 5 episodes ended with an error and are missing from every number below" in page
    assert "No finished episode was left out. Of 5 episodes of the study 1 ended with an error." in page
    verification = verify_run(folder, again=True)
    assert (verification.failed, verification.faults) == ([FAILED], [])
    assert KnownRuns(tmp_path / "runs").detail("one")["mixed"] == [f"1 of 5 episodes failed: {FAILED}"]

    failing.clear()
    run_study(broken_study(), folder)
    assert "failed:" not in write_report(folder).read_text(encoding="utf-8")
    assert verify_run(folder).failed == []
    assert KnownRuns(tmp_path / "runs").detail("one")["mixed"] == []


def test_pairs_of_which_an_episode_failed_are_counted_as_missing(tmp_path, failing):
    failing["b/2"] = ZeroDivisionError("five\nlines")
    text = """\
name: pairs
conditions:
  - &a {name: a, pair: a, scenario: kbc, settings: {players: 3}, policies: uniform, seeds: [1, 2, 3, 4]}
  - {<<: *a, name: b, policies: {player_0: broken, all: uniform}}
"""
    run_study(small_study(text), tmp_path / "run")
    (answer,) = read_answers(open_run(tmp_path / "run"))
    assert "; 3 of 4 pairs" in answer.certainty


def test_a_condition_of_which_nothing_works_is_given_up(tmp_path, failing):
    text = KBC.replace("seeds: [1, 2, 3]", f"seeds: {list(range(9))}")
    failing.update({f"silent/{seed}": SettingsError("x", 1, "no") for seed in range(9)})
    heard = Heard()
    outcome = run_study(broken_study(text), tmp_path / "run", watcher=heard)
    assert len(outcome.failed) == 3
    assert outcome.played == 2
    assert "Condition 'silent' is given up: 3 of its episodes failed, and none was played" in heard.said
    del failing["silent/0"]
    # One episode works: each of the others is tried.
    assert len(run_study(broken_study(text), tmp_path / "run").failed) == 8


def test_what_concerns_the_whole_run_still_ends_it(tmp_path, failing):
    failing["silent/2"] = RunError("the disk is full")
    with pytest.raises(RunError, match="disk is full"):
        run_study(broken_study(), tmp_path / "run")
    assert open_run(tmp_path / "run").failures() == {}


def test_a_part_leaves_alone_what_another_part_saw_fail(tmp_path, failing):
    folder = tmp_path / "run"
    failing["silent/2"] = ZeroDivisionError("five\nlines")
    run_study(broken_study(), folder, access=ModelAccess(part="a"))
    failing.clear()
    outcome = run_study(broken_study(), folder, access=ModelAccess(part="b"), failed_before={})
    assert (outcome.played, [*outcome.failed]) == (0, [("silent", 2)])
    assert run_study(broken_study(), folder, access=ModelAccess(part="b")).complete


@pytest.mark.parametrize("workers", [1, 2])
def test_the_command_names_it_and_ends_with_two(tmp_path, study_file, workers):
    path, folder = study_file(STUDY), tmp_path / "run"
    (tmp_path / "crashing.py").write_text(POLICY)
    (tmp_path / "orders.json").write_text(json.dumps({"silent/2": "raise"}))
    words = ("run", path, "-o", folder, "--workers", workers)
    ended = llm_coop(*words, cwd=tmp_path)
    assert ended.returncode == 2
    assert (
        f"1 of 5 episodes failed: {FAILED}. 4 episodes are in {folder}; try again with: llm-coop run {path}"
        in ended.stderr
    )
    assert f"llm-coop report {folder} --partial" in ended.stderr
    assert "Traceback" not in ended.stderr
    (tmp_path / "orders.json").write_text("{}")
    assert llm_coop(*words, cwd=tmp_path).returncode == 0


@pytest.mark.slow
def test_a_process_that_dies_is_replaced(tmp_path, study_file):
    path, folder = study_file(STUDY), tmp_path / "run"
    (tmp_path / "crashing.py").write_text(POLICY)
    (tmp_path / "orders.json").write_text(json.dumps({"silent/1": "die", "silent/2": "die"}))
    ended = llm_coop("run", path, "-o", folder, "--workers", 2, cwd=tmp_path)
    assert ended.returncode == 2
    assert "seed 1 failed: its process ended unexpectedly (out of memory?); fewer --workers need less" in ended.stderr
    assert {path.name for path in events_in(folder)} == {"3.jsonl.gz", "1.jsonl.gz", "2.jsonl.gz"}
    assert len(events_in(folder)) == 3
    assert [*open_run(folder).failures()] == [("silent", 1), ("silent", 2)]


def test_episodes_side_by_side_go_on_without_it(tmp_path, failing):
    seats = "{player_0: broken, all: 'llm:scripted'}"
    study = small_study(
        KBC.replace("talk: false, players: 5", "players: 3").replace("policies: poisson", f"policies: {seats}")
    )
    failing["silent/2"] = ZeroDivisionError("five\nlines")
    with answering() as server:
        outcome = run_study(study, tmp_path / "run", access=asking(server))
        assert outcome.failed == {("silent", 2): FAILED}
        assert (outcome.finished, outcome.why) == (4, None)
        failing.clear()
        assert run_study(study, tmp_path / "run", access=asking(server)).complete
        assert set(server.asked.values()) == {1}  # what was answered before the failure is not asked again
