"""Files that are whole or not there at all, and arrays as the bytes of an `.npz` file."""

from __future__ import annotations

import contextlib
import io
import os
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.errors import RunError


@contextlib.contextmanager
def write_whole(path: Path) -> Iterator[IO[bytes]]:
    """A file to write to that takes its place under its name when the block ends well.

    Raises:
        RunError: it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
    except OSError as error:
        why = error.strerror or str(error)
        raise RunError(f"{path}: cannot be written ({why}); choose a folder you can write to with -o") from error


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep a second writer out of a folder; the lock goes when the process does, however it ends.

    Raises:
        RunError: another process is writing there.
    """
    try:
        import fcntl
    except ImportError:  # Windows has no flock; two writers there are not told apart
        yield
        return
    with (folder / ".lock").open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RunError(f"{folder}: another process is training there; wait for it or stop it first") from error
        yield


def pack_arrays(arrays: Mapping[str, NDArray[Any]], level: int = 9) -> bytes:
    """Arrays in the form `numpy.load` reads; the same arrays give the same bytes.

    Args:
        arrays: by name.
        level: how hard to compress, 0 to 9.
    """
    buffer = io.BytesIO()
    # numpy.savez stamps the time of day into the archive; written by hand the bytes depend on the content alone.
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in arrays.items():
            part = io.BytesIO()
            np.lib.format.write_array(part, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), part.getvalue(), zipfile.ZIP_DEFLATED, level)
    return buffer.getvalue()
