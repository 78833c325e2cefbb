"""Turn what a person typed into an action, or into a sentence that explains what is wrong with it."""

from __future__ import annotations

from llm_coop_envs.core.base_policy import Action
from llm_coop_envs.interface.moves import Parts, Several, Shares
from llm_coop_envs.interface.question import Number, Options, Question, Unusable, Words
from llm_coop_envs.util.digits import six_digits

__all__ = ["Unusable", "hint", "list_options", "read_answer"]


def hint(question: Question) -> str:
    """Describe in a few words, for a prompt, what to type."""
    if isinstance(question, Words):
        return f"your {question.name}, or nothing"
    if isinstance(question, Options):
        return f"your {question.name}"
    if isinstance(question, Several):
        between = ", the best first: " if question.ranked else ", with commas: "
        count, nothing = f"{question.fewest} to {question.limit}", "" if question.fewest else ", or nothing"
        return f"your {question.name}, {count}{between}{', '.join(list_options(question))}{nothing}"
    if isinstance(question, Shares):
        pattern = ", ".join(f"{option.name}: ..." for option in question.options)
        return f"your {question.name}, per cents that sum to 100: {pattern}"
    if isinstance(question, Parts):
        return "; ".join(_part_hint(question, part) for part in question.parts)
    assert isinstance(question, Number), "there are no other kinds of questions"
    every = question.integer and len(question.listed) == question.high - question.low + 1
    listed = f"one of the {len(question.listed)} listed, " if question.listed and not every else ""
    nothing = ", or nothing" if question.passing else ""
    return f"your {question.name}, {listed}{six_digits(question.low)} to {six_digits(question.high)}{nothing}"


def _part_hint(question: Parts, part: Question) -> str:
    """What to type for one part, and with which options of the others."""
    listing = f": {', '.join(list_options(part))}" if isinstance(part, Options) else ""
    only = " or ".join(option for name, option in question.when if name == part.name)
    return f"{hint(part)}{listing}" + (f" (only with {only})" if only else "")


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
    if isinstance(question, Number) and not question.passing:
        return {"choice": question.choice(question.read(typed))}
    return {"choice": question.take(typed)}


def list_options(question: Options | Several | Shares) -> list[str]:
    """The options as a person reads and types them, such as `"a (up)"`."""
    return [option.label for option in question.options]
