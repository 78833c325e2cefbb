"""The published values are pinned: whoever changes a digit has to change it twice."""

import pytest
from small import small_study

from llm_coop_envs import kbc_v0
from llm_coop_envs.kbc.reference import nyt_density
from llm_coop_envs.kbc.scenario import SCENARIO
from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study

RSD = "rsd_last"


def test_the_variance_arms():
    published = SCENARIO.published["variance"]
    arms = {arm["arm"]: arm for arm in published["arms"]}
    assert {name: arm["mean"] for name, arm in arms.items()} == {
        "gpt_4": [157, 51, 30, 18],
        "gpt_4_cooperate": [120, 2, 1, 1],
        "gpt_4_uncooperative": [207, 127, 125, 77],
        "claude_3_sonnet": [450, 28, 43, 41],
        "gpt_4_t_0": [123, 81, 75, 29],
        "gpt_4_t_1_2": [177, 66, 53, 53],
    }
    assert arms["gpt_4"]["band"] == [[107, 208], [0, 116], [0, 74], [0, 44]]
    assert arms["gpt_4_cooperate"]["band"] == [[71, 168], None, None, None]
    assert (published["k"], published["runs"], published["precision"]) == ([0, 1, 2, 3], 15, 2.0)
    assert "Wu et al. 2024" in published["source"]
    for arm in arms.values():
        for mean, band in zip(arm["mean"], arm["band"], strict=True):
            assert band is None or band[0] <= mean <= band[1]


def test_what_else_is_measured():
    """Wu et al. 2024, arXiv versions 1 and 2: spread by rule; all versions: answers of models that were asked once."""
    published = SCENARIO.published["measures"]
    spread = {
        entry["comparable"]["settings"]["reward_rule"]: entry["value"]
        for entry in published
        if entry.get("measure") == RSD
    }
    assert spread == {"amplified": 27.15, "independent": 27.20, "exclusive": 38.13}
    assert [entry["value"] for entry in published if entry.get("measure") == "unanimous_last"] == [0.4]
    mean_first = {entry["title"]: entry["value"] for entry in published if entry.get("measure") == "mean_first"}
    # Of many people, from their curve. What one model answered once is no mean.
    assert list(mean_first.values()) == [round(float(nyt_density() @ range(101)), 1)]
    (single,) = (entry["words"] for entry in published if "asked once" in entry["title"])
    for phrase in ("single answers, no means", "no number of players", "GPT-4 21", "18, 33, 30, 33"):
        assert phrase in single
    (judged,) = (entry["words"] for entry in published if "judged" in entry["title"])
    for phrase in (
        "70 % of 10 runs under amplified",
        "50 % under independent",
        "exclusive 50 % are risk-avoiding",
        "all disagreeable 20 %",
        "mixed 100 %",
    ):
        assert phrase in judged
    assert all(entry["source"] and entry["comparable"] for entry in published)


def test_of_two_players_the_smaller_number_wins():
    for low, high in ((0, 1), (0, 100), (32, 33), (66, 67), (99, 100)):
        env = kbc_v0.parallel_env(players=2, session="single", talk=False)
        env.reset(seed=0)
        _, rewards, _, _, _ = env.step({"player_0": {"choice": high}, "player_1": {"choice": low}})
        assert (rewards["player_0"], rewards["player_1"]) == (0, 100)


def test_contests_of_one_decision_stand_side_by_side_and_titles_keep_their_ends(tmp_path):
    """Panels of a single decision stood one below the other, and of 'no talk, players 12' the 12 was cut."""
    text = """\
name: decisions
conditions:
  - &one {name: a, title: "no talk, players 12", scenario: kbc, settings: {players: 3, session: single}, seeds: [0],
     policies: poisson}
  - {<<: *one, name: b}
  - {<<: *one, name: c, title: "nested, of four decisions", settings: {players: 3}}
"""
    run_study(small_study(text), tmp_path / "run")
    ((section,), _) = read_run(open_run(tmp_path / "run"))
    axes = [axis for axis in section.choices()[0].figure.axes if axis.axison]
    titles = [axis.get_title(loc="left") for axis in axes]
    assert titles == ["no talk, players 12", "no talk, players 12", *["nested, of four decisions"] * 4]
    rows = [round(axis.get_subplotspec().rowspan.start) for axis in axes]
    assert rows == [0, 0, 1, 1, 1, 1]
    notes = [[text.get_text() for text in axis.texts] for axis in axes]
    assert notes == [[], [], ["k = 0"], ["k = 1"], ["k = 2"], ["k = 3"]]


