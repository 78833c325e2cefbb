import pytest

from llm_coop_envs.storage.parquet import read_rows, read_table, write_rows

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = [{"name": f"firm_{k}", "price": k / 7, "round": k} for k in range(20)]


def test_rows_come_back(tmp_path):
    write_rows(tmp_path / "table.parquet", ROWS)
    assert read_rows(tmp_path / "table.parquet") == ROWS


def test_columns_that_are_there_are_read(tmp_path):
    write_rows(tmp_path / "table.parquet", ROWS)
    assert read_table(tmp_path / "table.parquet", {"round", "fine"}).column_names == ["round"]


def test_arrow_holds_no_python_file(tmp_path, monkeypatch):
    """Its threads would let go of one while the process ends, which aborts it."""
    sources = []

    class Spied(pq.ParquetFile):
        def __init__(self, source):
            sources.append(source)
            super().__init__(source)

    write_rows(tmp_path / "table.parquet", ROWS)
    monkeypatch.setattr(pq, "ParquetFile", Spied)
    read_table(tmp_path / "table.parquet")
    assert [type(source) for source in sources] == [pa.BufferReader]
