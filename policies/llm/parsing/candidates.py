"""Candidates: the numbers or options that an answer names, each with the sentence in which it stands."""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S")
T = TypeVar("T")
#: The sign that stands for a candidate in the text that rules read.
X = "\ue000"
#: The sign of a number that only names something, as in "round 3".
NAME_NUMBER = "#"
#: How strongly a candidate is marked as the answer.
UNMARKED, HINTED, SAID, MARKED = 0, 1, 2, 3
#: How many characters of its sentence rules see before and after a candidate.
MAX_PRECEDING, MAX_FOLLOWING = 90, 60
# An answer with more candidates is garbage; its first and last ones are looked at.
_MAX_CANDIDATES = 45
# "7... no, 8." ends at "..." and at the last point; "7.5" does not end a sentence.
_SENTENCE_END = re.compile(r"[.!?;]+(?=[\s\"')\]]|$)|\n|\.\.+")


class Sentence(NamedTuple):
    """The sentence of a candidate.

    Attributes:
        preceding: what stands before the candidate, at most `MAX_PRECEDING` characters.
        following: what stands after it, at most `MAX_FOLLOWING` characters.
        terminator: the sign that ends the sentence; empty at the text's end.
    """

    preceding: str
    following: str
    terminator: str


_NO_SENTENCE = Sentence("", "", "")


@dataclass(slots=True)
class Candidate(Generic[T]):
    """A number or an option in an answer that could be the answer.

    Attributes:
        position: the index of its `X` in the text.
        value: the number or option; `None` for an option that was not offered.
        is_legal: whether it may be answered.
        needs_mark: whether it counts only where it is marked.
        is_possible: whether it can be the answer, by its sentence.
        is_aside: whether it is said on a condition, for later, or as a reason: it counts only if nothing else does.
        strength: how strongly it is marked: `UNMARKED`, `HINTED`, `SAID` or `MARKED`.
        marked_by: the name of the rule that marked it, such as `"label"`.
        sentence: the sentence in which it stands.
    """

    position: int
    value: T | None
    is_legal: bool = True
    needs_mark: bool = False
    is_possible: bool = True
    is_aside: bool = False
    strength: int = UNMARKED
    marked_by: str = "only"
    sentence: Sentence = _NO_SENTENCE


def first_and_last(matches: Iterable[S]) -> list[S]:
    """List matches; where there are more than `_MAX_CANDIDATES`, only the first 15 and the last 30."""
    matches = list(matches)
    if len(matches) <= _MAX_CANDIDATES:
        return matches
    return matches[: _MAX_CANDIDATES // 3] + matches[_MAX_CANDIDATES // 3 - _MAX_CANDIDATES :]


def set_sentences(text: str, candidates: Sequence[Candidate[T]]) -> None:
    """Give each candidate its sentence."""
    ends = [match.start() for match in _SENTENCE_END.finditer(text)]
    for candidate in candidates:
        candidate.sentence = _sentence(text, candidate.position, ends)


def _sentence(text: str, position: int, ends: Sequence[int]) -> Sentence:
    k = bisect.bisect_left(ends, position)
    start = ends[k - 1] + 1 if k else 0
    end = ends[k] if k < len(ends) else len(text)
    preceding = text[max(start, position - MAX_PRECEDING) : position].lstrip(" .!?;")
    return Sentence(preceding, text[position + 1 : min(end, position + 1 + MAX_FOLLOWING)], text[end : end + 1])
