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
    """JSON in UTF-8 on one line; what orjson cannot write (lone surrogates, large integers) is written with escapes."""
    if orjson is not None:
        try:
            packed = orjson.dumps(data)
        except TypeError:
            pass
        else:
            # A copy: orjson keeps all the room in which it wrote, often ten times as much.
            return bytes(memoryview(packed))
    return json.dumps(data, separators=(",", ":")).encode("ascii")


def loads(raw: bytes) -> Any:
    """Data from JSON.

    Raises:
        ValueError: it is no JSON, or nested deeper than Python reads.
    """
    if orjson is not None:
        try:
            return orjson.loads(raw)
        except ValueError:
            pass  # orjson refuses the escape of a lone surrogate, which servers do send
    try:
        return json.loads(raw)
    except RecursionError:
        raise ValueError("nested too deeply") from None