FORCED = """\
name: forced
conditions:
  - name: contest
    scenario: kbc
    settings: {players: 5, session: repeated, rounds: 3}
    policies: uniform
    seeds: [1, 2]
    changes: [{from_round: 3, players: "player_[0-2]", policy: {name: forced, options: {choice: 100}}}]
"""


def test_the_table_of_variances_has_the_values_of_the_measure_where_a_study_forces(tmp_path):
    run_study(small_study(FORCED), tmp_path / "run")
    ((section,), _) = read_run(open_run(tmp_path / "run"))
    (table,) = [table for table in section.tables() if table.title == "Variance by decision"]
    ((row,), (arm,)) = table.rows, section.conditions
    last = [metrics["variance_last"] for metrics in arm.metrics]
    assert row.cells[-1].number.mean == pytest.approx(sum(last) / 2)
    assert [len(numbers) for numbers in arm.episodes[0].choices] == [5, 5, 2]
    assert any(note.startswith("Forced numbers are left out of the measures") for note in table.notes)


ALL_FORCED = FORCED.replace('from_round: 3, players: "player_[0-2]"', "from_round: WHEN")


@pytest.mark.parametrize(("when", "end"), [("2", "last"), ("1, until_round: 2", "first")])
def test_no_decision_stands_for_one_that_a_study_laid_down(tmp_path, when, end):
    """The first of three decisions was compared, as the last one, with the third of the arm beside it."""
    run_study(small_study(ALL_FORCED.replace("WHEN", when)), tmp_path / "run")
    ((section,), _) = read_run(open_run(tmp_path / "run"))
    other = {"first": "last", "last": "first"}[end]
    for metrics in section.conditions[0].metrics:
        assert {metrics[f"{name}_{end}"] for name in ("mean", "variance", "target", "n_winners")} == {None}
        assert metrics[f"mean_{other}"] is not None
    drawn = [drawing.name for drawing in section.drawings()]
    assert ("kbc_distribution" in drawn) == (end == "last")


def test_the_target_is_told_as_it_is_made(tmp_path):
    """It was "made from the mean (half of it plus 3 (of the median instead))", of the players' numbers."""
    settings = "{players: 6, groups: 3, statistic: median, ratio: 1/2, offset: 3, talk: false, exchanges: 1}"
    text = FORCED.replace("{players: 5, session: repeated, rounds: 3}", settings).replace("round: 3", "round: 1")
    run_study(small_study(text), tmp_path / "run")
    ((section,), _) = read_run(open_run(tmp_path / "run"))
    assert "to a target (half of the median of the groups' numbers plus 3) wins." in section.intro()[0]
    (choices,) = (drawing for drawing in section.drawings() if drawing.name == "kbc_choices")
    assert choices.caption.endswith(
        "Bars: the target, also made from numbers that a study forces, which are not shown."
    )


def test_whoever_a_study_makes_win_is_no_winner(tmp_path):
    text = FORCED.replace("policies: uniform", "policies: {name: forced, options: {choice: 100}}")
    text = text.replace("player_[0-2]", "player_0").replace("{choice: 100}}}]", "{choice: 60}}}]")
    run_study(small_study(text), tmp_path / "run")
    ((section,), _) = read_run(open_run(tmp_path / "run"))
    (metrics, _) = section.conditions[0].metrics
    assert (metrics["n_winners_first"], metrics["mean_first"]) == (5, 100.0)
    # 60 is nearest to two thirds of the mean of 92, and is not its player's own.
    assert (metrics["n_winners_last"], metrics["mean_last"]) == (0, 100.0)
