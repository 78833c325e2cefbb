r"""Reading a number that was asked for.

The rules, in this order; the first that finds something decides:

1. `bare`: the answer is a number and nothing else.
2. `json`: an object with a known key; half an object is never completed.
3. `marked`: what stands in `<answer>`, `\boxed{}` or a similar mark.
4. `label`: what follows "final answer", else "answer".
5. `line`: a line that is a number and nothing else: the last line, else the first.
6. `said`: what follows "my price:", "I choose", "I will set ... at" and the like.
7. `opening`: a number that the answer begins with, before a comma, a colon, a dash or a reason.
8. `last_line`: the only number that may be meant in a short last line.
9. `only`: the only number in the answer that may be meant and is legal.
10. `word`: a number in words, where rules 1, 3, 4 or 5 would have taken digits.

If rules 4, 6 find several numbers the last one counts; if rule 5 finds two that differ the answer is ambiguous.
Numbers that name, count, bound or deny something are not candidates (`numerals`). A separator that can be read in two
ways is read in the way that is legal; if both are, a comma separates thousands and a point decimals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from llm_coop_envs.policies.llm.parsing.cleaning import MARK, characters, lines_of, plain, shorten, spoken
from llm_coop_envs.policies.llm.parsing.numberwords import spelled
from llm_coop_envs.policies.llm.parsing.numerals import UNIT, Numeral, numerals
from llm_coop_envs.policies.llm.parsing.objects import find_value
from llm_coop_envs.policies.llm.parsing.reading import (
    AMBIGUOUS,
    EMPTY,
    ILLEGAL,
    OK,
    REFUSED,
    TRUNCATED,
    UNREADABLE,
    Reading,
)
from llm_coop_envs.policies.llm.parsing.refusals import refuses

KEYS = (
    "number",
    "price",
    "choice",
    "answer",
    "final_answer",
    "value",
    "decision",
    "result",
    "guess",
    "bid",
    "zahl",
    "preis",
    "antwort",
)
_SHORT_LINE = 8
_GAP = 70


@dataclass(frozen=True, slots=True)
class NumberQuestion:
    """What was asked for.

    Attributes:
        low: the smallest legal number.
        high: the largest.
        allowed: the only legal numbers, if not all between these bounds are; an answer may be rounded to the decimals
            it is written with.
        whole: whether only whole numbers are legal. An answer with decimals is still read as what it is, but a
            separator that can be read in two ways is not read in the way that happens to be legal.
        key: the key of the answer in an object.
    """

    low: float
    high: float
    whole: bool = False
    allowed: tuple[float, ...] = ()
    key: str = "number"

    def legal(self, value: float) -> bool:
        """Whether a value may be answered."""
        if self.allowed:
            return self.nearest(value) is not None
        return self.low <= value <= self.high

    def nearest(self, value: float) -> float | None:
        """The allowed number that a value stands for, if there is exactly one."""
        text = repr(value)
        decimals = len(text.partition(".")[2]) if "e" not in text and not text.endswith(".0") else 0
        close = [number for number in self.allowed if abs(number - value) <= 0.5 * 10.0**-decimals * (1 + 1e-9)]
        exact = [number for number in close if math.isclose(number, value, rel_tol=1e-5)]
        if len(exact) == 1:
            return exact[0]
        return close[0] if len(close) == 1 and decimals else None


_BARE = re.compile(r"-?\d+(?:\.\d+)?")
_ADORNED = re.compile(rf"[\s\"'(\[{{~≈=:>*.]*\x01(?:\s+\x01)*\s*(?:{UNIT}|units?)?[\s\"')\]}}.,;!:*]*", re.IGNORECASE)
_LABELLED_LINE = re.compile(
    r"(?:the |my |your |our |meine?|der |die )?(?:final |new |next |own |chosen |selected |endgültige )?"
    r"(?:answer|price|number|choice|pick|guess|bid|decision|value|selection|offer|antwort|preis|zahl|wahl"
    r"|(?:line|zeile|round|runde) \d+)\s*(?:\([^()\n]{0,30}\))?"
    r"\s*(?:is|would be|will be|ist|=|:|->|→|-|\u2013|\u2014)*\s*",
    re.IGNORECASE,
)
_JUNCTION = r"\s*(?:\([^()\n]{0,40}\))?\s*(?:is|would be|will be|should be|ist|lautet|=|:|->|→|-|\u2013|\u2014)?\s*"
_FINAL = re.compile(
    r"\b(?:final|definitive|endgültige\w*)\s+(?:answer|choice|decision|price|number|pick|guess|response|value"
    r"|antwort|zahl|wahl"
    rf"|preis|entscheidung)\b{_JUNCTION}",
    re.IGNORECASE,
)
_ANSWER = re.compile(rf"\b(?:answer|antwort)\b(?!ed|ing|s\b){_JUNCTION}|^\s*A\s*:\s*", re.IGNORECASE | re.MULTILINE)
_NOUNS = r"(?:price|number|choice|pick|guess|bid|decision|selection|offer|value|preis|zahl|wahl|entscheidung)"
_KIND = r"(?:new\s+|next\s+|own\s+|chosen\s+|selected\s+|best\s+|optimal\s+|ideal\s+|neue\w*\s+)?"
_WHEN = (
    r"(?:\s+for\s+(?:this|the)\s+(?:current\s+|next\s+|new\s+)?round(?:\s+\d+)?|\s+for\s+round\s+\d+"
    r"|\s+(?:this|in this)\s+round)?\s*(?:\([^()\n]{0,40}\))?\s*"
)
_NOUN = re.compile(
    rf"\b(?:my|our|mein\w*)\s+{_KIND}{_NOUNS}\b{_WHEN}"
    r"(?:is|would be|will be|should be|of|at|to|ist|=|:|->|→|\u2013|\u2014|-(?=\s))\s*"
    rf"|(?:^\W*(?:the |so,? |therefore,? |thus,? |hence,? )?|\bthe\s+{_KIND}){_NOUNS}\b{_WHEN}"
    r"(?:is|would be|ist|=|:|->|→|\u2013|\u2014|-(?=\s))\s*"
    r"|^\W*(?:line|zeile) \d\s*:\s*",
    re.IGNORECASE | re.MULTILINE,
)
# Not in the past: what was chosen before is no answer.
_VERBS = (
    r"(?:choos(?:e|ing)|pick(?:ing)?|select(?:ing)?|nam(?:e|ing)|go(?:ing)? (?:with|for)|submit(?:ting)?"
    r"|opt(?:ing)? for"
    r"|settl(?:e|ing) (?:on|for|at)|stick(?:ing)? (?:with|to|at)|stay(?:ing)? (?:at|with)|keep(?:ing)?|charg(?:e|ing)"
    r"|set(?:ting)?|offer(?:ing)?|pric(?:e|ing)|guess(?:ing)?|bid(?:ding)?|play(?:ing)?|say|answer(?:ing)?|try(?:ing)?"
    r"|ask(?:ing)?|remain(?:ing)? at|lower(?:ing)?|rais(?:e|ing)|increas(?:e|ing)|reduc(?:e|ing)|decreas(?:e|ing)"
    r"|adjust(?:ing)?|maintain(?:ing)?|hold(?:ing)?|decid(?:e|ing)(?: on)?|propos(?:e|ing)|enter(?:ing)?|writ(?:e|ing)"
    r"|wähle|nehme|nenne|setze|verlange|bleibe bei|entscheide mich für)"
)
_SAID = re.compile(
    rf"\b(?:I|we|ich)(?:'ll|'d|'m| will| would| shall| am| should| now| therefore| thus| hence| also| am going to"
    rf"| will now| would like to| plan to| intend to| have decided to| decided to| want to| think I(?:'ll| will"
    rf"| should))*\s+{_VERBS}\b"
    rf"|\b(?:let me|let's|let us|going to|best to|decided to|so:?|therefore|thus|hence|i'll)\s+{_VERBS}\b"
    rf"|^\W*{_VERBS}\b"
    r"|\b(?:so|hence|thus|therefore|now|daher|somit)\b[,:]?\s*(?=[$€£]?\d)",
    re.IGNORECASE | re.MULTILINE,
)
_STOP = re.compile(r"[.!?;]\s|\n|\b(?:if|because|since|unless|but|while|although|when|weil|falls)\b", re.IGNORECASE)


# A list, or a second thought, does not open with its answer.
_OPENED = re.compile(
    r"\s*(?:[,:;]|[-\u2013\u2014](?=\s)|\b(?:because|since|as|weil|da)\b)(?!\s*(?:(?:or|and|oder|und|maybe|perhaps|no|wait"
    r"|then)\b|[$€£]?\d))"
    r"(?![^\n]*\b(?:or|oder)\s+(?:maybe\s+)?[$€£]?\d)",
    re.IGNORECASE,
)


def read_number(text: str, question: NumberQuestion, *, truncated: bool = False) -> Reading[float]:
    """Read the number a model answered.

    Args:
        text: the answer.
        question: what is legal.
        truncated: whether the provider cut the answer; a number at its very end is then not trusted.

    Returns:
        The reading; its value is inside the question's bounds, or one of its `allowed`, if the status is `"ok"`.
    """
    if not truncated and _BARE.fullmatch(text) and len(text) < 40:
        return _judge([(float(text),)], question, "bare")
    answer = characters(spoken(shorten(text)))
    if not answer:
        return Reading(TRUNCATED if truncated else EMPTY)
    found = _from_object(answer, question, truncated)
    if found is not None:
        return found
    cleaned = plain(answer)
    if not cleaned:
        return Reading(UNREADABLE)
    seen = numerals(cleaned)
    if truncated:
        # A number at the end of a cut answer may be half a number, and what was said before it may not be the answer.
        seen = [number for number in seen if number.end < len(cleaned.rstrip(" .*\"')"))]
    for rule in _SURE if truncated else _SURE + _GUESSED:
        reading = rule(cleaned, seen, question)
        if reading is not None:
            return reading
    if truncated:
        return Reading(TRUNCATED)
    word = _word(cleaned)
    if word is not None:
        return _judge([(word,)], question, "word")
    meant = {n.values[0] for n in seen if n.candidate}
    if len(meant) > 1:
        return Reading(AMBIGUOUS)
    if refuses(cleaned):
        return Reading(REFUSED)
    return Reading(ILLEGAL, meant.pop(), "only") if meant else Reading(UNREADABLE)


def _judge(found: Sequence[tuple[float, ...]], question: NumberQuestion, rule: str) -> Reading[float]:
    """A reading of the numbers a rule found: they must agree, and be legal in one way."""
    values: list[float] = []
    for ways in found:
        # A whole number has no decimal comma.
        possible = ways[:1] if question.whole else ways
        legal = [value for value in possible if question.legal(value)]
        value = legal[0] if legal else possible[0]
        if value not in values:
            values.append(value)
    if len(values) > 1:
        return Reading(AMBIGUOUS, rule=rule)
    value = values[0]
    if not question.legal(value):
        return Reading(ILLEGAL, value, rule)
    return Reading(OK, question.nearest(value) if question.allowed else value, rule)


def _from_object(answer: str, question: NumberQuestion, truncated: bool) -> Reading[float] | None:
    if "{" not in answer:
        return None
    found = find_value(answer, (question.key, *(key for key in KEYS if key != question.key)))
    if not found.objects:
        return None
    value = found.value
    if isinstance(value, bool):
        return Reading(UNREADABLE, rule="json")
    if isinstance(value, int | float):
        return _judge([(float(value),)], question, "json")
    if isinstance(value, str):
        inner = read_number(value, question)
        return Reading(inner.status, inner.value, "json") if inner.status != EMPTY else Reading(UNREADABLE, rule="json")
    if answer.lstrip("`json \n").startswith("{"):
        # Half an object, or one without a known key: numbers in it could be anything.
        return Reading(TRUNCATED if truncated and not found.whole else UNREADABLE, rule="json")
    return None


def _is_bare(line: str, numbers: Sequence[Numeral], start: int) -> Numeral | None:
    """The number that a line consists of, if it does."""
    label = _LABELLED_LINE.match(line)
    skipped = label.end() if label is not None else 0
    inside = [n for n in numbers if start + skipped <= n.start and n.end <= start + len(line)]
    if not inside or any(n.values != inside[0].values for n in inside):
        return None
    rest, end = "", skipped
    for number in inside:
        rest += f"{line[end : number.start - start]}\x01"
        end = number.end - start
    return inside[0] if _ADORNED.fullmatch(rest + line[end:]) else None


def _lines_with_starts(text: str) -> list[tuple[int, str]]:
    lines, start = [], 0
    for line in text.split("\n"):
        if line.strip():
            lines.append((start, line))
        start += len(line) + 1
    return lines


def _bare(text: str, numbers: Sequence[Numeral], question: NumberQuestion) -> Reading[float] | None:
    if "\n" in text:
        return None
    number = _is_bare(text, numbers, 0)
    return None if number is None else _judge([number.values], question, "bare")


def _marked(text: str, numbers: Sequence[Numeral], question: NumberQuestion) -> Reading[float] | None:
    if MARK not in text:
        return None
    start = text.rindex(MARK) + 1
    end = text.find("\n", start)
    line = text[start:] if end < 0 else text[start:end]
    number = _is_bare(line, numbers, start)
    if number is None:
        inside = [n for n in numbers if start <= n.start < start + len(line) and n.candidate]
        number = inside[0] if len(inside) == 1 else None
    if number is None:
        word = spelled(line)
        return None if word is None else _judge([(word,)], question, "marked")
    return _judge([number.values], question, "marked")


def _after(
    pattern: re.Pattern[str], text: str, numbers: Sequence[Numeral], question: NumberQuestion, rule: str, *, gap: int
) -> Reading[float] | None:
    """The number that follows the last label which is followed by one."""
    last: tuple[float, ...] | None = None
    for match in pattern.finditer(text):
        number = _following(text, match.end(), numbers, gap)
        if number is not None:
            last = number.values
    return None if last is None else _judge([last], question, rule)


def _following(text: str, start: int, numbers: Sequence[Numeral], gap: int) -> Numeral | None:
    for number in numbers:
        if number.start < start or not number.candidate:
            continue
        between = text[start : number.start]
        if len(between) > gap or (between.strip() and _STOP.search(between)):
            return None
        return number
    return None


def _final(text: str, numbers: Sequence[Numeral], question: NumberQuestion) -> Reading[float] | None:
    return _after(_FINAL, text, numbers, question, "label", gap=30)


def _answer(text: str, numbers: Sequence[Numeral], question: NumberQuestion) -> Reading[float] | None:
    return _after(_ANSWER, text, numbers, question, "label", gap=30)


def _line(text: str, numbers: Sequence[Numeral], question: NumberQuestion) -> Reading[float] | None:
    lines = _lines_with_starts(text)
    if len(lines) < 2:
        return None
    ends = [_is_bare(line, numbers, start) for start, line in (lines[0], lines[-1])]
    found = [number.values for number in ends if number is not None]
    return _judge(found, question, "line") if found else None


def _said(text: str, numbers: Sequence[Numeral], question: NumberQuestion) -> Reading[float] | None:
    found = _after(_NOUN, text, numbers, question, "said", gap=24)
    if found is not None and found.status != ILLEGAL:
        return found
    return _after(_SAID, text, numbers, question, "said", gap=_GAP) or found


def _opening(text: str, numbers: Sequence[Numeral], question: NumberQuestion) -> Reading[float] | None:
    first = next((n for n in numbers if n.candidate), None)
    if first is None or text[: first.start].strip(" \"'(") or not _OPENED.match(text, first.end):
        return None
    return _judge([first.values], question, "opening")


def _last_line(text: str, numbers: Sequence[Numeral], question: NumberQuestion) -> Reading[float] | None:
    lines = _lines_with_starts(text)
    if len(lines) < 2 or len(lines[-1][1].split()) > _SHORT_LINE:
        return None
    start = lines[-1][0]
    meant = [n.values for n in numbers if n.start >= start and n.candidate]
    if len(meant) != 1 or not any(question.legal(value) for value in meant[0]):
        return None
    return _judge(meant, question, "last_line")


def _only(text: str, numbers: Sequence[Numeral], question: NumberQuestion) -> Reading[float] | None:
    meant = [n.values for n in numbers if n.candidate and any(question.legal(value) for value in n.values)]
    if not meant:
        return None
    reading = _judge(meant, question, "only")
    return reading if reading.ok else None


def _word(text: str) -> float | None:
    """A number in words that is a line of its own, or follows a label."""
    lines = lines_of(text)
    for line in (lines[-1], lines[0]):
        label = _LABELLED_LINE.match(line)
        value = spelled(line[label.end() :] if label else line)
        if value is not None:
            return value
    for pattern in (_FINAL, _ANSWER, _NOUN, _SAID):
        for match in reversed(list(pattern.finditer(text))):
            value = spelled(text[match.end() :].split("\n")[0].split(". ")[0])
            if value is not None:
                return value
    return None


_SURE = (_bare, _marked, _final, _answer, _line, _said)
_GUESSED = (_opening, _last_line, _only)
