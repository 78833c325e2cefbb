"""A run's tables as Parquet, with a code book."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

from llm_coop_envs.export.code_book import code_book
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.tables import make_tables
from llm_coop_envs.storage.parquet import need_arrow, write_table
from llm_coop_envs.util.quoting import table_cell

if TYPE_CHECKING:
    import pyarrow as pa

CODE_BOOK = "codebook.csv"


def write_parquet(run: Run, folder: Path) -> dict[str, pa.Table]:
    """Write Parquet tables, made anew from the events, and a code book of their columns; the tables by name."""
    need_arrow()
    tables = {path.stem: table for path, table in make_tables(run).items()}
    for name, table in tables.items():
        write_table(folder / f"{name}.parquet", table)
    write_code_book(run, folder, tables)
    return tables


def write_code_book(run: Run, folder: Path, tables: dict[str, pa.Table]) -> None:
    """Write what each column of each table means."""
    rows = code_book(run, {name: table.column_names for name, table in tables.items()})
    with (folder / CODE_BOOK).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["table", "column", "meaning", "unit"])
        writer.writeheader()
        writer.writerows({name: table_cell(value) for name, value in row.items()} for row in rows)
