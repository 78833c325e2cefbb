"""Finding JSON objects in an answer."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

from llm_coop_envs.policies.llm.parsing.languages import english_key
from llm_coop_envs.policies.llm.parsing.tokens import LONGEST, MAX_LENGTH, shorten, without_tokens

#: What stands before an answer that was marked as such.
MARK = "\ue001"


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object's fields; what is given twice and differs is a list."""
    fields: dict[str, Any] = {}
    for key, value in pairs:
        fields[key] = [fields[key], value] if fields.get(key, value) != value else value
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, strict=False)
_COMMENT = re.compile(r"//[^\n\"]{0,200}\n")
_TRAILING_COMMA = re.compile(r",\s?([}\]])")
_SINGLE = re.compile(r"(?<=[{,:\[ ])'((?:[^'\\\n]|\\.){0,1000})'(?= ?[:,}\]])")
_BARE_KEY = re.compile(r"([{,] ?)([A-Za-z_]\w{0,40})( ?:)")
_BARE_WORD = re.compile(r"(: ?)(?!true\b|false\b|null\b)([A-Za-z]\w{0,40})(?= ?[,}])")
# A brace that opens an object, and not only a number in braces.
_OPENING = re.compile(r"\{\s{0,20}(?:[\"'}]|\w{1,40}\s?:|\Z)")
# What is only shown, as in the words of the question.
_EXAMPLE = re.compile(r"\b(?:example|e\.g\.|for instance|sample|template)\W{0,6}\Z", re.IGNORECASE)
_MAX_TRIES = 20
_LONGEST_REPAIRED = 4_000
# Under which key the value stands in an object that is itself the answer.
_INNER = ("name", "value", "amount", "label", "id")
_OWN = re.compile(r"^(?:my|final|chosen|new|selected|own|next|proposed|your|set|choose|submit)_(?=[a-z])")


# An object of one text and one value that needs no care: no escapes, nothing that could begin a thought or a tag.
_SIMPLE = re.compile(
    r'\s*\{\s*(?:"reason"\s*:\s*"[^"\\\x00-\x1f\x7f-\U0010ffff<\[({*]*"\s*,\s*)?"(\w+)"\s*:\s*'
    r'(?:"([A-Za-z]+)"|((?:0|[1-9]\d{0,14})(?:\.\d{1,15})?))\s*\}\s*'
)


@dataclass(frozen=True, slots=True)
class Found:
    """An object in a text.

    Attributes:
        start: where it begins.
        end: where it ends; the text's end if it is broken.
        fields: what it holds; `None` if it is broken. What is cut off is not completed: a number at the end of half an
            object may be half a number.
    """

    start: int
    end: int
    fields: dict[str, Any] | None

    def value(self, keys: Collection[str]) -> Any:
        """What stands at the first of these keys that is there, also in an object inside; `None` without one."""
        return None if self.fields is None else _lookup(self.fields, keys)


def find_objects(text: str) -> Iterator[Found]:
    """The objects in a text, first to last; single quotes, trailing commas, comments and bare words are forgiven."""
    position, broken = 0, -1
    for _ in range(_MAX_TRIES):
        opening = _OPENING.search(text, position)
        if opening is None:
            break
        start = opening.start()
        read = _read(text, start)
        if read is None:
            position, broken = start + 1, start if broken < 0 else broken
        else:
            yield Found(start, read[1], read[0])
            position, broken = read[1], -1
    if broken >= 0:
        yield Found(broken, len(text), None)


def find_value(text: str, keys: Collection[str]) -> Any:
    """The value of the last object that has one of these keys, best first; `None` without one."""
    values = [value for found in find_objects(shorten(text, LONGEST)) if (value := found.value(keys)) is not None]
    return values[-1] if values else None


def simple_value(text: str, key: str) -> str | float | None:
    """The value in an answer that is nothing but one simple object with this key, after a reason or not; else `None`.

    What it gives is what the other ways find too, at a thirtieth of the time.
    """
    if text[-1:] != "}" or len(text) > MAX_LENGTH:
        return None
    match = _SIMPLE.fullmatch(text)
    if match is None or match[1] != key:
        return None
    return match[2] or float(match[3])


def marked(text: str, keys: Collection[str]) -> tuple[str, bool]:
    """A text in which every object is a line with the value asked for, after `MARK`; and whether one is broken."""
    if "{" not in text:
        return text, False
    parts, at, broken = [], 0, False
    for found in find_objects(text):
        value, broken = found.value(keys), found.fields is None
        shown = _EXAMPLE.search(text, max(at, found.start - 30), found.start)
        line = "" if shown or value is None or isinstance(value, bool) else f"{MARK}{_written(value)}"
        parts += [text[at : found.start], "\n", line, "\n"]
        at = found.end
    return "".join((*parts, text[at:])), broken


def _written(value: Any) -> str:
    if isinstance(value, list):
        words = list(map(_written, value))
        return f"({', '.join(words)})" if [type(one) for one in value] == [int, int] else " or ".join(words)
    return " ".join(without_tokens(str(value))[0].split())


def _read(text: str, position: int) -> tuple[dict[str, Any], int] | None:
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
    folded = {_OWN.sub("", english_key(key)): value for key, value in folded.items()} | folded
    for key in keys:
        value = folded.get(key)
        if value is not None:
            return _lookup(value, (*keys, *_INNER)) if isinstance(value, dict) else value
    inner = (_lookup(value, keys) for value in fields.values() if isinstance(value, dict))
    return next((value for value in inner if value is not None), None)
