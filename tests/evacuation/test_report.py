"""The published values are pinned: whoever changes a digit has to change it twice."""

from types import SimpleNamespace

from llm_coop_envs.evacuation.faces.report import EvacuationSection
from llm_coop_envs.evacuation.scenario import SCENARIO

TABLE, RUN = SCENARIO.published["table_2"], SCENARIO.published["run_seed_4"]


def test_the_evacuation_table():
    assert {row["arm"]: row["escaped"] for row in TABLE["rows"]} == {
        "no_communication": [9.4, 31.2, 51.2, 65.6, 78.6, 88.4, 96.6, 99.0, 99.8, 99.8],
        "communication": [9.8, 31.6, 48.8, 67.2, 80.6, 92.2, 97.2, 98.8, 99.8, 100.0],
        "communication_selfish": [9.4, 31.2, 48.2, 64.4, 77.0, 87.4, 95.0, 98.0, 99.0, 99.0],
    }
    assert (TABLE["runs"], TABLE["rounds"]) == (5, list(range(5, 51, 5)))
    assert "Wu et al. 2024, Table 2" in TABLE["source"]
    for row in TABLE["rows"]:
        assert row["comparable"]["settings"]["talk"] == row["arm"].startswith("communication")


def escaped(step):
    return 100 - RUN["in_room"][step]


def reached(step):
    return [RUN[f"reached_{name}"][step] for name in ("left", "bottom", "right")]


def test_the_published_evacuation_run():
    assert (RUN["seed"], RUN["comparable"]["preset"]) == (4, "team_up")
    assert "talk" not in RUN["comparable"]["except"]
    assert [escaped(min(r, 47)) for r in range(5, 51, 5)] == [9, 31, 45, 60, 74, 89, 98, 99, 99, 100]
    assert reached(-1) == [37, 29, 34]


def test_whoever_reaches_an_exit_has_left_one_step_later():
    assert RUN["frames"] == list(range(48))
    for step in range(1, 48):
        assert sum(reached(step - 1)) == escaped(step)


def test_all_conditions_show_the_same_room_whatever_the_order_of_their_seeds():
    section = EvacuationSection.__new__(EvacuationSection)
    section.conditions = [SimpleNamespace(seeds=[0, 7, 8]), SimpleNamespace(seeds=[7, 0, 9])]
    section._is_published_run = lambda played, seed: False
    assert [section._shown_seed(played) for played in section.conditions] == [0, 0]
