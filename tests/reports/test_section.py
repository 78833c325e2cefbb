"""Sections hold the numbers of the events, beside those published values alone that they can be compared with."""

from dataclasses import replace

import numpy as np
import pytest
from small import small_study

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.render.charts.style import plotted
from llm_coop_envs.reports.measure_tables import measures_table
from llm_coop_envs.reports.played import values_of
from llm_coop_envs.reports.published_measures import published_tables
from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.reports.section import comparable
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.statistics.intervals import mean_interval


def sections_of(run):
    sections = {section.scenario.name: section for section in read_run(run)[0]}
    for section in sections.values():
        section.source = run.manifest.get("source", "")
    return sections


PUBLISHED = """\
name: published
source: Wu et al. 2024, Figures 4, 5 and 17
conditions:
  - {name: kbc, scenario: kbc, preset: two_thirds, policies: poisson, seeds: [0]}
  - {name: kbc-half, scenario: kbc, preset: half, policies: poisson, seeds: [0]}
  - {name: kbc-twelve, scenario: kbc, settings: {players: 12}, policies: poisson, seeds: [0]}
  - {name: kbc-repeated, scenario: kbc, settings: {session: repeated, rounds: 4, talk_turns: 1}, policies: poisson,
     seeds: [0]}
  - {name: bertrand, scenario: bertrand, preset: team_up_linear, policies: price_matching, seeds: [0]}
  - {name: bertrand-short, scenario: bertrand, preset: team_up_linear, settings: {rounds: 40}, policies: price_matching,
     seeds: [0]}
  - {name: bertrand-logit, scenario: bertrand, preset: team_up, settings: {rounds: 40}, policies: price_matching,
     seeds: [0]}
  - {name: evacuation, scenario: evacuation, settings: {talk: false}, policies: nearest_exit, seeds: [0, 4]}
  - {name: evacuation-47, scenario: evacuation, settings: {talk: false, people: 47}, policies: nearest_exit,
     seeds: [0]}
"""


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    folder = tmp_path_factory.mktemp("published") / "run"
    run_study(small_study(PUBLISHED), folder)
    return folder


def test_published_values_stand_beside_what_they_can_be_compared_with(published):
    sections = sections_of(open_run(published))
    evacuation = sections["evacuation"].tables()
    assert [table.title for table in evacuation] == ["People who have left, of 100", "People who have left, of 47"]
    assert evacuation[0].head[1:] == [str(r) for r in range(5, 51, 5)]
    silent = find_scenario("evacuation").published["table_2"]["rows"][0]
    (row,) = [row for row in evacuation[0].rows if row.published]
    assert row.name == "GPT-4, no communication"
    assert [float(cell.text) for cell in row.cells] == silent["escaped"]
    kbc = sections["kbc"].tables()
    assert [[row.name for row in table.rows if not row.published] for table in kbc] == [
        ["kbc"],
        ["kbc-half", "kbc-twelve"],
        ["kbc-repeated"],
    ]
    arms = [row for row in kbc[0].rows if row.published]
    for row, arm in zip(arms, find_scenario("kbc").published["variance"]["arms"], strict=True):
        assert [float(cell.text) for cell in row.cells] == arm["mean"]
    assert [table.head[1] for table in kbc] == ["k = 0", "k = 0", "decision 1"]
    assert "(two thirds of the mean or half of the mean)" in sections["kbc"].intro()[0]
    bertrand = sections["bertrand"].tables()
    assert any("6 and 8" in note for note in bertrand[0].notes)
    prices = dict(zip(bertrand[0].head[1:], bertrand[0].rows[-1].cells, strict=True))
    assert prices["round 300"].text == "7.50"
    for tables in (evacuation, kbc, bertrand):
        for table in tables[1:]:
            assert not any(row.published for row in table.rows)
            assert "ublished" not in "".join(table.notes)
        for table in tables:
            assert all(len(row.cells) == len(table.head) - 1 for row in table.rows)


def test_published_curves_are_drawn_beside_the_same_only(published):
    """In no axes does a dashed curve stand beside one that was played otherwise."""
    for section in sections_of(open_run(published)).values():
        for drawing in section.drawings():
            dashed = [any(line.get_markerfacecolor() == "white" for line in axes.lines) for axes in drawing.figure.axes]
            alone = drawing.name.split("_")[-1] in ("bertrand", "1") or drawing.name == "kbc_variance"
            assert any(dashed) == (alone and "snapshots" not in drawing.name)
            assert drawing.published == ("Dashed: " in drawing.caption) == any(dashed)
    (variance,) = sections_of(open_run(published))["kbc"].variance()
    ours = [
        [line.get_label() for line in axes.lines if "n = " in str(line.get_label())] for axes in variance.figure.axes
    ]
    assert [len(labels) for labels in ours] == [1, 2, 1]
    assert [axes.get_xlabel() for axes in variance.figure.axes] == ["k (talks so far)", "k (talks so far)", "decision"]


@pytest.mark.parametrize("source", ["", "Another et al. 2025"])
def test_a_study_that_names_another_source_or_none_is_shown_nothing_published(published, source):
    """Table 2 of Wu et al. and its dashed curves stood beside every study in the same room."""
    for section in sections_of(open_run(published)).values():
        section.source = source
        assert not any(row.published for table in [*section.tables(), *published_tables(section)] for row in table.rows)
        assert not any(drawing.published or "Dashed: " in drawing.caption for drawing in section.drawings())
        for played in section.conditions:
            assert not any(section.published_values(played.condition, name) for name in played.metrics[0])


def test_our_numbers_are_those_of_the_events(everything):
    run = open_run(everything)
    sections = sections_of(run)
    variances = [
        [np.var(e["choices"]) for e in run.read_events("kbc-silent", seed)[1] if e["type"] == "round"]
        for seed in (0, 1)
    ]
    row = next(r for r in sections["kbc"].tables()[0].rows if r.name == "kbc-silent")
    assert [float(cell.text) for cell in row.cells] == pytest.approx(np.mean(variances, axis=0), abs=0.5)

    def settled(condition, seed):
        return [event for event in run.read_events(condition, seed)[1] if event["type"] == "round"]

    left = []
    for seed in (0, 1):
        rounds = settled("evacuation-silent", seed)
        left.append(sum(len(e["escaped"]) for e in rounds if e["round"] <= 10))
    row = next(r for r in sections["evacuation"].tables()[0].rows if r.name == "evacuation-silent")
    assert float(row.cells[1].text) == pytest.approx(np.mean(left), abs=0.05)
    prices = [
        np.mean([e["prices"] for e in settled("bertrand-silent", seed)[:20] if not e["forced"]]) for seed in (0, 1)
    ]
    row = next(r for r in sections["bertrand"].tables()[0].rows if r.name == "bertrand-silent")
    assert float(row.cells[0].text) == pytest.approx(np.mean(prices), abs=0.005)


@pytest.mark.parametrize(
    "rule", [{"preset": "team_up_linear", "except": ["rounds"]}, {"settings": {"cost": 2}}], ids=["preset", "settings"]
)
@pytest.mark.parametrize(
    "treatment",
    ["delivery: drop", "information: own", "observation_noise: 0.1", "regulator: {powers: [log]}"],
)
def test_published_values_do_not_stand_beside_what_no_paper_did(treatment, rule):
    def condition(more, seats):
        played = f"name: a, scenario: bertrand, preset: team_up_linear, seeds: [1], policies: {seats}"
        return small_study(f"{{name: x, conditions: [{{{played}, settings: {{{more}}}}}]}}").conditions[0]

    regulated = "{all: uniform, regulator_0: regulator/never}"
    assert comparable(condition("rounds: 5", "uniform"), {"comparable": rule})
    treated = condition(treatment, regulated if "regulator" in treatment else "uniform")
    assert not comparable(treated, {"comparable": rule})


def test_measures_of_many_conditions_stand_in_columns(tmp_path):
    """The page cut what did not fit beside each other; the numbers are the same either way."""
    arms = "".join(f"  - {{<<: *one, name: c{i}, settings: {{players: {i}}}}}\n" for i in range(4, 10))
    text = "name: many\nconditions:\n  - &one {name: c3, scenario: kbc, settings: {players: 3}, policies: poisson, "
    run = run_study(small_study(text + f"seeds: [0, 1]}}\n{arms}"), tmp_path / "run").run
    ((section,), _) = read_run(run)
    table = measures_table(section, ["mean_last", "variance_last"])
    assert table.head == ["", "mean_last", "variance_last"]
    assert [row.name for row in table.rows] == [f"c{i}" for i in range(3, 10)]
    assert [row.conditions for row in table.rows] == [(f"c{i}",) for i in range(3, 10)]
    assert any(note.startswith("mean_last: Mean of the players' numbers") for note in table.notes)
    for name, place in (("mean_last", 0), ("variance_last", 1)):
        means = [np.mean([row[name] for row in one.metrics]) for one in section.conditions]
        assert [row.cells[place].number.mean for row in table.rows] == pytest.approx(means)
    section.conditions = section.conditions[:3]
    assert measures_table(section, ["mean_last", "variance_last"]).head[0] == "measure"


def test_no_interval_of_a_measure_leaves_what_it_can_be(tmp_path):
    """With few skewed values intervals reached below 0 people and above all of them."""
    text = """\
name: bounds
conditions:
  - {name: contest, scenario: kbc, settings: {players: 3}, episodes: 5,
     policies: {mix: [{name: announcer}, {name: poisson, share: 2}]}}
"""
    run = run_study(small_study(text), tmp_path / "run").run
    ((section,), _) = read_run(run)
    (one,) = section.conditions
    # Means of counts need not be whole.
    ranges = {name: replace(section.range_of(name, one), integer=False) for name in one.metrics[0]}
    raw = {name: mean_interval(values_of(one.metrics, name)) for name in ranges}
    outside = {
        name
        for name, free in raw.items()
        if free is not None and not (ranges[name].holds(free.low) and ranges[name].holds(free.high))
    }
    assert outside
    cells = {row.name: row.cells[0] for row in measures_table(section, ()).rows}
    for name in outside:
        assert ranges[name].holds(cells[name].number.low)
        assert ranges[name].holds(cells[name].number.high)
    assert all(row["low"] >= 0 for row in plotted(section.variance()[0].figure) if "low" in row)
