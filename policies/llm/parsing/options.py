"""Reading one of a few options that was asked for: an exit, or a lettered move.

An option goes by its letter, its names (directions in either order, with "wards" or in other languages too) and, if one
of its names is one, its cell. Letter, name and cell beside each other are one candidate; if they contradict each other
it is ambiguous. A letter is only read where it is set apart: "a" and "I" are words. An option that is known and not
offered is illegal. Which candidate is the answer is decided as for numbers (`deciding`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from llm_coop_envs.policies.llm.parsing.answer_reading import AMBIGUOUS, ILLEGAL, OK, Reading
from llm_coop_envs.policies.llm.parsing.candidates import Candidate, X
from llm_coop_envs.policies.llm.parsing.cleaning import prepare
from llm_coop_envs.policies.llm.parsing.deciding import decide
from llm_coop_envs.policies.llm.parsing.languages import translate
from llm_coop_envs.policies.llm.parsing.objects import simple_value
from llm_coop_envs.policies.llm.parsing.option_mentions import (
    Mention,
    find_mentions,
    merge_mentions,
    unify_directions,
)
from llm_coop_envs.policies.llm.parsing.option_names import CONTRADICTION, OptionQuestion, names_for
from llm_coop_envs.policies.llm.parsing.unmarked import is_only_mentioned

KEYS = (
    "exit",
    "move",
    "choice",
    "option",
    "answer",
    "final_answer",
    "letter",
    "decision",
    "direction",
    "action",
    "value",
)

# "exit (12 m away)": a distance beside the only candidate
_DISTANCE = re.compile(r"\([^()\n]{0,40}\d[^()\n]{0,40}\)")
# Where one comes from, and where something else is: "from X", "i stand at X", "the wall is to the X"
_FROM = re.compile(
    r"\b(?:from|(?:am|i'm|was|stand|standing|currently) at"
    r"|\b(?:exit|door|target|it|wall|fire|smoke|crowd|obstacle|queue) (?:cell )?(?:is|lies) (?:to|at|on|in|down"
    r"|towards?)) (?:the |my )?$"
)
# Where the exit is said to be is not yet where one goes: "the exit is to my X"
_AT_EXIT = re.compile(r"\b(?:the|an?) (?:exit|door|way out|goal|target) (?:is|lies) (?:[\w']+ ){0,3}$")


def read_option(text: str, question: OptionQuestion, *, truncated: bool = False) -> Reading[int]:
    """Read the option a model answered.

    Args:
        text: the answer.
        question: the options.
        truncated: whether the provider cut the answer.

    Returns:
        The reading; its value is the option's `value`.
    """
    if not truncated:
        reading = _read_simple(text, question)
        if reading is not None:
            return reading
    keys = (question.key, *(key for key in KEYS if key != question.key))
    prepared, flags, status = prepare(text, keys, truncated)
    if status:
        return Reading(status, flags=flags)
    names = names_for(question)
    answer = unify_directions(translate(prepared, names.vocabulary).lower(), names.vocabulary)
    mentions = list(find_mentions(answer, names))
    named = frozenset(mention.value for mention in mentions if mention.value >= 0)
    skeleton, candidates = _find_candidates(answer, mentions)
    reading = decide(
        skeleton,
        candidates,
        is_something_else=lambda preceding, _: bool(
            _FROM.search(preceding) or (names.letters and _AT_EXIT.search(preceding))
        ),
        may_stand_alone=lambda preceding, following: not is_only_mentioned(preceding, following),
        truncated=truncated,
    )
    if reading.value == CONTRADICTION:
        return Reading(AMBIGUOUS, None, reading.rule, flags, named)
    if reading.status == ILLEGAL:
        return Reading(ILLEGAL, None, reading.rule, flags)
    return Reading(reading.status, reading.value, reading.rule, flags, named)


def _read_simple(text: str, question: OptionQuestion) -> Reading[int] | None:
    """Read a letter, or an object of the question's key alone, without the rules; `None` for all other answers."""
    if len(text) == 1:
        for choice in question.choices:
            if choice.letter == text:
                return Reading(OK, choice.value, "bare")
    name = simple_value(text, question.key)
    values = {choice.value for choice in question.choices if name and name in (choice.letter, *choice.names)}
    if len(values) == 1:
        return Reading(OK, next(iter(values)), "marked", named=frozenset(values))
    return None


def _find_candidates(answer: str, mentions: Sequence[Mention]) -> tuple[str, list[Candidate[int]]]:
    """Replace mentions of options by signs, for `decide`.

    Returns:
        The answer with an `X` for each candidate; and the candidates.
    """
    parts: list[str] = []
    candidates: list[Candidate[int]] = []
    copied = 0
    for start, end, value, needs_mark in merge_mentions(answer, mentions):
        parts += [answer[copied:start], X]
        candidates.append(Candidate(0, value, value >= 0, needs_mark))
        copied = end
    skeleton = "".join((*parts, answer[copied:]))
    if len(candidates) == 1:
        shorter = _DISTANCE.sub("", skeleton)
        skeleton = shorter if X in shorter else skeleton  # the option may stand where a distance would
    positions = (position for position, sign in enumerate(skeleton) if sign == X)
    for candidate, position in zip(candidates, positions, strict=True):
        candidate.position = position
    return skeleton, candidates
