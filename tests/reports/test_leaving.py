"""A study in which some leave from a round on, in all three scenarios: played, checked, read and reported."""

import contextlib

import pyarrow.parquet as pq
import pytest

from llm_coop_envs.errors import StudyError
from llm_coop_envs.page.episode_reader import EpisodeReader
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.reports.run_sections import read_run
from llm_coop_envs.reports.section import NotDrawn
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.tables import write_tables
from llm_coop_envs.runs.verify import verify_run
from llm_coop_envs.studies.study import parse_study

STUDY = """\
name: leaving
conditions:
  - name: prices
    scenario: bertrand
    settings: {firms: 3, rounds: 8, collusion_window: 0, exchanges: 1}
    policies: price_matching
    seeds: [0, 1]
    after: {controls: true, horizon: 5}
    changes: [{from_round: 5, players: firm_1, settings: {present: false}}]
  - name: contest
    scenario: kbc
    preset: large_scale
    settings: {players: 12, rounds: 3}
    policies: level_k
    seeds: [0, 1]
    changes: [{from_round: 2, players: "player_1*", settings: {present: false}}]
  - name: room
    scenario: evacuation
    preset: small
    settings: {people: 6, rounds: 6}
    policies: random
    seeds: [0, 1]
    changes: [{from_round: 3, players: [evacuee_0, evacuee_3], settings: {present: false}}]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("leaving") / "run"
    assert run_study(parse_study(STUDY, "x.yaml"), folder).complete
    return folder


def test_it_is_measured_by_who_was_there(folder):
    write_tables(open_run(folder))
    assert verify_run(folder, again=True).faults == []
    rows = {row["condition"]: row for row in pq.read_table(folder / "episodes.parquet").to_pylist()}
    # Two firms that ask what is best for the two of them: the panel sees no firm that is gone.
    prices = rows["prices"]
    assert prices["firms"] == 2
    assert prices["panel_level"] == pytest.approx(1.0, abs=1e-4)
    assert prices["deviations"] == 2
    assert prices["mean_price_last_1"] is not None  # it was there in some of the last rounds
    rounds = pq.read_table(folder / "rounds_bertrand.parquet").to_pylist()
    assert [row["price_1"] is None for row in rounds] == [row["round"] >= 5 for row in rounds]
    contest = pq.read_table(folder / "rounds_kbc.parquet").to_pylist()
    assert [row["players"] for row in contest] == [12, 9, 9] * 2


def test_tables_figures_and_pages_do_not_choke(folder):
    for section in read_run(open_run(folder))[0]:
        assert not [
            cell for table in section.tables() for row in table.rows for cell in row.cells if "nan" in cell.text
        ]
        for one in section.conditions:
            assert section.episode_panel(one, 0)
        if section.scenario.name != "evacuation":  # the room is drawn as ever, and drawing it takes seconds
            for kind in section.figures():
                with contextlib.suppress(NotDrawn):
                    assert kind.draw()
    for condition in open_run(folder).conditions:
        header, events = open_run(folder).read_events(condition.name, 0)
        reader = EpisodeReader(condition.spec, header, large=False)
        list(reader.messages(events))
        reader.moving()
        assert len(reader.summarise()["rounds"]) >= 3


@pytest.mark.rare
def test_the_page_shows_who_is_left(folder):
    page = write_report(folder).read_text(encoding="utf-8")
    assert ">nan" not in page
    assert "cartel, 2 left" in (folder / "report" / "bertrand_prices_prices.csv").read_text(encoding="utf-8")


def test_too_few_are_refused_with_the_line():
    study = STUDY.replace('"player_1*"', '"player_*"')
    with pytest.raises(StudyError, match=r"line 16: .*leaves 0 of 12 from round 2 on; 2 or more must stay"):
        parse_study(study, "x.yaml")
