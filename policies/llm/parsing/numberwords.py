"""Numbers in words, from zero to one hundred, with decimals; in English, and in the words of some other languages."""

from __future__ import annotations

import re
from collections.abc import Sequence

_NAMES = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred
"""
_ENGLISH = _NAMES.split()
_ONES = {word: value for value, word in enumerate(_ENGLISH[:20])}
_TENS = {word: 10 * k for k, word in enumerate(_ENGLISH[20:28], 2)}
# From zero to twenty, then the tens to ninety and a hundred; a word that is also an English one is left out as "-".
_OTHERS = (
    "null - zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn "
    "achtzehn neunzehn zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert",
    "zéro - deux trois quatre cinq - sept huit neuf dix onze douze treize quatorze quinze - - - - vingt trente "
    "quarante cinquante soixante - - - -",
    "cero uno dos tres cuatro cinco seis siete ocho nueve diez - doce trece catorce quince dieciséis diecisiete "
    "dieciocho diecinueve veinte treinta cuarenta cincuenta sesenta setenta ochenta noventa cien",
    "ноль один два три четыре пять шесть семь восемь девять десять одиннадцать двенадцать тринадцать четырнадцать "
    "пятнадцать шестнадцать семнадцать восемнадцать девятнадцать двадцать тридцать сорок пятьдесят шестьдесят "
    "семьдесят восемьдесят девяносто сто",
)
#: Words for numbers in other languages, in English.
WORDS: dict[str, str] = {
    word: english
    for language in _OTHERS
    for word, english in zip(language.split(), _ENGLISH, strict=True)
    if word not in ("-", "null")
}
for _k, _word in enumerate(["uno", "dós", "trés", "cuatro", "cinco", "séis", "siete", "ocho", "nueve"], 1):
    WORDS["veinti" + _word] = f"twenty {_ENGLISH[_k]}"
for _unit in (*_OTHERS[0].split()[2:10], "ein"):
    for _ten in _OTHERS[0].split()[20:28]:
        WORDS[f"{_unit}und{_ten}"] = f"{WORDS[_ten]} {WORDS.get(_unit, 'one')}"

_ONE = "|".join(_ENGLISH[2:10])
_TEN = "|".join(_TENS)
_WORD = (
    rf"(?:(?:{_TEN})(?:[ -]| and )(?:one|{_ONE})|{_TEN}|(?:a |one )?hundred|{'|'.join(_ENGLISH[10:20])}|zero|{_ONE})"
)
_PARTS = {"half": 2, "halves": 2, "thirds": 3, "third": 3, "quarters": 4, "quarter": 4, "fifths": 5, "fifth": 5}
_PART = rf" and (?:a|one|{_ONE}) (?:{'|'.join(_PARTS)})"
_RUN = re.compile(
    rf"(?<![\w-])(?:(?P<whole>{_WORD}|\d{{1,3}}(?={_PART})|one(?= point|{_PART}| dollars?)"
    rf"|(?:(?<=: )|(?<![^\n]))one(?=[.!]?(?:\n|\Z)))"
    rf"(?P<rest> point(?: (?:zero|one|{_ONE})){{1,4}}|{_PART})?"
    rf"(?: dollars? and (?P<cents>{_WORD}) cents)?)(?![\w-]|[ -](?:thirds?|quarters?|halves|fifths?)\b)",
    re.IGNORECASE,
)
_DIGITS = "零一二三四五六七八九"
_CHINESE = re.compile(
    rf"(?<![\u3400-\u9fff])(?:(?P<ten>[{_DIGITS}]?)十)?(?P<one>[{_DIGITS}]?)(?:点(?P<rest>[{_DIGITS}]{{1,4}}))?(?![\u3400-\u9fff])"
)
#: What stands before a number that was written in words.
SPELLED = "\ue002"


def in_digits(text: str) -> str:
    """A text whose numbers in words are written with digits, after `SPELLED`; "one" only where it can be no pronoun."""
    if re.search(rf"[十{_DIGITS}]", text):
        text = _CHINESE.sub(_from_chinese, text)
    return _RUN.sub(_from_words, text)


def _from_words(match: re.Match[str]) -> str:
    value = spelled(match["whole"] + (match["rest"] or ""))
    cents = spelled(match["cents"]) if match["cents"] else 0
    if value is None or cents is None or cents >= 100:
        return match[0]
    return f"{SPELLED}{value + cents / 100:.10g}"


def _from_chinese(match: re.Match[str]) -> str:
    if not match[0]:
        return ""
    tens = 0 if match["ten"] is None else _DIGITS.find(match["ten"]) if match["ten"] else 1
    decimals = "".join(str(_DIGITS.index(sign)) for sign in match["rest"] or "")
    return f"{SPELLED}{10 * tens + max(_DIGITS.find(match['one'] or ' '), 0)}" + (f".{decimals}" if decimals else "")


def spelled(text: str) -> float | None:
    """The number that a short text consists of, in words; `None` if it does not.

    Args:
        text: such as `"Thirty-three."` or `"seven point five"`.
    """
    words = re.findall(r"\d+|[a-z]+", text.lower())
    if not words or len(words) > 7:
        return None
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
    if words[-1] in _PARTS and words[-3:-2] == ["and"]:
        value = int(words[0]) if words[0].isdigit() else _whole(words[:-3])
        return None if value is None else value + _ONES.get(words[-2], 1) / _PARTS[words[-1]]
    if " ".join(words) in ("one hundred", "a hundred", "hundred"):
        return 100
    if len(words) == 1:
        return _ONES.get(words[0], _TENS.get(words[0]))
    if len(words) == 3 and words[1] == "and":
        words = (words[0], words[2])
    if len(words) == 2 and words[0] in _TENS and 1 <= _ONES.get(words[1], 0) <= 9:
        return _TENS[words[0]] + _ONES[words[1]]
    return None
