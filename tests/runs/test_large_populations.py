"""A crowd of models through the scripted server: everybody is asked, told who it is, and read."""

import pytest
from model_studies import answering, asking

from llm_coop_envs.core import memory
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.watcher import Watcher
from llm_coop_envs.studies.study import parse_study

STUDY = """\
name: crowd
seed: 1
conditions:
  - name: crowd
    scenario: kbc
    preset: large_scale
    settings: {players: PLAYERS, rounds: 2}
    population:
      attributes: {education: shipped, age: shipped, gender: shipped}
      play:
        policy: {name: llm, options: {preset: large_scale}}
        model: {shares: {scripted-a: 1/3, scripted-b: 1/3, scripted-c: 1/3}}
        temperature: {by: education, shares: {no school certificate: {0.05: 1}, high school diploma: {0.25: 1},
          bachelor's degree: {0.5: 1}, master's degree: {1.0: 1}, doctorate: {0.5: 0.5, 1.0: 0.5}}}
        personas: {shares: {in_role: 0.5, rational: 0.5}}
      backgrounds: {}
    seeds: [3]
"""


@pytest.mark.parametrize(
    "players", [pytest.param(120, id="120"), pytest.param(10_000, marks=pytest.mark.rare, id="10000")]
)
def test_every_person_is_asked_in_every_round(tmp_path, players):
    with answering() as server:
        study = parse_study(STUDY.replace("PLAYERS", str(players)), "crowd.yaml")
        access = asking(server, endpoint={"limits": {"most": 256, "start": 64}, "timeout": 60.0})
        outcome = run_study(study, tmp_path / "run", access=access)
    assert outcome.complete
    assert sum(server.answered.values()) == 2 * players
    header, events = outcome.run.read_events("crowd", 3)
    assert {len(event["choices"]) for event in events if event["type"] == "round"} == {players}
    assert not [event for event in events if event["type"] == "choice" and event["flags"]]
    people = header["people"]
    assert all(len(column["codes"]) == players for column in people.values())
    # Three models, four temperatures and two notes, as they were dealt.
    assert len(header["answers"]) == 24
    assert sum(len(one["seats"]) for one in header["answers"]) == players
    assert sum(one["calls"]["choose"]["fallbacks"] for one in header["answers"]) == 0
    assert (tmp_path / "run" / "episodes.parquet").is_file()


def test_a_crowd_that_does_not_fit_is_refused_before_anything_is_paid(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "CROWD", 100)
    monkeypatch.setattr(memory, "free_memory", lambda: 1000)
    written = STUDY.replace("PLAYERS", "120").replace("backgrounds: {}", "backgrounds: {model: scripted-w}")
    with answering() as server:
        with pytest.raises(SettingsError, match="players=120: take about"):
            run_study(parse_study(written, "crowd.yaml"), tmp_path / "run", access=asking(server))
        assert not server.asked
    assert not (tmp_path / "run").exists()


class Told(Watcher):
    """Keeps the progress lines, and how many questions had been answered when the crowd was warned of."""

    def __init__(self, server):
        self.server, self.lines, self.warned_after = server, [], {}

    def show_questions(self, line):
        self.lines.append((sum(self.server.answered.values()), line))

    def say(self, sentence):
        if "becomes invalid" in sentence:
            self.warned_after[sentence] = sum(self.server.answered.values())


def test_a_crowd_that_cannot_be_read_is_told_of_while_it_is_asked(tmp_path):
    with answering(lambda *question: "All is well that ends well.", latency=0.05) as server:
        told, study = Told(server), parse_study(STUDY.replace("PLAYERS", "400"), "crowd.yaml")
        access = asking(server, endpoint={"limits": {"most": 8, "start": 8}})
        outcome = run_study(study, tmp_path / "run", access=access, watcher=told)
    assert list(outcome.invalid) == ["crowd"]
    ((warning, answered),) = told.warned_after.items()
    assert "Condition 'crowd'" in warning
    assert 'such as "All is well that ends well."' in warning
    asked = sum(server.answered.values())
    assert answered < asked / 2
    assert any("fallbacks" in line for answered, line in told.lines if answered < asked / 2)
