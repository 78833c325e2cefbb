"""Branched runs: continuations share what was paid, and refuse what cannot be continued before anything is paid."""

import shutil

import pytest
from invoking import assert_sentence, invoke
from model_studies import answering, asking, play, study_with_model

from llm_coop_envs.errors import RunError
from llm_coop_envs.policies.llm.asking.budget import Budget
from llm_coop_envs.policies.llm.journal import read_questions
from llm_coop_envs.runs.branch import PART, begin_branch, plan_branch
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.verify import verify_run
from llm_coop_envs.studies.selection import select

STUDY = """\
name: source
seed: 2
conditions:
  - name: kbc
    scenario: kbc
    settings: {players: 3, exchanges: 3}
    policies: poisson
    seeds: [0, 1]
  - name: bertrand
    scenario: bertrand
    settings: {firms: 3, rounds: 4, exchanges: 1, collusion_window: 0, planning_period: 1}
    policies: price_matching
    seeds: [0]
  - name: evacuation
    scenario: evacuation
    settings: {rows: 8, cols: 8, people: 2, control: exit, replan_probability: 1.0}
    policies: shares
    seeds: [0]
"""
ARMS = """\
arms:
  - {name: silent, settings: {talk: false}}
  - name: selfish
    title: uncooperative from then on
    policy: {options: {personas: [uncooperative], parameters: {default: {temperature: 1.3}}}}
  - {name: fewer, players: "*_1", settings: {present: false}}
"""
AT = 2


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source") / "run"
    with answering() as server:
        assert play(server, folder, STUDY).complete
    return folder


@pytest.fixture
def arms(tmp_path):
    path = tmp_path / "arms.yaml"
    path.write_text(ARMS)
    return path


def branched(source, arms, folder, server):
    plan = plan_branch(source, AT, arms, lambda study: study)
    begin_branch(plan, folder)
    return plan, run_study(plan.study, folder, access=asking(server))


def told(folder, name):
    """The questions of an episode: whether they were copied, by agent, step, call and attempt."""
    found = {}
    for key, line in read_questions(folder):
        if key.episode == name:
            assert key[1:] not in found, "asked twice"
            found[key[1:]] = line
    return found


def of_fewer(key, line, name):
    """Whether a question was asked after some had left."""
    return key.episode == f"{name}-fewer/0" and line.get("from") != "branch"


def test_nothing_of_the_prefix_is_asked_twice(tmp_path, source, arms):
    with answering() as server:
        plan, outcome = branched(source, arms, tmp_path / "run", server)
        asked = sum(server.asked.values())
    assert outcome.complete
    assert len(plan.study.conditions) == 12
    run, original = outcome.run, open_run(source)
    newly = 0
    for arm in run.conditions:
        before, at = arm.branch["condition"], arm.branch["at"]
        assert at == AT
        for seed in arm.seeds:
            recorded, here = (told(source, f"{before}/{seed}"), told(tmp_path / "run", f"{arm.name}/{seed}"))
            steps = plan.prefixes[before, seed]
            prefix = {key for key in recorded if key[1] < steps}
            copied = {key for key, line in here.items() if line.get("from") == "branch"}
            assert prefix
            assert len(prefix) < len(recorded)
            events, usual = run.read_events(arm.name, seed)[1], original.read_events(before, seed)[1]
            if arm.is_treated:
                assert copied == prefix
                newly += len(here) - len(copied)
                plain = [[e for e in one if e["round"] < AT and e["type"] != "start"] for one in (events, usual)]
                assert plain[0] == plain[1]
                assert plain[0]
            else:
                assert copied == set(here) == set(recorded)
                assert events == usual
    assert newly == asked > 0
    silent = run.read_events("kbc-silent", 0)[1]
    assert {event["round"] for event in silent if event["type"] == "message"} == {1}
    last = [line["request"] for key, line in read_questions(tmp_path / "run") if key.episode == "bertrand-selfish/0"]
    assert {one.get("temperature") for one in last} == {0.7, 1.3}
    # Plans of before are still shown to whoever goes on as somebody else.
    assert any("Your plan, made in round" in str(one) for one in last if one.get("temperature") == 1.3)
    for name in ("kbc", "bertrand", "evacuation"):  # who has left is asked nothing, and the others are told
        asked_later = [key.agent for key, line in read_questions(tmp_path / "run") if of_fewer(key, line, name)]
        assert asked_later
        assert not any(agent.endswith("_1") for agent in asked_later)
    texts = {key.episode: str(line["request"]) for key, line in read_questions(tmp_path / "run")}
    assert "firm_1 has left for good" in texts["bertrand-fewer/0"]
    assert "player_1 has left for good" in texts["kbc-fewer/0"]
    assert verify_run(tmp_path / "run").faults == []


