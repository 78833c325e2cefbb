"""A run's tables as CSV, with a code book."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from llm_coop_envs.export.parquet import write_code_book
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.tables import make_tables
from llm_coop_envs.storage.parquet import need_arrow
from llm_coop_envs.util.quoting import table_cell


def write_csv(run: Run, folder: Path) -> None:
    """CSV tables with a code book, as R, Stata and spreadsheets read them: TRUE and FALSE, missing values empty."""
    need_arrow()
    tables = {path.stem: table for path, table in make_tables(run).items()}
    for name, table in tables.items():
        with (folder / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(table.column_names)
            for batch in table.to_batches():
                columns = [column.to_pylist() for column in batch.columns]
                writer.writerows([_cell(value) for value in row] for row in zip(*columns, strict=True))
    write_code_book(run, folder, tables)


def _cell(value: Any) -> Any:
    """A value as R reads it."""
    return str(value).upper() if isinstance(value, bool) else table_cell(value)
