"""Named arrays with a description in one `.npz` file, which holds numbers and JSON: reading it executes no code."""

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
#: The errors of `read_arrays` for a file of other content, and those of callers that find a field missing.
DAMAGED = (AttributeError, KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile)


def pack_arrays(arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any], level: int = 9) -> bytes:
    """Pack arrays and a description as the content of a file; the same ones give the same bytes.

    Args:
        arrays: the arrays by name; `about` is reserved for the description.
        about: the description, as plain data.
        level: the compression level, 0 to 9.
    """
    description = np.frombuffer(json.dumps(about, sort_keys=True).encode(), dtype=np.uint8)
    buffer = io.BytesIO()
    # Unlike `numpy.savez`, which stamps the time of day into the archive, the bytes depend on the content alone.
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, array in {ABOUT: description, **arrays}.items():
            member = io.BytesIO()
            np.lib.format.write_array(member, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), member.getvalue(), zipfile.ZIP_DEFLATED, level)
    return buffer.getvalue()


def read_arrays(path: Path) -> tuple[Arrays, dict[str, Any]]:
    """Read the arrays and the description in a file.

    Raises:
        OSError: it cannot be read.
        Exception: one of `DAMAGED`: it is no such file.
    """
    # Read into memory first: NumPy does not close a damaged file.
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as data:
        arrays = {name: data[name] for name in data.files}
    about: dict[str, Any] = json.loads(arrays.pop(ABOUT).tobytes())
    return arrays, about
