"""Reading a number that was asked for.

An answer that is a number and nothing else is read at once. In others thoughts, markdown and the like are taken away
(`cleaning`), objects become their value (`objects`), words of other languages English ones (`languages`); then every
number is found (`numerals`), and it is decided which is meant (`deciding`).

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

from llm_coop_envs.policies.llm.parsing.cleaning import prepared
from llm_coop_envs.policies.llm.parsing.deciding import decide
from llm_coop_envs.policies.llm.parsing.judging import NAMED, Candidate, X
from llm_coop_envs.policies.llm.parsing.languages import english
from llm_coop_envs.policies.llm.parsing.numberwords import in_digits
from llm_coop_envs.policies.llm.parsing.numerals import is_something_else, numerals, stands_alone
from llm_coop_envs.policies.llm.parsing.objects import simple_value
from llm_coop_envs.policies.llm.parsing.reading import ILLEGAL, OK, Reading

KEYS = (
    *("number", "price", "choice", "answer", "final_answer", "value", "decision", "result", "guess", "bid", "action"),
)


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


_BARE = re.compile(r"-?\d{1,30}(?:\.\d{1,30})?")


def bare_numbers(texts: Sequence[str], question: NumberQuestion) -> NDArray[np.float64]:
    """The numbers of answers that are a legal number and nothing else, as `read_number` reads them; NaN for others."""
    plain = [float(text) if _BARE.fullmatch(text) else math.nan for text in texts]
    numbers = np.array(plain, dtype=np.float64)
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
        return _judged(float(text), question)
    value = simple_value(text, question.key)
    if not truncated and isinstance(value, float) and question.legal(value):
        return Reading(OK, _judged(value, question).value, "marked")
    ready, flags, status = prepared(text, (question.key, *(key for key in KEYS if key != question.key)), truncated)
    if status:
        return Reading(status, flags=flags)
    answer = in_digits(english(ready)).lower()
    last = len(answer.rstrip(" .*\"')"))
    parts, candidates, at, length = [], [], 0, 0
    for number in numerals(answer):
        parts.append(answer[at : number.start])
        length += len(parts[-1])
        at = number.end
        # A number at the end of a cut answer may be half a number.
        if number.named or (truncated and number.end >= last):
            parts.append(NAMED)
        else:
            legal = [value for value in number.values[: 1 if question.whole else None] if question.legal(value)]
            value = legal[0] if legal else number.values[0]
            candidates.append(Candidate(length, value, bool(legal), number.spelled))
            parts.append(X)
        length += 1
    skeleton = "".join((*parts, answer[at:]))
    reading = decide(skeleton, candidates, excluded=is_something_else, loose=stands_alone, truncated=truncated)
    if reading.value is None:
        legal = [one.value for one in candidates if one.legal and one.value is not None]
        named = frozenset(_judged(value, question).value for value in legal)
        return Reading(reading.status, flags=flags, named=named)
    judged = _judged(reading.value, question)
    return Reading(judged.status, judged.value, reading.rule, flags)


def _judged(value: float, question: NumberQuestion) -> Reading[float]:
    if not question.legal(value):
        return Reading(ILLEGAL, value, "bare")
    return Reading(OK, question.nearest(value) if question.allowed else value, "bare")