def test_a_run_that_is_not_finished_is_continued_where_it_has_the_round(tmp_path, source, arms):
    part = tmp_path / "part"
    with answering() as server:
        assert not play(server, part, STUDY, budget=Budget(calls=30), at_once=1).complete
        plan = plan_branch(part, AT, arms, lambda study: study)
        assert "are left out" in plan.left_out
        assert 0 < len(plan.prefixes) < 4
        asked = sum(server.asked.values())
        run_study(study_with_model(STUDY), part, access=asking(server, budget=Budget(calls=10_000)))
        assert (
            plan_branch(part, AT, arms, lambda study: study).prefixes
            == plan_branch(source, AT, arms, lambda study: study).prefixes
        )
        whole = plan_branch(source, AT, arms, lambda study: study).prefixes
        assert all(whole[one] == steps for one, steps in plan.prefixes.items())
        assert sum(server.asked.values()) > asked


def test_a_branch_that_was_cut_short_asks_nobody_for_what_is_recorded(tmp_path, source, arms):
    folder = tmp_path / "run"
    plan = plan_branch(source, AT, arms, lambda study: study)
    begin_branch(plan, folder)
    (path,) = (folder / "journal").glob(f"{PART}.*")
    path.unlink()
    with answering() as server:
        with pytest.raises(RunError, match="were not copied yet"):
            run_study(plan.study, folder, access=asking(server))
        assert not server.asked
        begin_branch(plan, folder)
        assert path.is_file()
    other = tmp_path / "other"
    shutil.copytree(source, other)
    with pytest.raises(RunError, match="holds a branch of another run"):
        begin_branch(plan_branch(other, AT, arms, lambda study: study), folder)


WRONG = {
    "there is no such round": (["--at", 9], ARMS, ["none of its 4 episodes has a round 9"]),
    "no arms": (["--at", 2], "name: x\n", ["'arms' is missing"]),
    "an unknown field": (["--at", 2], ARMS.replace("settings:", "setings:"), ["line 2", "did you mean 'settings'?"]),
    "an impossible value": (["--at", 2], ARMS.replace("talk: false", "talk: 3"), ["line 2", "settings.talk", "3"]),
    "an earlier round": (["--at", 2], ARMS.replace("silent,", "silent, from_round: 1,"), ["line 2", "from_round"]),
    "the same arm twice": (
        ["--at", 2],
        ARMS + "  - {name: mute, settings: {talk: false}}\n",
        ["line 7", "arm 'mute' changes the same as arm 'silent'"],
    ),
    "what a scenario cannot change": (
        ["--at", 2],
        ARMS.replace("talk: false", "exchanges: 2"),
        ["line 2", "settings.exchanges", "condition 'kbc'"],
    ),
    "nobody of that name": (["--at", 2], ARMS.replace("silent,", "silent, players: firm_0,"), ["'firm_0'", "player_0"]),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_branched_is_told_before_anything_is_paid(tmp_path, source, what):
    given, text, words = WRONG[what]
    path = tmp_path / "arms.yaml"
    path.write_text(text)
    result = invoke("branch", source, *given, "--arms", path, "-o", tmp_path / "new")
    assert_sentence(result, *words)
    assert not (tmp_path / "new").exists()


def test_another_kind_of_run_has_no_branches(tmp_path, arms):
    (tmp_path / "none").mkdir()
    assert_sentence(invoke("branch", tmp_path / "none", "--at", 2, "--arms", arms), "is no run folder")


def test_one_scenario_of_a_run_of_several_is_branched_with_the_same_words(source, arms):
    """A pack's hash is that of its words for all scenarios of the run."""
    plan = plan_branch(source, AT, arms, lambda study: select(study, only=["bertrand"]))
    assert {one.scenario for one in plan.study.conditions} == {"bertrand"}
