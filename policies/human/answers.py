"""From what a person typed to an action, or to a sentence that says what is wrong with it."""

from __future__ import annotations

import re

from llm_coop_envs.interface.question import ILLEGAL, Number, Options, Question, Words
from llm_coop_envs.interface.wording import six_digits
from llm_coop_envs.policies.base import Action

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
#: So many listed numbers are named where one is missing.
_NAMED = 30


class Unusable(ValueError):
    """What was typed is no answer; the message says why and what would be one."""


def hint(question: Question) -> str:
    """What is to be typed, in a few words, for a prompt."""
    if isinstance(question, Words):
        return f"your {question.name}, or nothing"
    if isinstance(question, Options):
        return f"your {question.name}"
    every = question.integer and len(question.listed) == question.high - question.low + 1
    listed = f"one of the {len(question.listed)} listed, " if question.listed and not every else ""
    return f"your {question.name}, {listed}{six_digits(question.low)} to {six_digits(question.high)}"


def read_answer(question: Question, typed: str) -> Action:
    """The action that somebody typed.

    Raises:
        Unusable: it is none.
    """
    if isinstance(question, Words):
        message = typed.strip()
        if len(message) > question.longest:
            raise Unusable(
                f"That is {len(message)} characters; a {question.name} has at most {question.longest}. Shorten it."
            )
        return {"message": message}
    if isinstance(question, Options):
        option = question.find(typed)
        if option is None:
            text = " ".join(typed.lower().split())
            wrong = f"'{text[:40]}' is not possible now" if text else "Nothing was typed"
            raise Unusable(f"{wrong}; type one of {', '.join(list_options(question))}.")
        return {"choice": option.choice}
    return {"choice": _number(question, typed)}


def list_options(question: Options) -> list[str]:
    """The options as a person types and reads them, such as `"a (up)"`."""
    return [f"{option.letter or option.choice} ({option.name})" for option in question.options]


def _number(question: Number, typed: str) -> int | float:
    low, high = six_digits(question.low), six_digits(question.high)
    example = six_digits(question.listed[0][1] if question.listed else (question.low + question.high) / 2)
    text = typed.strip()
    if not text:
        raise Unusable(f"Nothing was typed; type a number such as {example}.")
    if _NUMBER.fullmatch(text) is None:
        raise Unusable(f"'{text[:40]}' is no number; type one such as {example}, decimals with a point.")
    value = float(text)
    if question.integer and not value.is_integer():
        raise Unusable(f"{value:g} is no whole number; type a whole number from {low} to {high}.")
    choice, inside = question.choice(value), question.low <= value <= question.high
    if choice != ILLEGAL if question.discrete else inside:
        return choice
    if not inside:
        raise Unusable(f"{six_digits(value)} is out of range; type a number from {low} to {high}.")
    numbers = [six_digits(number) for _, number in question.listed]
    known = ", ".join(numbers if len(numbers) <= _NAMED else [*numbers[: _NAMED - 1], "...", numbers[-1]])
    raise Unusable(f"There is no {question.name} {text[:40]}; type one of {known}.")
