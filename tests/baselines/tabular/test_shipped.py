"""The shipped tables do what is written beside them."""

import json

import pytest

from llm_coop_envs.baselines.tabular.store import SHIPPED, load
from llm_coop_envs.kbc.faces.tabular import KBCLearner
from llm_coop_envs.reports.evaluation import Contest


@pytest.mark.parametrize("name", SHIPPED)
def test_what_made_a_table_is_recorded_beside_it(name):
    record = json.loads(SHIPPED[name].with_suffix(".json").read_text())
    table = load(name)
    assert record["about"] == table.about()
    words = record["command"].split()
    assert words[:3] == ["python", "-m", "llm_coop_envs.baselines.tabular"]
    assert words[3] == table.scenario
    assert words[words.index("--seed") + 1] == str(table.seed)
    assert words[words.index("--preset") + 1] == table.learning.preset
    assert table.episodes == table.learning.episodes
    assert SHIPPED[name].stat().st_size < 100_000


@pytest.mark.parametrize(("name", "end"), [("kbc", 1), ("kbc_half_plus_five", 10)])
def test_shipped_players_of_the_number_contest_end_in_equilibrium(name, end):
    table = load(name)
    learner = KBCLearner(table.learning, 0)
    learner.load(table.arrays)
    found = learner.greedy(1)
    assert found["number"] == end
    assert found["as_good_alone"] == 0
    assert found["winners"] == 1


@pytest.mark.slow
def test_the_shipped_table_is_faster_than_the_nearest_exit():
    contest = Contest(
        scenario="evacuation", settings={"preset": "no_talk"}, policies=("tabular:evacuation", "nearest_exit")
    )
    table, rule = (one.rows for one in contest.play(range(1000, 1005)))
    saved = [b["mean_round"] - a["mean_round"] for a, b in zip(table, rule, strict=True)]
    assert min(saved) > 0
    assert sum(saved) / len(saved) > 1
    assert all(row["escaped"] == 100 for row in table)
