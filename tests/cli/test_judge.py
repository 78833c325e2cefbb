"""`llm-coop judge` over a loopback server: cost first, stopped and continued, answered from the journal."""

import json
import os
import shlex
import signal

import pytest
from invoking import assert_sentence, invoke
from model_studies import answering

from llm_coop_envs.measures.rubric import KINDS, digest
from llm_coop_envs.policies.llm.journal import read_run
from llm_coop_envs.policies.llm.testing.answers import scripted_answer
from llm_coop_envs.reports.run_sections import read_run as read_sections
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.storage.files import read_lines

STUDY = """\
name: talkers
seed: 1
conditions:
  - {name: firms, scenario: bertrand, settings: {rounds: 4, collusion_window: 2, exchanges: 1, firms: 2},
     policies: price_matching, seeds: [0, 1]}
  - {name: silent, scenario: bertrand, settings: {rounds: 4, collusion_window: 2, talk: false},
     policies: price_matching, seeds: [0]}
"""
MESSAGES = 2 * 4  # firms in turn


@pytest.fixture(scope="module")
def server():
    with answering() as started:
        yield started


@pytest.fixture
def run(study_file, tmp_path):
    assert invoke("run", study_file(STUDY, "talkers.yaml"), "-o", tmp_path / "run", "--workers", 1).exit_code == 0
    return tmp_path / "run"


def judged(run, server, *more):
    return invoke("judge", run, "--model", "scripted", "--base-url", server.base_url, *more)


def test_calls_and_cost_come_first_and_dry_asks_nobody(run, server):
    before = sum(server.asked.values())
    told = judged(run, server, "--dry")
    assert told.exit_code == 0, told.stderr
    first, second = told.stdout.splitlines()
    assert first == f"Rubric talk, version 1, hash {digest()}: {MESSAGES} messages of 2 episodes"
    assert second.startswith(f"{MESSAGES} calls, about ")
    assert "the price is not known" in second
    assert sum(server.asked.values()) == before
    assert not (run / "judges").exists()


def test_a_judgement_is_stopped_continued_and_paid_once(run, server):
    before = sum(server.asked.values())
    stopped = judged(run, server, "--max-calls", 5, "--in-flight", 1)
    assert stopped.exit_code == 2
    assert "5 of 5 calls are used" in stopped.stderr
    folder = run / "judges" / "scripted-talk-1"
    words = f"--max-calls 10 -o {folder}"
    assert f"The answers so far are in {folder}; for example: llm-coop judge {run} --model scripted" in stopped.stderr
    assert words in stopped.stderr
    assert json.loads((folder / "run.json").read_text())["status"] == "interrupted"
    done = judged(run, server)
    assert done.exit_code == 0, done.stderr
    assert sum(server.asked.values()) - before == MESSAGES
    manifest = json.loads((folder / "run.json").read_text())
    assert (manifest["status"], manifest["rubric"]["digest"]) == ("complete", digest())
    assert set(manifest["files"]) >= {"verdicts.jsonl.gz"}
    rows = read_lines(folder / "verdicts.jsonl.gz")
    assert len(rows) == MESSAGES
    assert {row["judge"] for row in rows} <= set(KINDS)
    assert {row["episode"] for row in rows} == {"firms/0", "firms/1"}
    assert f"Judge and rules: kappa {manifest['result']['rules']['kappa']:.2f} (95 % interval" in done.stdout
    # All of it again, from the journal.
    again = judged(run, server)
    assert again.stdout == done.stdout
    assert sum(server.asked.values()) - before == MESSAGES
    assert invoke("verify", run).exit_code == 0
    # The report has the verdict as a measure of each episode.
    shares = {}
    for row in rows:
        shares.setdefault((row["episode"], row["round"]), set()).update(
            {row["speaker"]} if row["judge"] in ("agreement proposed", "agreement accepted") else ()
        )
    of_first = [len(speakers) > 1 for (episode, _), speakers in shares.items() if episode == "firms/0"]
    arms = {arm.condition.name: arm for arm in read_sections(open_run(run), for_figures=False)[0][0].conditions}
    assert arms["firms"].metrics[0]["judged"] == pytest.approx(sum(of_first) / len(of_first))
    assert "judged" not in arms["silent"].metrics[0]


def test_ctrl_c_waits_for_answers_and_says_how_to_go_on(run):
    asked = 0

    def answer(prompt, metadata):
        nonlocal asked
        asked += 1
        if asked == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return scripted_answer(prompt, metadata)

    with answering(answer, latency=0.05) as server:
        stopped = judged(run, server, "--in-flight", 2)
        assert stopped.exit_code == 130
        folder = run / "judges" / "scripted-talk-1"
        *_, told = stopped.stderr.splitlines()
        before, _, again = told.partition("; continue with: ")
        assert before == f"Stopped. The answers so far are in {folder}"
        # What was under way was waited for and kept.
        (report,) = read_run(folder)
        assert (report.answers, report.lost) == (sum(server.asked.values()), 0)
        assert 3 <= report.answers < MESSAGES
        program, *words = shlex.split(again)
        assert program == "llm-coop"
        done = invoke(*words)
        assert done.exit_code == 0, done.stderr
        assert len(server.asked) == MESSAGES
        assert set(server.asked.values()) == {1}


def test_another_model_or_form_is_another_judgement(run, server, tmp_path):
    assert judged(run, server, "--episodes", 1, "-o", tmp_path / "own").exit_code == 0
    other = judged(run, server, "--episodes", 1, "-o", tmp_path / "own", "--answers", "plain")
    assert_sentence(other, "holds a judgement with other settings", "settings.answers")


def test_worlds_of_known_intent_are_judged_against_the_truth(server, tmp_path):
    words = ("--planted", "kbc", "--episodes", 1, "--rounds", 1, "--model", "scripted", "--base-url", server.base_url)
    told = invoke("judge", *words, "-o", tmp_path / "judge")
    assert told.exit_code == 0, told.stderr
    assert "Rules and truth: " in told.stdout
    truth = json.loads((tmp_path / "judge" / "run.json").read_text())["result"]["truth"]
    assert set(truth) == {"judge", "rules"}
    assert (truth["rules"]["honest"], truth["rules"]["meant"]) == (4, 3)  # of five honest worlds one says nothing
    assert truth["judge"]["curve"][0][-1] == truth["judge"]["curve"][1][-1] == 1.0


def test_what_cannot_be_judged_is_a_sentence(run, server, study_file, tmp_path):
    silent = study_file(STUDY.replace("talk: false}", "talk: false}").replace("rounds: 4", "rounds: 3, talk: false", 1))
    assert invoke("run", silent, "-o", tmp_path / "silent", "--workers", 1).exit_code == 0
    assert_sentence(judged(tmp_path / "silent", server), "nobody said anything")
    assert_sentence(invoke("judge", run), "which model")
    assert_sentence(invoke("judge", "--model", "m"), "--planted")
    assert_sentence(invoke("judge", "--model", "m", "--planted", "kbd"), "no worlds of known intent", "kbc")
    assert_sentence(judged(tmp_path, server), "is no run folder")
    # Before it is said that a key is missing.
    assert_sentence(invoke("judge", tmp_path, "--model", "m", "--key-env", "NO_SUCH_KEY"), "is no run folder")
