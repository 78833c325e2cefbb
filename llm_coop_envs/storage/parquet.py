"""Tables as Parquet files, written atomically; pyarrow is imported when the first one is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_coop_envs.errors import MissingExtra
from llm_coop_envs.storage.files import atomic_path

if TYPE_CHECKING:
    import pyarrow as pa


def need_arrow() -> None:
    """Check that tables can be written, before any work is done.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    try:
        import pyarrow.parquet  # noqa: F401  # some builds of pyarrow lack it
    except ImportError as error:
        raise MissingExtra("writing Parquet tables", "study") from error


def write_table(path: Path, table: pa.Table) -> None:
    """Write a table.

    Raises:
        RunError: it cannot be written.
    """
    import pyarrow.parquet as pq

    with atomic_path(path) as temporary:
        pq.write_table(table, temporary, compression="zstd")


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows as a table; see `write_table`."""
    import pyarrow as pa

    write_table(path, pa.Table.from_pylist(list(rows)))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read the rows of a table."""
    import pyarrow.parquet as pq

    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows
