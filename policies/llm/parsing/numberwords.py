"""Numbers in words, from zero to one hundred and with decimals, in English and some other languages."""

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
# "seven", "twenty-five", "seven point five", "seven and a half", "two dollars and fifty cents"
_RUN = re.compile(
    rf"(?<![\w-])(?:(?P<whole>{_WORD}|\d{{1,3}}(?={_PART})|one(?= point|{_PART}| dollars?)"
    rf"|(?:(?<=: )|(?<![^\n]))one(?=[.!]?(?:\n|\Z)))"
    rf"(?P<rest> point(?: (?:zero|one|{_ONE})){{1,4}}|{_PART})?"
    rf"(?: dollars? and (?P<cents>{_WORD}) cents)?)(?![\w-]|[ -](?:thirds?|quarters?|halves|fifths?)\b)",
    re.IGNORECASE,
)
_DIGITS = "零一二三四五六七八九"
# "七", "二十五", "七点五"
_CHINESE = re.compile(
    rf"(?<![\u3400-\u9fff])(?:(?P<ten>[{_DIGITS}]?)十)?(?P<one>[{_DIGITS}]?)(?:点(?P<rest>[{_DIGITS}]{{1,4}}))?(?![\u3400-\u9fff])"
)
#: The sign before a number that was written in words.
SPELLED = "\ue002"


def spelled_to_digits(text: str) -> str:
    """Write numbers in words with digits, after `SPELLED`; "one" only where it can be no pronoun."""
    if re.search(rf"[十{_DIGITS}]", text):
        text = _CHINESE.sub(_from_chinese, text)
    return _RUN.sub(_from_words, text)


def _from_words(match: re.Match[str]) -> str:
    value = parse_spelled(match["whole"] + (match["rest"] or ""))
    cents = parse_spelled(match["cents"]) if match["cents"] else 0
    if value is None or cents is None or cents >= 100:
        return match[0]
    return f"{SPELLED}{value + cents / 100:.10g}"


def _from_chinese(match: re.Match[str]) -> str:
    if not match[0]:
        return ""
    tens = 0 if match["ten"] is None else _DIGITS.find(match["ten"]) if match["ten"] else 1
    decimals = "".join(str(_DIGITS.index(sign)) for sign in match["rest"] or "")
    return f"{SPELLED}{10 * tens + max(_DIGITS.find(match['one'] or ' '), 0)}" + (f".{decimals}" if decimals else "")


def parse_spelled(text: str) -> float | None:
    """Parse a short text that is a number in words; `None` if it is none.

    Args:
        text: such as `"Thirty-three."` or `"seven point five"`.
    """
    parts = re.findall(r"\d+|[a-z]+", text.lower())
    if not parts or len(parts) > 7:
        return None
    whole, _, decimals = " ".join(parts).partition(" point ")
    value = _whole(whole.split())
    if value is None:
        return None
    if not decimals:
        return float(value)
    digits = [_ONES.get(word, 10) for word in decimals.split()]
    if any(digit > 9 for digit in digits):
        return None
    return float(f"{value}.{''.join(map(str, digits))}")


def _whole(parts: Sequence[str]) -> int | float | None:
    """The number without its decimals: "twenty five", "twenty and five", "seven and a half", "a hundred"."""
    if parts[-1] in _PARTS and parts[-3:-2] == ["and"]:
        value = int(parts[0]) if parts[0].isdigit() else _whole(parts[:-3])
        return None if value is None else value + _ONES.get(parts[-2], 1) / _PARTS[parts[-1]]
    if " ".join(parts) in ("one hundred", "a hundred", "hundred"):
        return 100
    if len(parts) == 1:
        return _ONES.get(parts[0], _TENS.get(parts[0]))
    if len(parts) == 3 and parts[1] == "and":
        parts = (parts[0], parts[2])
    if len(parts) == 2 and parts[0] in _TENS and 1 <= _ONES.get(parts[1], 0) <= 9:
        return _TENS[parts[0]] + _ONES[parts[1]]
    return None
