"""Numbers in English words, from zero to one hundred, with decimals."""

from __future__ import annotations

import re

_ONES = dict(
    zip(
        (
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
            "seventeen eighteen nineteen"
        ).split(),
        range(20),
        strict=True,
    )
)
_TENS = dict(zip("twenty thirty forty fifty sixty seventy eighty ninety".split(), range(20, 100, 10), strict=True))
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
    if len(digits) == 1 and 10 <= digits[0]:
        return None
    if any(digit > 9 for digit in digits):
        return None
    return float(f"{value}.{''.join(map(str, digits))}")


def _whole(words: list[str]) -> int | float | None:
    if words[-3:] == ["and", "a", "half"]:
        value = _whole(words[:-3])
        return None if value is None else value + 0.5
    if words in (["one", "hundred"], ["a", "hundred"], ["hundred"]):
        return 100
    if len(words) == 1:
        return _ONES.get(words[0], _TENS.get(words[0]))
    if len(words) == 2 and words[0] in _TENS and 1 <= _ONES.get(words[1], 0) <= 9:
        return _TENS[words[0]] + _ONES[words[1]]
    return None
