"""Many episodes are read in several processes; what is made of them is the same as in one."""

import pytest
from small import small_study

from llm_coop_envs.errors import RunError
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.runs import reading
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.reading import read_portions, reading_in
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.tables import _concatenate, _Growing, write_tables


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "FEWEST", 1)
    monkeypatch.setattr(reading, "PORTION", 2)
    run_study(small_study(), tmp_path / "run")
    return open_run(tmp_path / "run")


def seeds_of(run, episodes):
    return [(condition.name, seed) for condition, seed in episodes]


def unsendable(run, episodes):
    return lambda: len(episodes)


def test_portions_come_in_order_and_hold_every_episode(run):
    expected = [(condition.name, seed) for condition, seed in run.episodes]
    for processes in (1, 2):
        with reading_in(processes):
            parts = list(read_portions(run, seeds_of))
        assert [len(part) for part in parts] == [2, 2, 1]
        assert [episode for part in parts for episode in part] == expected


def test_reports_and_tables_are_the_same_bytes_in_one_process_or_two(run, tmp_path):
    made = {}
    for processes in (1, 2):
        out = tmp_path / "report"
        with reading_in(processes):
            write_report(run.folder, out)
            tables = {path.name: path.read_bytes() for path in write_tables(run)}
        made[processes] = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}, tables
    assert made[1] == made[2]


def test_what_cannot_be_sent_is_read_here(run):
    with reading_in(2):
        assert [part() for part in read_portions(run, unsendable)] == [2, 2, 1]


def test_a_damaged_episode_is_one_sentence_from_another_process_too(run):
    condition, seed = run.episodes[-1]
    run.events_path(condition.name, seed).write_bytes(b"{}")
    with reading_in(2), pytest.raises(RunError, match="cannot be read"):
        write_report(run.folder, run.folder / "report", partial=True)


def test_lists_of_integers_and_of_decimals_make_one_column():
    growing = _Growing()
    growing.add([{"path": [1, 2], "n": 1}])
    growing.add([{"path": [1.5], "n": 2.5, "late": "x"}])
    table = _concatenate(growing.tables())
    assert table.to_pylist() == [
        {"path": [1.0, 2.0], "n": 1.0, "late": None},
        {"path": [1.5], "n": 2.5, "late": "x"},
    ]
