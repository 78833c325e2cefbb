"""Reading a model's replies, and counting how they could be read."""

from __future__ import annotations

import math
from typing import Any, TypeVar

from llm_coop_envs.interface.question import Number, Question
from llm_coop_envs.policies.llm.chat import ChatReply
from llm_coop_envs.policies.llm.parsing import AMBIGUOUS, EMPTY, ILLEGAL, REFUSED, UNREADABLE, Reading
from llm_coop_envs.policies.llm.parsing.tokens import INVISIBLE, TEMPLATE_TOKENS, TOO_LONG
from llm_coop_envs.policies.llm.playing.answer_counts import CallCounts
from llm_coop_envs.policies.llm.playing.answer_readers import Reader

T = TypeVar("T")


def read_reply(reader: Reader[T], reply: ChatReply, counts: CallCounts) -> Reading[T]:
    """Read a reply, and count what it was like."""
    is_cut = reply.finish_reason == "length"
    is_refused = reply.finish_reason == "content_filter" or (bool(reply.refusal) and not reply.text.strip())
    counts.truncated += is_cut
    return read_and_count(reader, reply.text, counts, truncated=is_cut, refused=is_refused)


def read_and_count(
    reader: Reader[T], text: str, counts: CallCounts, *, truncated: bool = False, refused: bool = False
) -> Reading[T]:
    """Read an answer's text, and count what it was like."""
    reading = reader.read(text, truncated=truncated, refused=refused)
    counts.empty += reading.status == EMPTY
    counts.refused += reading.status == REFUSED
    counts.unreadable += reading.status == UNREADABLE
    counts.ambiguous += reading.status == AMBIGUOUS
    counts.illegal += reading.status == ILLEGAL
    counts.too_long += TOO_LONG in reading.flags
    counts.cleaned += TEMPLATE_TOKENS in reading.flags or INVISIBLE in reading.flags
    return reading


def to_choice(question: Question, reading: Reading[Any], counts: CallCounts) -> Any:
    """Turn a reading into the choice to submit; `None` if no choice could be read, or a number is passed.

    A number with decimals where integers are asked for is rounded, halves up, and counted. A number outside the bounds
    is submitted all the same, so that the environment replaces and flags it.
    """
    value: Any = reading.value
    if value is None or not isinstance(question, Number):
        return value
    if question.integer and reading.ok and not float(value).is_integer():
        counts.rounded += 1
        value = math.floor(value + 0.5)
    return question.choice(value)
