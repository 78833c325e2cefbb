"""Finding JSON objects in an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from llm_coop_envs.policies.llm.parsing.languages import translate_key
from llm_coop_envs.policies.llm.parsing.tokens import LONGEST, MAX_LENGTH, remove_template_tokens, shorten

#: The sign before a value that an object, a tag or a box marks as the answer.
MARK = "\ue001"


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's fields; a key that is given twice, with different values, has a list of them."""
    fields: dict[str, Any] = {}
    for key, value in pairs:
        fields[key] = [fields[key], value] if fields.get(key, value) != value else value
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_fields, strict=False)
# What is forgiven: "// a comment", "{7,}", "{'price': 7}", "{price: 7}", "{exit: left}"
_COMMENT = re.compile(r"//[^\n\"]{0,200}\n")
_TRAILING_COMMA = re.compile(r",\s?([}\]])")
_SINGLE = re.compile(r"(?<=[{,:\[ ])'((?:[^'\\\n]|\\.){0,1000})'(?= ?[:,}\]])")
_BARE_KEY = re.compile(r"([{,] ?)([A-Za-z_]\w{0,40})( ?:)")
_BARE_WORD = re.compile(r"(: ?)(?!true\b|false\b|null\b)([A-Za-z]\w{0,40})(?= ?[,}])")
# A brace that opens an object ("{price: 7", "{'"), not only a number in braces ("{7}").
_OPENING = re.compile(r"\{\s{0,20}(?:[\"'}]|\w{1,40}\s?:|\Z)")
# What is only shown: "for example: {"price": 7}"
_EXAMPLE = re.compile(r"\b(?:example|e\.g\.|for instance|sample|template)\W{0,6}\Z", re.IGNORECASE)
_MAX_TRIES = 20
_LONGEST_REPAIRED = 4_000
# Keys of the value inside an object that is itself the answer: {"price": {"amount": 7}}
_INNER = ("name", "value", "amount", "label", "id")
# "my_price", "final_answer": the part of a key before its name
_KEY_PREFIX = re.compile(r"^(?:my|final|chosen|new|selected|own|next|proposed|your|set|choose|submit)_(?=[a-z])")


# {"reason": "it is near", "exit": "left"}: no escapes, and nothing that could begin a thought or a tag.
_SIMPLE = re.compile(
    r'\s*\{\s*(?:"reason"\s*:\s*"[^"\\\x00-\x1f\x7f-\U0010ffff<\[({*]*"\s*,\s*)?"(\w+)"\s*:\s*'
    r'(?:"([A-Za-z]+)"|((?:0|[1-9]\d{0,14})(?:\.\d{1,15})?))\s*\}\s*'
)


@dataclass(frozen=True, slots=True)
class FoundObject:
    """A JSON object in a text.

    Attributes:
        start: the index at which it begins.
        end: the index behind it; the text's end if it is broken.
        fields: its fields; `None` if it is broken. What is cut off is not completed: a number at the end of half an
            object may be half a number.
    """

    start: int
    end: int
    fields: dict[str, Any] | None

    def value(self, keys: Collection[str]) -> Any:
        """The value of the first of these keys that it has, also in an object inside; `None` without one."""
        return None if self.fields is None else _lookup(self.fields, keys)


def find_objects(text: str) -> Iterator[FoundObject]:
    """Find the objects in a text, first to last; small faults are forgiven, see the patterns above."""
    position, broken = 0, -1
    for _ in range(_MAX_TRIES):
        opening = _OPENING.search(text, position)
        if opening is None:
            break
        start = opening.start()
        decoded = _decode(text, start)
        if decoded is None:
            position, broken = start + 1, start if broken < 0 else broken
        else:
            fields, position = decoded
            broken = -1
            yield FoundObject(start, position, fields)
    if broken >= 0:
        yield FoundObject(broken, len(text), None)


def find_value(text: str, keys: Collection[str]) -> Any:
    """The value of the last object that has one of these keys, best first; `None` without one."""
    values = (found_object.value(keys) for found_object in find_objects(shorten(text, LONGEST)))
    return next((value for value in reversed(list(values)) if value is not None), None)


def simple_value(text: str, key: str) -> str | float | None:
    """The value of an answer that is nothing but one simple object with this key, after a reason or not; else `None`.

    A short cut: the rules read the same value in thirty times the time.
    """
    if text[-1:] != "}" or len(text) > MAX_LENGTH:
        return None
    match = _SIMPLE.fullmatch(text)
    if match is None or match[1] != key:
        return None
    return match[2] or float(match[3])


def mark_objects(text: str, keys: Collection[str]) -> tuple[str, bool]:
    """Replace every object by a line with the value asked for, after `MARK`.

    Returns:
        The text; and whether its last object is broken.
    """
    if "{" not in text:
        return text, False
    parts, copied, is_broken = [], 0, False
    for found_object in find_objects(text):
        value, is_broken = found_object.value(keys), found_object.fields is None
        is_example = _EXAMPLE.search(text, max(copied, found_object.start - 30), found_object.start)
        line = "" if is_example or value is None or isinstance(value, bool) else f"{MARK}{_value_text(value)}"
        parts += [text[copied : found_object.start], "\n", line, "\n"]
        copied = found_object.end
    return "".join((*parts, text[copied:])), is_broken


def _value_text(value: Any) -> str:
    """A value as a text: two integers as a cell, other lists with "or" between their items."""
    if isinstance(value, list):
        items = list(map(_value_text, value))
        return f"({', '.join(items)})" if list(map(type, value)) == [int, int] else " or ".join(items)
    return " ".join(remove_template_tokens(str(value))[0].split())


def _decode(text: str, position: int) -> tuple[dict[str, Any], int] | None:
    """Decode the object at a position, after repairs if they are needed; its fields and its end, or `None`."""
    try:
        value, end = _DECODER.raw_decode(text, position)
    except (ValueError, RecursionError):
        close = text.find("}", position, position + _LONGEST_REPAIRED)
        if close < 0:
            return None
        repaired = " ".join(_COMMENT.sub("", text[position : close + 1]).split())
        repaired = _TRAILING_COMMA.sub(r"\1", _SINGLE.sub(_requoted, repaired))
        repaired = _BARE_WORD.sub(r'\1"\2"', _BARE_KEY.sub(r'\1"\2"\3', repaired))
        try:
            value, end = _DECODER.decode(repaired), close + 1
        except (ValueError, RecursionError):
            return None
    return value, end


def _requoted(match: re.Match[str]) -> str:
    return json.dumps(match[1].replace("\\'", "'"), ensure_ascii=False)


def _lookup(fields: dict[str, Any], keys: Collection[str]) -> Any:
    folded = {str(key).strip().lower().replace(" ", "_").replace("-", "_"): value for key, value in fields.items()}
    folded = {_KEY_PREFIX.sub("", translate_key(key)): value for key, value in folded.items()} | folded
    for key in keys:
        value = folded.get(key)
        if value is not None:
            return _lookup(value, (*keys, *_INNER)) if isinstance(value, dict) else value
    inner = (_lookup(value, keys) for value in fields.values() if isinstance(value, dict))
    return next((value for value in inner if value is not None), None)
