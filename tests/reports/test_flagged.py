"""Every measure also without the choices that were flagged: fallbacks fall on equilibria."""

import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from small import events_in, record_again, small_study

from llm_coop_envs.reports.build import write_report
from llm_coop_envs.reports.contrast_tables import PAIRS, unflagged_rows
from llm_coop_envs.reports.contrasts import compare_arms
from llm_coop_envs.reports.measure_tables import measures_table
from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.tables import UNFLAGGED, write_tables
from llm_coop_envs.storage.files import pack_lines, read_lines


def flag(path, which):
    """Flag the choices of an episode that `which` names, given the event."""
    header, *events = read_lines(path)
    for event in events:
        if event["type"] == "choice" and which(event):
            event["flags"] = ["missing_action"]
    path.write_bytes(pack_lines([header, *events]))


@pytest.fixture(scope="module")
def flagged(everything, tmp_path_factory):
    """A run in which some choices of one condition of each scenario were flagged."""
    folder = tmp_path_factory.mktemp("flagged") / "run"
    shutil.copytree(everything, folder)
    for path in events_in(folder):
        if path.parent.name == "kbc-silent":
            flag(path, lambda e: e["agent"] in ("player_0", "player_3") and e["round"] in (0, 2))
        elif path.parent.name == "bertrand-silent":
            flag(path, lambda e: e["agent"] == "firm_1" and e["round"] in (1, 5, 6, 30))
        elif path.parent.name == "evacuation-silent" and path.name.startswith("1."):
            flag(path, lambda e: e["round"] == 1)
    record_again(folder)
    return folder


def rounds(folder, condition):
    run = open_run(folder)
    return [[e for e in run.read_events(condition, seed)[1] if e["type"] == "round"] for seed in (0, 1)]


def row_of(section, name):
    return {row.name: row for table in section.tables() for row in table.rows}[name]


def cells(section, name):
    return [float(cell.text) for cell in row_of(section, name).cells]


def test_tables_have_rows_without_flagged_choices(flagged):
    kbc, bertrand, evacuation = read_run(open_run(flagged))[0]
    episodes = rounds(flagged, "kbc-silent")
    kept = [
        [e["choices"] if e["round"] in (1, 3) else np.delete(e["choices"], [0, 3]) for e in one] for one in episodes
    ]
    assert cells(kbc, "kbc-silent") == pytest.approx(
        [np.mean([np.var(one[k]["choices"]) for one in episodes]) for k in range(4)], abs=0.5
    )
    assert cells(kbc, "kbc-silent, without flagged choices") == pytest.approx(
        [np.mean([np.var(one[k]) for one in kept]) for k in range(4)], abs=0.5
    )
    assert row_of(kbc, "kbc-silent").below == "scripted, n = 2, 8 of 40 choices flagged"
    # Round 1 was laid down in advance: what was answered then changed nothing.
    kept = [[e["prices"] for e in one if e["round"] not in (5, 6, 30)] for one in rounds(flagged, "bertrand-silent")]
    first, last = cells(bertrand, "bertrand-silent, without flagged choices")
    assert first == pytest.approx(np.mean([one[1:18] for one in kept]), abs=0.006)
    # The last round that is left is the 29th, and 20 rounds before it none is left out.
    assert last == pytest.approx(np.mean([one[-20:] for one in kept]), abs=0.006)
    # One of two episodes is left.
    assert "n = 1 of 2 episodes" in row_of(evacuation, "evacuation-silent, without flagged choices").below
    for section, name in ((kbc, "kbc-talk"), (bertrand, "bertrand-talk"), (evacuation, "evacuation-talk")):
        assert f"{name}, without flagged choices" not in [r.name for t in section.tables() for r in t.rows]
        assert any("Flagged choices were illegal or missing" in note for t in section.tables() for note in t.notes)


def test_all_measures_have_a_column_without_flagged_choices(flagged):
    for section in read_run(open_run(flagged))[0]:
        name = section.conditions[0].condition.title
        table = measures_table(section, [])
        assert table.head[1].startswith(f"{name} (")
        assert table.head[2].startswith(f"{name}, without flagged choices (")
        assert table.head[3].startswith(section.conditions[1].condition.title)
        # No number stands there without saying what it is.
        assert [row.name for row in table.rows if not row.below] == []
    kbc = read_run(open_run(flagged))[0][0]
    with_, without = kbc.conditions[0], kbc.conditions[0].unflagged
    for before, after in zip(with_.metrics, without.metrics, strict=True):
        assert before["flagged_choices"] == 4
        assert before["variance_last"] == after["variance_last"]
        assert before["variance_first"] != after["variance_first"]


def test_the_table_of_episodes_without_flagged_choices(flagged, everything, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(flagged, folder)
    written = {path.name: path for path in write_tables(open_run(folder))}
    rows = pq.read_table(written[f"{UNFLAGGED}.parquet"]).to_pylist()
    assert len(rows) == 11
    by = {(row["condition"], row["seed"]): row for row in rows}
    episodes = {(row["condition"], row["seed"]): row for row in pq.read_table(written["episodes.parquet"]).to_pylist()}
    assert by["kbc-talk", 0]["mean_last"] == episodes["kbc-talk", 0]["mean_last"]
    assert by["bertrand-silent", 0]["rounds"] == 27
    assert episodes["bertrand-silent", 0]["flagged_choices"] == 4
    # Nothing was flagged: no such table.
    assert not (everything / f"{UNFLAGGED}.parquet").exists()


def test_comparisons_say_of_how_many_pairs_something_is_left(tmp_path):
    text = """\
name: pairs
conditions:
  - {name: a, pair: a, scenario: kbc, settings: {players: 3}, policies: poisson, seeds: [1, 2, 3]}
  - {name: b, pair: a, scenario: kbc, settings: {players: 3, talk: false}, policies: poisson, seeds: [1, 2, 3]}
"""
    run_study(small_study(text), tmp_path / "run")
    files = {f"{path.parent.name} {path.name[0]}": path for path in events_in(tmp_path / "run")}
    flag(files["a 2"], lambda e: True)
    record_again(tmp_path / "run")
    (section,), _ = read_run(open_run(tmp_path / "run"))
    (contrast,) = compare_arms([section], [])
    rows = list(unflagged_rows(contrast))
    assert {row.cells[PAIRS].text for row in rows} == {"2 of 3"}
    assert section.conditions[0].unflagged.size == "n = 2 of 3 episodes"
    # What is left of one arm and of the other may be no pair: then nothing is compared, unpaired neither.
    flag(files["b 1"], lambda e: True)
    flag(files["b 3"], lambda e: True)
    record_again(tmp_path / "run")
    (contrast,) = compare_arms(read_run(open_run(tmp_path / "run"))[0], [])
    assert contrast.without_flagged == []
    # Of an arm of which nothing is left, no choice that was flagged is compared as if it was not.
    for seed in (1, 3):
        flag(files[f"a {seed}"], lambda e: True)
    record_again(tmp_path / "run")
    (contrast,) = compare_arms(read_run(open_run(tmp_path / "run"))[0], [])
    assert contrast.comparisons
    assert list(unflagged_rows(contrast)) == []


def test_where_all_was_flagged_it_is_said(flagged, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(flagged, folder)
    for path in events_in(folder):
        flag(path, lambda e: True)
    record_again(folder)
    page = write_report(folder, tmp_path / "report").read_text(encoding="utf-8")
    assert "Nothing is left without them in: kbc-silent, kbc-talk." in page
    assert "Nothing is left without them in: evacuation-silent, evacuation-talk." in page
    assert "40 of 40 choices flagged" in page
