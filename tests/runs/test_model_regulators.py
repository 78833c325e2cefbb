"""A language model in the regulator's seat, over the loopback server, in every scenario."""

import json
from collections import Counter

import pytest
from model_studies import answering, asking
from small import contents, small_study

from llm_coop_envs.policies.llm.testing.answers import scripted_answer
from llm_coop_envs.runs.episode import play_episode
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.tables import read_episode
from llm_coop_envs.runs.verify import verify_run
from llm_coop_envs.studies.selection import select
from llm_coop_envs.studies.study import load_study
from llm_coop_envs.util.waiting import run_coroutine

POWERS = "{on: [talk, choices], powers: [log, revise, veto, fine], fine: 1.0, orders: [silence]}"
STUDY = f"""\
name: regulated
seed: 1
conditions:
  - name: bertrand
    scenario: bertrand
    settings: {{rounds: 2, collusion_window: 0, exchanges: 1, regulator: {POWERS}}}
    policies: {{all: price_matching, regulator_0: "llm:scripted"}}
    seeds: [0]
  - name: kbc
    scenario: kbc
    settings: {{players: 3, exchanges: 1, regulator: {POWERS}}}
    policies: {{all: announcer, regulator_0: "llm:scripted"}}
    seeds: [0]
  - name: evacuation
    scenario: evacuation
    settings: {{people: 3, rows: 9, cols: 9, rounds: 2, regulator: {POWERS}}}
    policies: {{all: shares, regulator_0: "llm:scripted"}}
    seeds: [0]
"""
SCENARIOS = ("bertrand", "kbc", "evacuation")
GARBAGE = {
    "noise": lambda prompt, metadata: "\u202e%%% {{}} \x00 ```",
    "empty": lambda prompt, metadata: "",
    "two options": lambda prompt, metadata: "veto or allow, I cannot say which",
    "unknown option": lambda prompt, metadata: "arrest them all",
    "an object with another key": lambda prompt, metadata: '{"verdict": ["veto", {"deep": [1, 2]}]}',
    "very long": lambda prompt, metadata: "veto allow " * 5000,
}


def regulated(folder, answer):
    with answering(answer) as server:
        run_study(small_study(STUDY), folder, access=asking(server))
        return sum(server.asked.values())


def of(folder, scenario):
    run = open_run(folder)
    return read_episode(run, next(one for one in run.conditions if one.name == scenario), 0)


def test_a_model_rules_by_the_options_that_it_is_shown(tmp_path):
    asked = regulated(tmp_path / "run", scripted_answer)
    for scenario in SCENARIOS:
        found = of(tmp_path / "run", scenario)
        ruled = Counter(one["action"] for one in found.events if one["type"] == "regulation")
        assert found.metrics["ruled_on"] > 0, scenario
        assert sum(ruled.values()) > 0
        assert set(ruled) <= {"log", "revise", "veto", "fine", "order"}, scenario
        assert not any(one["flags"] for one in found.events if one.get("agent") == "regulator_0" and "flags" in one)
    # Nobody is asked twice, and the same comes out of the journal.
    run_study(small_study(STUDY), tmp_path / "again", access=ModelAccess(replay=tmp_path / "run"))
    assert contents(tmp_path / "again") == contents(tmp_path / "run")
    assert asked > 0
    assert not verify_run(tmp_path / "run").faults


@pytest.mark.parametrize("kind", GARBAGE)
def test_what_cannot_be_read_stops_nothing_and_is_counted(tmp_path, kind):
    regulated(tmp_path / "run", GARBAGE[kind])
    for scenario in SCENARIOS:
        found = of(tmp_path / "run", scenario)
        assert found.events[-1]["type"] == "end"
        assert found.metrics["ruled_on"] > 0
        stopped = [found.metrics[name] for name in ("sent_back", "stopped", "fined")]
        assert stopped == [0, 0, 0], (scenario, kind)
        (one,) = {row["policy"] for row in found.answers}
        assert one == "llm:scripted"
        assert sum(row["fallbacks"] for row in found.answers) == sum(row["asked"] for row in found.answers) > 0


@pytest.mark.parametrize(("study", "arm"), [("oversight", "unwatched"), ("governance", "ungoverned")])
def test_the_arm_without_a_regulator_plays_every_byte_of_a_study_that_knows_none(study, arm):
    told = f"""\
name: without
conditions:
  - name: {study}
    scenario: bertrand
    preset: team_up_linear
    settings: {{rounds: 20, collusion_window: 0}}
    policies: {{all: {{name: price_matching, options: {{step: 0.05, spread: 1}}}}}}
    episodes: 2
"""
    shipped = select(load_study(study), only=[arm], episodes=2, rounds=20)
    recorded = []
    for one in (shipped, small_study(told)):
        (condition,) = one.conditions
        found = [run_coroutine(play_episode(one.seed, condition, seed, None)) for seed in condition.seeds]
        recorded.append([json.dumps(episode.events) for episode in found])
    assert recorded[0] == recorded[1]
    assert "regulat" not in "".join(recorded[0])
