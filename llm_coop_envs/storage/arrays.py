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

from llm_coop_envs.util.opening import check_archive, open_memory

Arrays = dict[str, NDArray[Any]]

ABOUT = "about"


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
        Exception: one of `opening.DAMAGED`: it is no such file.
    """
    # Read into memory first: NumPy does not close a damaged file.
    content = open_memory(path)
    with zipfile.ZipFile(content) as archive:
        check_archive(archive)
    content.seek(0)
    with np.load(content, allow_pickle=False) as data:
        arrays = {name: data[name] for name in data.files}
    about: dict[str, Any] = json.loads(arrays.pop(ABOUT).tobytes())
    return arrays, about
