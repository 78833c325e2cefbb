"""Reading a number that was asked for.

An answer that is a number and nothing else is read at once. From others thoughts, markdown and the like are removed
(`cleaning`), objects become their value (`objects`), words of other languages are translated (`languages`); then every
number is found (`numerals`), and it is decided which is the answer (`deciding`).

A separator that can be read in two ways is read in the way that is legal; if both are, a comma separates thousands and
a point decimals.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.policies.llm.parsing.answer_reading import ILLEGAL, OK, Reading
from llm_coop_envs.policies.llm.parsing.candidates import NAME_NUMBER, Candidate, X
from llm_coop_envs.policies.llm.parsing.cleaning import prepare
from llm_coop_envs.policies.llm.parsing.deciding import decide
from llm_coop_envs.policies.llm.parsing.languages import translate
from llm_coop_envs.policies.llm.parsing.numberwords import spelled_to_digits
from llm_coop_envs.policies.llm.parsing.numerals import find_numerals, is_something_else, may_stand_alone
from llm_coop_envs.policies.llm.parsing.objects import simple_value

KEYS = (
    *("number", "price", "choice", "answer", "final_answer", "value", "decision", "result", "guess", "bid", "action"),
)


@dataclass(frozen=True, slots=True)
class NumberQuestion:
    """A question for a number.

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


# "7", "-7.5"
_BARE = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?")


def read_bare_numbers(texts: Sequence[str], question: NumberQuestion) -> NDArray[np.float64]:
    """Read many answers that are a legal number and nothing else, as `read_number` would; NaN stands for others."""
    numbers = np.array([float(text) if _BARE.fullmatch(text) else math.nan for text in texts], dtype=np.float64)
    if question.allowed:
        numbers[:] = math.nan
    numbers[~((numbers >= question.low) & (numbers <= question.high))] = math.nan
    return numbers


def read_number(text: str, question: NumberQuestion, *, truncated: bool = False) -> Reading[float]:
    """Read the number a model answered.

    Args:
        text: the answer.
        question: what is legal.
        truncated: whether the provider cut the answer; a number at its very end is then not trusted.

    Returns:
        The reading; its value is inside the question's bounds, or one of its `allowed`, if the status is `"ok"`.
    """
    if not truncated and _BARE.fullmatch(text):
        return _check_legal(float(text), question)
    value = simple_value(text, question.key)
    if not truncated and isinstance(value, float) and question.legal(value):
        return Reading(OK, _check_legal(value, question).value, "marked")
    keys = (question.key, *(key for key in KEYS if key != question.key))
    prepared, flags, status = prepare(text, keys, truncated)
    if status:
        return Reading(status, flags=flags)
    answer = spelled_to_digits(translate(prepared)).lower()
    text, candidates = _find_candidates(answer, question, truncated)
    reading = decide(
        text, candidates, is_something_else=is_something_else, may_stand_alone=may_stand_alone, truncated=truncated
    )
    if reading.value is None:
        legal = [candidate.value for candidate in candidates if candidate.is_legal and candidate.value is not None]
        named = frozenset(_check_legal(value, question).value for value in legal)
        return Reading(reading.status, flags=flags, named=named)
    checked = _check_legal(reading.value, question)
    return Reading(checked.status, checked.value, reading.rule, flags)


def _find_candidates(answer: str, question: NumberQuestion, truncated: bool) -> tuple[str, list[Candidate[float]]]:
    """Replace numbers by signs, for `decide`.

    Returns:
        The answer with `X` for each number that could be the answer, and `NAME_NUMBER` for each that only names
        something; and the former.
    """
    answer_end = len(answer.rstrip(" .*\"')"))
    parts: list[str] = []
    candidates: list[Candidate[float]] = []
    copied, length = 0, 0
    for number in find_numerals(answer):
        parts.append(answer[copied : number.start])
        length += len(parts[-1])
        copied = number.end
        # A number at the end of a cut answer may be half a number.
        if number.is_name or (truncated and number.end >= answer_end):
            parts.append(NAME_NUMBER)
        else:
            legal = [value for value in number.values[: 1 if question.whole else None] if question.legal(value)]
            value = legal[0] if legal else number.values[0]
            candidates.append(Candidate(length, value, bool(legal), needs_mark=number.is_spelled))
            parts.append(X)
        length += 1
    return "".join((*parts, answer[copied:])), candidates


def _check_legal(value: float, question: NumberQuestion) -> Reading[float]:
    if not question.legal(value):
        return Reading(ILLEGAL, value, "bare")
    return Reading(OK, question.nearest(value) if question.allowed else value, "bare")
