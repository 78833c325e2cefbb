"""The study of high prices that nobody holds up, and what reports say of conditions that were not tested."""

import asyncio

import pytest

from llm_coop_envs.reports.build import write_report
from llm_coop_envs.runs.episode import play_episode
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.studies.study import load_study, parse_study

UNTESTED = """\
name: arms
conditions:
  - &arm {name: tested, title: Tested, scenario: bertrand, preset: calvano, policies: grim_trigger, seeds: [0],
     settings: {talk: false, rounds: 20, collusion_window: 0}, after: {horizon: 10, everywhere: false}}
  - {<<: *arm, name: other, title: Other, after: {horizon: 10, everywhere: false, controls: CONTROLS}}
"""
SENTENCE = "Other: not tested for spurious collusion"


def test_learners_that_cannot_punish_end_high_and_punish_nobody():
    study = load_study("spurious_collusion")
    found = {}
    for name in ("memoryless", "grim_trigger"):
        condition = next(one for one in study.conditions if one.name == name)
        found[name] = asyncio.run(play_episode(study.seed, condition, condition.seeds[0])).measures
    assert found["memoryless"]["end_gain"] > 0.5
    assert found["memoryless"]["panel_punished"] == 0.0
    assert found["grim_trigger"]["panel_punished"] > 1.0
    memories = {one.name: dict(one.seats[0][1][0].options) for one in study.conditions}
    assert (memories["memoryless"], memories["delta_0"]) == ({"memory": 0}, {"delta": 0.0})


@pytest.mark.parametrize("controls", ["true", "false"])
def test_the_report_names_conditions_that_were_not_tested(controls, tmp_path):
    run_study(parse_study(UNTESTED.replace("CONTROLS", controls), "arms"), tmp_path / "run")
    page = write_report(tmp_path / "run").read_text()
    assert (SENTENCE in page) == (controls == "false")
    assert "Are high prices held up?" in page
