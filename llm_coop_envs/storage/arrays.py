"""Named arrays with a description, as one `.npz` file: numbers and JSON, so that reading a file executes nothing."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]

ABOUT = "about"
#: What `read_arrays` raises for a file of other content, and what callers raise who miss something in it.
DAMAGED = (AttributeError, KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile)


def pack_arrays(arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any], level: int = 9) -> bytes:
    """The file's content; the same arrays (none called `about`) and description give the same bytes."""
    description = np.frombuffer(json.dumps(about, sort_keys=True).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    # numpy.savez stamps the time of day into the archive; written by hand the bytes depend on the content alone.
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in {ABOUT: description, **arrays}.items():
            part = io.BytesIO()
            np.lib.format.write_array(part, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), part.getvalue(), zipfile.ZIP_DEFLATED, level)
    return buffer.getvalue()


def read_arrays(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """The arrays and the description in a file.

    Raises:
        OSError: it cannot be read.
        Exception: one of `DAMAGED`: it is no such file.
    """
    # From memory: given a damaged file, NumPy leaves it open.
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as data:
        arrays = {name: data[name] for name in data.files}
    about: dict[str, Any] = json.loads(arrays.pop(ABOUT).tobytes())
    return arrays, about
