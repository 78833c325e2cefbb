"""Turn what a person typed into an action, or into a sentence that explains what is wrong with it."""

from __future__ import annotations

import re

from llm_coop_envs.core.base_policy import Action
from llm_coop_envs.interface.question import ILLEGAL, Number, Options, Question, Words
from llm_coop_envs.interface.wording import six_digits

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
#: The most legal numbers that an error message lists.
_LONGEST_LISTING = 30


class Unusable(ValueError):
    """The typed text is no answer; the message explains why, and what would be one."""


def hint(question: Question) -> str:
    """Describe in a few words, for a prompt, what to type."""
    if isinstance(question, Words):
        return f"your {question.name}, or nothing"
    if isinstance(question, Options):
        return f"your {question.name}"
    every = question.integer and len(question.listed) == question.high - question.low + 1
    listed = f"one of the {len(question.listed)} listed, " if question.listed and not every else ""
    return f"your {question.name}, {listed}{six_digits(question.low)} to {six_digits(question.high)}"


def read_answer(question: Question, typed: str) -> Action:
    """Turn typed text into an action.

    Raises:
        Unusable: it is no answer to the question.
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
    """The options as a person reads and types them, such as `"a (up)"`."""
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
    if len(numbers) > _LONGEST_LISTING:
        numbers = [*numbers[: _LONGEST_LISTING - 1], "...", numbers[-1]]
    listing = ", ".join(numbers)
    raise Unusable(f"There is no {question.name} {text[:40]}; type one of {listing}.")
