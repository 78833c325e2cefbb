"""What reports say of large contests: statistics, winners and published values, by who played."""

import numpy as np
import pytest
from small import small_study

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.kbc.faces.report import KbcSection
from llm_coop_envs.kbc.faces.report_crowd import below_last, kinds_figure, read_crowd
from llm_coop_envs.reports.played import PlayedCondition
from llm_coop_envs.reports.section import (
    NotDrawn,
    comparable,
)
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.tables import read_episodes
from llm_coop_envs.studies.study import load_study

STUDY = """\
name: large
source: Pan et al. 2024
seed: 2
conditions:
  - name: alone
    scenario: kbc
    preset: large_scale
    settings: {players: 30, rounds: 5}
    population:
      attributes: {size: {shares: {tall: 0.5, small: 0.5}}}
      play: {policy: {shares: [{value: {name: level_k, options: {k: 1}}, share: 0.5}, {value: uniform, share: 0.5}]}}
    seeds: [1, 2]
  - name: groups
    scenario: kbc
    preset: large_scale
    settings: {players: 30, groups: 3}
    population:
      deal: in_order
      play: {policy: {shares: {level_k: 1/3, uniform: 1/3, announcer: 1/3}}}
    seeds: [1]
  - name: nested
    scenario: kbc
    settings: {players: 4, talk: false}
    policies: poisson
    seeds: [1]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return run_study(small_study(STUDY), tmp_path_factory.mktemp("run") / "run").run


@pytest.fixture(scope="module")
def section(run):
    section = KbcSection(find_scenario("kbc"))
    section.source = run.manifest["source"]
    for episode in read_episodes(run):
        if not section.conditions or section.conditions[-1].condition != episode.condition:
            section.conditions.append(PlayedCondition(condition=episode.condition, who="scripted", color="k"))
        section.conditions[-1].add(episode, section.read)
    for played in section.conditions:
        played.end("scripted")
    return section


@pytest.fixture(scope="module")
def tables(section):
    return {table.title: table for table in section.tables()}


def crowds(run, name):
    return [read_crowd(episode) for episode in read_episodes(run) if episode.condition.name == name]


def row(tables, title, name, number=0):
    return [cell.text for cell in [row for row in tables[title].rows if row.name == name][number].cells]


def test_statistics_are_those_of_the_numbers_of_each_kind(run, tables):
    contests = crowds(run, "alone")
    tall = [crowd.choices[1][crowd.kinds["size"]["tall"]] for crowd in contests]
    pooled = np.concatenate(tall)
    values, counts = np.unique(np.round(pooled, 2), return_counts=True)
    expected = [
        np.mean([numbers.mean() for numbers in tall]),
        pooled.min(),
        pooled.max(),
        pooled.std(),
        np.median(pooled),
    ]
    expected.append(values[counts.argmax()])
    cells = row(tables, "Numbers by who named them", "alone, size: tall", 1)
    assert cells == ["2", *(f"{x:.2f}" for x in expected)]


def test_kinds_are_attributes_and_players_with_their_options(run, tables):
    names = {row.name for row in tables["Numbers by who named them"].rows}
    assert {"alone, everybody", "alone, policy: level_k (k = 1)", "alone, policy: uniform"} <= names
    assert not any(name.startswith("nested") for name in names)
    (crowd,) = crowds(run, "groups")
    # In the order of who plays: a group each.
    assert [np.flatnonzero(is_of_kind).tolist() for is_of_kind in crowd.kinds["policy"].values()] == [
        list(range(10 * k, 10 * k + 10)) for k in range(3)
    ]
    assert crowd.groups[0][0] == pytest.approx(100 / 3)


def test_winners_and_numbers_below_the_last_target(run, tables):
    contests = crowds(run, "alone")
    won = [[float((crowd.winners[k] & crowd.kinds["policy"]["uniform"]).sum()) for crowd in contests] for k in range(5)]
    cells = row(tables, "Winners by who they are", "alone, policy: uniform")
    assert [float(cell) for cell in cells] == pytest.approx([np.mean(x) for x in won], abs=0.06)
    # Level 1 repeats the announced number, up to its rounding: the target is made known with two decimals.
    assert below_last(contests[0], 0, contests[0].everybody) is None
    uniform = contests[0].kinds["policy"]["uniform"]
    share = np.mean(contests[0].choices[2][uniform] < round(contests[0].targets[1], 2))
    assert below_last(contests[0], 2, uniform) == share


def test_published_values_stand_beside_the_conditions_that_they_are_of(tables):
    rows = tables["The large-scale study"].rows
    assert [[row.name, row.cells[1].text, row.cells[1].below] for row in rows] == [
        ["alone: per cent below the last winning number, later rounds", "59.7", "the three models"],
        ["groups: number of group 1 in round 1", "39.36", "Mixtral 8x22B"],
        ["groups: number of group 2 in round 1", "21.14", "Qwen2-72B"],
        ["groups: number of group 3 in round 1", "40.75", "Llama3-70B"],
        ["groups: mean of the groups in round 1", "33.75", "the three models"],
        ["groups: winning number in round 1", "22.5", "the three models"],
    ]
    assert rows[1].cells[0].text == "33.33"


def test_no_interval_reaches_below_what_can_be(tables):
    """Of few large contests the winners were told to be fewer than none."""
    cells = [cell for table in tables.values() for row in table.rows for cell in row.cells]
    lows = [cell.number.low for cell in cells if getattr(cell.number, "low", None) is not None]
    assert lows
    assert min(lows) >= 0


def test_every_published_value_belongs_to_conditions_of_the_shipped_studies():
    studies = [load_study(name) for name in ("large_scale", "large_scale_targets", "large_scale_people")]
    conditions = {
        condition.name: condition
        for study in [*studies, load_study("large_scale_models")]
        for condition in study.conditions
    }
    published = find_scenario("kbc").published["large_scale"]
    for entry in published["values"]:
        for name in entry["conditions"]:
            like = {"comparable": {**published["comparable"], "settings": entry["settings"]}}
            assert comparable(conditions[name], like), entry["title"]
        assert ("words" in entry) != ("value" in entry)
    # Half plus 5: what is announced holds the 5, in contrast to the released program.
    assert conditions["plus_five"].settings["offset"] == "5"


def test_the_numbers_of_pan_et_al_are_those_of_their_text():
    """Typed a second time from arXiv 2407.17789, and for "log" from the log that comes with its program."""
    text = {
        ("once-plain", "mean"): [36.63, 31.69],
        ("once-plain", "winning number"): [33.70],
        ("once-steps", "winning number"): [12.76],
        ("rounds-plain", "mean in round 3"): [35.30],
        ("rounds-plain", "mean in round 5"): [25.16],
        ("rounds-steps", "mean in round 3"): [6.11],
        ("rounds-steps", "mean in round 5"): [2.02],
        ("rounds-rational", "mean in round 3"): [1.55],
        ("rounds-rational", "mean in round 5"): [0.14],
        ("rounds-adaptive", "mean in round 3"): [1.69],
        ("rounds-adaptive", "mean in round 5"): [0.15],
        ("education", "range of the five means"): [3.49, 5.72, 8.24],
        ("alone", "per cent below the last winning number, later rounds"): [59.7],
        ("groups", "number of group 1 in round 1"): [39.36],
        ("groups", "number of group 2 in round 1"): [21.14],
        ("groups", "number of group 3 in round 1"): [40.75],
        ("groups", "mean of the groups in round 1"): [33.75],
        ("groups", "winning number in round 1"): [22.50],
        ("half", "winning number"): [6.21],
        ("near_half", "winning number"): [11.85],
        ("near_half_note", "winning number"): [6.46],
        ("t_005", "SD"): [6.50],
        ("t_100", "SD"): [8.20],
    }
    log = [19.52, 15.75, 13.53]
    values = [entry for entry in find_scenario("kbc").published["large_scale"]["values"] if "value" in entry]
    values_by_key = {key: [] for key in text}
    for entry in values:
        if "log" not in entry["title"]:
            values_by_key[entry["conditions"][0], entry["what"]].append(entry["value"])
    assert values_by_key == text
    assert [entry["value"] for entry in values if "log" in entry["title"]] == log


def test_the_numbers_published_of_groups_agree_with_each_other():
    values = find_scenario("kbc").published["large_scale"]["values"]
    groups = [entry["value"] for entry in values if entry.get("statistic") == "group"]
    (mean,) = (entry["value"] for entry in values if "mean of the groups" in entry.get("what", ""))
    assert np.mean(groups) == pytest.approx(mean, abs=0.01)


def test_the_figure_shows_the_numbers_of_each_kind(section):
    (drawing,) = next(kind for kind in section.figures() if kind.name == "kbc-kinds").draw()
    alone, groups = drawing.figure.axes[:2]
    for axes, kinds in ((alone, 2), (groups, 3)):
        drawn = [line.get_ydata() for line in axes.get_lines()]
        assert [sum(shares) for shares in drawn] == [pytest.approx(100)] * kinds
    with pytest.raises(NotDrawn, match="no large contest"):
        kinds_figure([])
