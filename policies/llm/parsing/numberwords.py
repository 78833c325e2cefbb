"""Numbers in English words, from zero to one hundred, with decimals."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SMALL = [
    *["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"],
    *["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"],
]
_ONES: dict[str, int] = {word: value for value, word in enumerate(_SMALL)}
_TENS: dict[str, int] = {
    "twenty": 20,
    "thirty": 30,
    "forty": 40,
    "fifty": 50,
    "sixty": 60,
    "seventy": 70,
    "eighty": 80,
    "ninety": 90,
}
_UNITS = {"dollars", "dollar", "euros", "euro", "credits", "points", "marks", "please"}


def spelled(text: str) -> float | None:
    """The number that a short text consists of, in words; `None` if it does not.

    Args:
        text: such as `"Thirty-three."` or `"seven point five dollars"`.
    """
    words = re.findall(r"[a-z]+", text.lower())
    if not words or len(words) > 7 or re.search(r"\d", text):
        return None
    while words and words[-1] in _UNITS:
        words.pop()
    whole, _, decimals = " ".join(words).partition(" point ")
    value = _whole(whole.split())
    if value is None:
        return None
    if not decimals:
        return float(value)
    digits = [_ONES.get(word, 10) for word in decimals.split()]
    if any(digit > 9 for digit in digits):
        return None
    return float(f"{value}.{''.join(map(str, digits))}")


def _whole(words: Sequence[str]) -> int | float | None:
    if list(words[-3:]) == ["and", "a", "half"]:
        value = _whole(words[:-3])
        return None if value is None else value + 0.5
    if " ".join(words) in ("one hundred", "a hundred", "hundred"):
        return 100
    if len(words) == 1:
        return _ONES.get(words[0], _TENS.get(words[0]))
    if len(words) == 2 and words[0] in _TENS and 1 <= _ONES.get(words[1], 0) <= 9:
        return _TENS[words[0]] + _ONES[words[1]]
    return None
