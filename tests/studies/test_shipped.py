"""Every shipped study: it reads, says what it is taken from, and plays, with rules and with a model."""

import re
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from model_studies import answering, asking

from llm_coop_envs.core.registry import scenarios
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.studies.players import may_learn
from llm_coop_envs.studies.seating import read_player, with_players
from llm_coop_envs.studies.selection import select
from llm_coop_envs.studies.study import Study, check_players, load_study, shipped_studies

ROOT = Path(__file__).parents[2]
# Their own tests play them: a real model, and deep learners that were trained before.
PLAYED = [name for name in shipped_studies() if name not in ("local_model", "collusion_comparison")]


def named(condition, study):
    """A condition as one of many studies' has to be called."""
    pair = condition.pair and f"{study}-{condition.pair}"
    return replace(condition, name=f"{study}-{condition.name}", pair=pair)


def all_of(studies):
    conditions = [named(one, study.name) for study in studies for one in select(study, reduced=True).conditions]
    plain = [one for one in conditions if not any(map(may_learn, one.policies))]
    return Study(name="all", description="", seed=0, conditions=tuple(plain), measures=(), text="{}")


@pytest.fixture(scope="module")
def studies():
    return [load_study(name) for name in PLAYED]


def test_every_study_says_where_it_is_from(studies):
    assert len(studies) >= 14
    for study in studies:
        assert study.name in shipped_studies()
        assert study.description
        assert study.source
        check_players(study)
        assert len({(one.scenario, one.title) for one in study.conditions}) == len(study.conditions), study.name
        names = [one.name for one in study.conditions]
        # What it settles is named by conditions that there are, after the last colon.
        for difference in study.settles:
            told = [word.strip() for word in difference.rpartition(":")[2].split(",")]
            for word in told:
                assert word in names or any(n.startswith(f"{word}-") for n in names) or " " in word, (study.name, word)


def test_every_condition_plays_with_rules(studies, tmp_path):
    study = all_of(studies)
    assert {one.scenario for one in study.conditions} == {"bertrand", "evacuation", "kbc"} <= set(scenarios())
    outcome = run_study(study, tmp_path / "run")
    rows = pq.read_table(tmp_path / "run" / "episodes.parquet").to_pylist()
    assert outcome.run.complete
    assert [row["flagged_choices"] for row in rows] == [0] * len(study.conditions)


def test_every_arm_plays_with_a_model_that_is_told_what_makes_it(studies, tmp_path):
    study = with_players(all_of(studies), read_player("llm:scripted"))
    arms = {}
    for one in study.conditions:
        if one.asks_a_model:
            # One of those that are asked in the same way.
            arms.setdefault((one.scenario, repr([players for _, players in one.seats])), one)
    study = replace(study, conditions=tuple(arms.values()))
    with answering() as server:
        assert run_study(study, tmp_path / "run", access=asking(server)).run.complete
    answers = pq.read_table(tmp_path / "run" / "answers.parquet").to_pylist()
    assert {row["condition"] for row in answers} == {one.name for one in study.conditions}
    assert sum(row["fallbacks"] for row in answers) == 0
    assert {"period", "tool"} <= {row["call"] for row in answers}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["heterogeneity_q_learning", "collusion_comparison"])
def test_a_model_plays_where_learners_do(name, tmp_path):
    study = with_players(load_study(name), read_player("llm:scripted"))
    played = [one.name for one in study.conditions if one.asks_a_model]
    assert len(played) == {"heterogeneity_q_learning": 2, "collusion_comparison": 9}[name]
    with answering() as server:
        run = run_study(select(study, only=played, reduced=True), tmp_path / "run", access=asking(server)).run
    assert run.complete
    answers = pq.read_table(tmp_path / "run" / "answers.parquet").to_pylist()
    assert {row["condition"] for row in answers} == set(played)
    assert sum(row["fallbacks"] for row in answers) == 0


def test_the_page_lists_every_study(studies):
    text = (ROOT / "docs" / "shipped_studies.md").read_text(encoding="utf-8")
    rows = {name: rest for name, *rest in re.findall(r"^\| `(\w+)` \| (.+?) \| (.+) \|", text, re.MULTILINE)}
    assert set(rows) == set(shipped_studies())
    for study in studies:
        source, played = rows[study.name]
        assert source == " ".join(study.source.split())
        episodes = sorted({len(one.seeds) for one in study.conditions})
        counts = " to ".join(str(one) for one in dict.fromkeys((episodes[0], episodes[-1])))
        assert re.match(rf"{len(study.conditions)} x {counts}($| \()", played), study.name
