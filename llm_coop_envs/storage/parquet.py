"""Tables as Parquet files, whole or not there at all; pyarrow is imported when the first one is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_coop_envs.errors import MissingExtra
from llm_coop_envs.storage.files import whole

if TYPE_CHECKING:
    import pyarrow as pa


def need_arrow() -> None:
    """Fail early, before anything is begun, when tables could not be written.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    try:
        import pyarrow.parquet  # noqa: F401  # only whether it is there: some builds lack it
    except ImportError as error:
        raise MissingExtra("writing Parquet tables", "study") from error


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table.

    Raises:
        RunError: it cannot be written.
    """
    import pyarrow.parquet as pq

    with whole(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows as a table; see `write_table`."""
    import pyarrow as pa

    write_table(path, pa.Table.from_pylist(list(rows)))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a table."""
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows
