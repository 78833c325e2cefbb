"""Finding a JSON object in an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

_DECODER = json.JSONDecoder()
_TRAILING_COMMA = re.compile(r",\s*([}\]])")
_SINGLE = re.compile(r"(?<=[{,:\[\s])'((?:[^'\\\n]|\\.)*)'(?=\s*[:,}\]])")
_BARE_KEY = re.compile(r"([{,]\s*)([A-Za-z_]\w*)(\s*:)")
# A brace that opens an object, and not only a number in braces.
_OBJECT = re.compile(r"\{\s*(?:[\"'}]|\w+\s*:|$)")
_MAX_OBJECTS = 20


@dataclass(frozen=True, slots=True)
class Found:
    """What was found.

    Attributes:
        objects: whether there is any object.
        whole: whether the first one is complete and could be read.
        value: the value of the first known key of the last object that has one; `None` without one.
        key: that key.
    """

    objects: bool
    whole: bool = False
    value: Any = None
    key: str = ""


def find_value(text: str, keys: Collection[str]) -> Found:
    """Look for an object with one of these keys.

    Single quotes, trailing commas and keys without quotes are forgiven. What is cut off is not completed: a number at
    the end of half an object may be half a number.

    Args:
        text: the answer, possibly with words or fences around the object.
        keys: keys that may hold what is looked for, best first.
    """
    if "{" not in text or not _OBJECT.search(text):
        return Found(objects=False)
    result = Found(objects=True)
    for found in _objects(text):
        result = Found(True, True, result.value, result.key)
        hit = _lookup(found, keys)
        if hit is not None:
            result = Found(True, True, hit[1], hit[0])
    return result


def _objects(text: str) -> Iterator[dict[str, Any]]:
    position, tried = text.find("{"), 0
    while position >= 0 and tried < _MAX_OBJECTS:
        tried += 1
        read = _read(text, position)
        if read is None:
            position = text.find("{", position + 1)
            continue
        yield read[0]
        position = text.find("{", read[1])


def _read(text: str, position: int) -> tuple[dict[str, Any], int] | None:
    try:
        value, end = _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError):
        pass
    else:
        return value, end
    close = text.find("}", position)
    if close < 0:
        return None
    mended = _TRAILING_COMMA.sub(r"\1", text[position : close + 1].replace("\n", " "))
    mended = _BARE_KEY.sub(r'\1"\2"\3', _SINGLE.sub(_requoted, mended))
    try:
        value = json.loads(mended)
    except (ValueError, RecursionError):
        return None
    return value, close + 1


def _requoted(match: re.Match[str]) -> str:
    return json.dumps(match[1].replace("\\'", "'"), ensure_ascii=False)


def _lookup(found: dict[str, Any], keys: Collection[str]) -> tuple[str, Any] | None:
    folded = {str(key).strip().lower().replace(" ", "_").replace("-", "_"): value for key, value in found.items()}
    for key in keys:
        if folded.get(key) is not None:
            value = folded[key]
            if isinstance(value, dict):
                return _lookup(value, keys)
            if isinstance(value, list):
                return (key, value[0]) if len(value) == 1 else None
            return key, value
    for value in found.values():
        if isinstance(value, dict):
            inner = _lookup(value, keys)
            if inner is not None:
                return inner
    return None
