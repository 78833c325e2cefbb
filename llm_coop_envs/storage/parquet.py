"""Tables as Parquet files, written atomically; pyarrow is imported when the first one is written."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from llm_coop_envs.errors import RunError
from llm_coop_envs.storage.files import atomic_path
from llm_coop_envs.util.extras import need
from llm_coop_envs.util.opening import DAMAGED, open_file

if TYPE_CHECKING:
    import pyarrow as pa

#: The most values, rows times columns, of a table that is read. Repeated values take no space in the file.
MAX_VALUES = 500_000_000
#: The largest file of a table, in bytes; it is read as a whole.
MAX_BYTES = 1 << 30


def need_arrow(purpose: str = "writing Parquet tables") -> None:
    """Check that tables can be written or read, before any work is done.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    need("pyarrow.parquet", purpose, "study")  # some builds of pyarrow lack it


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


def read_table(path: Path, names: Collection[str] | None = None) -> pa.Table:
    """Read a table.

    Args:
        path: the file.
        names: the columns wanted, if it has them; all by default.

    Raises:
        MissingExtra: pyarrow is not installed.
        RunError: it cannot be opened (see `open_file`), is no table, or has more values than are read.
    """
    need_arrow("reading Parquet tables")
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _explained(path):
        # Arrow's threads let go of what they read after the reading, and of a Python file that aborts a process that is
        # ending (apache/arrow#34314): they get bytes of Arrow's own.
        with open_file(path, MAX_BYTES) as raw:
            content = pa.allocate_buffer(os.fstat(raw.fileno()).st_size)
            if raw.readinto(memoryview(content)) != content.size:
                raise ValueError("it changed while it was read")
        with pq.ParquetFile(pa.BufferReader(content)) as file:
            values = file.metadata.num_rows * file.metadata.num_columns
            if values > MAX_VALUES:
                raise ValueError(f"it has {values:,} values, more than the {MAX_VALUES:,} that are read")
            return file.read(None if names is None else [name for name in file.schema_arrow.names if name in names])


def read_rows(path: Path, names: Collection[str] | None = None) -> list[dict[str, Any]]:
    """Read the rows of a table; see `read_table`."""
    table = read_table(path, names)
    with _explained(path):  # texts are decoded only now
        rows: list[dict[str, Any]] = table.to_pylist()
        return rows


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, *DAMAGED) as error:
        # Arrow's own reasons may have several lines, and name no file.
        reason = " ".join((getattr(error, "strerror", None) or str(error)).split())[:200]
        raise RunError(f"{path}: cannot be read ({reason}); 'llm-coop run' makes the tables of a run anew") from error
