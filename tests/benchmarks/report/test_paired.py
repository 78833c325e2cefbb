"""What two arms of a comparison differ by, in numbers and in words."""

import math

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small import small_study

from llm_coop_envs.benchmarks.report.build import write_report
from llm_coop_envs.benchmarks.report.paired import FEWEST_PAIRS, PairedDifference, in_words, paired_tables
from llm_coop_envs.benchmarks.report.reading import read_run
from llm_coop_envs.benchmarks.run.folder import open_run
from llm_coop_envs.benchmarks.run.runner import run_study

PAIRS = """\
name: pairs
conditions:
  - &kbc {name: kbc-silent, title: no talk, pair: kbc, scenario: kbc, settings: {players: 5, talk: false}, episodes: 6,
     policies: {mix: [{name: announcer}, {name: follower, share: 3}, {name: poisson}]}}
  - {<<: *kbc, name: kbc-talk, title: talk, settings: {players: 5}}
  - &room {name: room-silent, title: no talk, pair: room, scenario: evacuation, preset: small, policies: nearest_exit,
     settings: {people: 4, talk: false}, seeds: [1, 2]}
  - {<<: *room, name: room-talk, title: talk, policies: random, settings: {people: 4, rounds: 9}}
"""


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs") / "run"
    run_study(small_study(PAIRS), folder)
    return folder


def tables_of(folder, chosen=(), invalid=()):
    sections, _ = read_run(open_run(folder))
    return {section.scenario.name: paired_tables(section, chosen, invalid) for section in sections}


def test_differences_are_those_of_the_episodes(played):
    (table,) = tables_of(played)["kbc"]
    assert table.title == "talk minus no talk, seed by seed"
    assert table.head == ["measure", "no talk", "talk", "difference", "effect size", "pairs"]
    rows = pq.read_table(played / "episodes.parquet").to_pylist()
    silent, talk = (
        {row["seed"]: row for row in rows if row["condition"] == name} for name in ("kbc-silent", "kbc-talk")
    )
    for row in table.rows:
        found = np.array([[float(one[seed][row.name]) for seed in silent] for one in (silent, talk)])
        difference = found[1] - found[0]
        for cell, mean in zip(row.cells, [*found.mean(axis=1), difference.mean()], strict=False):
            assert float(cell.text) == pytest.approx(mean, abs=0.5 * 10 ** -len(cell.text.partition(".")[2]) + 1e-9)
        spread = difference.std(ddof=1)
        effect = row.cells[3].text
        assert (
            effect == "\N{EN DASH}"
            if spread == 0
            else float(effect) == pytest.approx(difference.mean() / spread, rel=0.01, abs=0.001)
        )
        assert row.cells[4].text == "6"
    # Nobody has spoken before the first decision: it is the same to the last digit.
    first = next(row for row in table.rows if row.name == "mean_first")
    assert (first.cells[2].text, first.cells[2].below) == ("0", "always")
    assert "mean_first" in table.lead
    assert "the same in every pair" in table.lead
    assert any("nothing but talk" in note for note in table.notes)


def test_what_else_differs_is_said(played):
    (table,) = tables_of(played)["evacuation"]
    assert "The two differ in: talk, rounds, who plays. The difference is that of all of these together." in table.notes
    assert "nothing can be said of" in table.lead
    assert f"fewer than {FEWEST_PAIRS} pairs" in table.lead


def test_nothing_is_said_of_invalid_arms(played):
    (table,) = tables_of(played, invalid=["kbc-talk"])["kbc"]
    assert table.lead == "Nothing can be said: talk is invalid."


def test_the_study_names_the_measures(played):
    (table,) = tables_of(played, chosen=["variance_first", "mean_round"])["kbc"]
    assert [row.name for row in table.rows] == ["variance_first"]


def test_the_page_says_what_was_found(played, tmp_path):
    page = write_report(played, tmp_path).read_text(encoding="utf-8")
    assert page.count('<p class="finding">') == 2
    assert "Cohen&#39;s d_z" in page


VALUES = st.lists(
    st.tuples(st.floats(-100, 100).map(lambda x: round(x, 3)), st.floats(-100, 100).map(lambda x: round(x, 3))),
    max_size=9,
)


@settings(deadline=None)
@given(VALUES)
def test_findings_follow_the_interval(pairs):
    one = PairedDifference(measure="m", first=tuple(a for a, _ in pairs), second=tuple(b for _, b in pairs))
    told = in_words("a", "b", [one])
    if len(pairs) < FEWEST_PAIRS:
        assert one.finding == "few"
        assert told == f"b against a: nothing can be said of m, for which there are fewer than {FEWEST_PAIRS} pairs."
        return
    mean = np.mean([b - a for a, b in pairs])
    if one.finding == "same":
        assert all(math.isclose(a, b) for a, b in pairs)
        assert "same in every pair" in told
    elif one.finding == "unclear":
        assert one.interval.low <= 0 <= one.interval.high
        assert "no difference in m can be told from chance" in told
    else:
        assert one.finding == ("higher" if mean > 0 else "lower")
        assert f"m is {one.finding}" in told


def test_rounding_is_no_difference():
    sums = (0.1 + 0.2, 0.3, 0.3, 0.3, 0.3)
    one = PairedDifference(measure="m", first=sums, second=(0.3,) * 5)
    assert (one.finding, one.effect) == ("same", None)
    assert PairedDifference(measure="m", first=(1.0,) * 5, second=(2.0,) * 5).finding == "higher"
