"""A run's tables."""

from small import ALL, small_study

from llm_coop_envs.runs import tables
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.tables import make_tables, write_tables


def test_small_tables_that_are_joined_on_the_way_are_the_same_bytes(tmp_path, monkeypatch):
    run = run_study(small_study(ALL), tmp_path / "run").run
    known = {path: path.read_bytes() for path in write_tables(run)}
    monkeypatch.setattr(tables, "_MANY", 3)
    joined = make_tables(run)
    assert max(column.num_chunks for table in joined.values() for column in table.columns) < 3
    assert {path: path.read_bytes() for path in write_tables(run)} == known
