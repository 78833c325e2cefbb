"""JSON through orjson where it is installed (extra `openai`), else through the standard library."""

from __future__ import annotations

import json
from typing import Any

orjson: Any
try:
    import orjson
except ImportError:
    orjson = None


def dumps(data: Any) -> bytes:
    """Write JSON in UTF-8 on one line.

    Data that orjson refuses (lone surrogates, large integers) is written by the standard library, in ASCII.
    """
    if orjson is not None:
        try:
            packed = orjson.dumps(data)
        except TypeError:
            pass
        else:
            # A copy, because orjson's own bytes keep its whole buffer, often ten times as large.
            return bytes(memoryview(packed))
    return json.dumps(data, separators=(",", ":")).encode("ascii")


def loads(raw: bytes) -> Any:
    """Parse JSON. With orjson, an integer of more than 64 bits becomes the nearest float.

    Raises:
        ValueError: it is no JSON, or nested too deeply for Python.
    """
    if orjson is not None:
        try:
            return orjson.loads(raw)
        except ValueError:
            pass  # orjson refuses escapes of lone surrogates, which servers do send
    try:
        return json.loads(raw)
    except RecursionError:
        raise ValueError("nested too deeply") from None
