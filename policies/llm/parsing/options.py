r"""Reading one of a few options that was asked for: an exit, or a lettered move.

The rules, in this order; the first that finds something decides:

1. `bare`: the answer is an option's letter or name and nothing else, or both.
2. `json`: an object with a known key.
3. `marked`: what stands in `<answer>`, `\boxed{}` or a similar mark.
4. `label`: what follows "final answer", else "answer".
5. `line`: the last line, else the first, if it is an option and nothing else, or starts with one set apart, such as
   `b) down: ...`.
6. `said`: what follows "I choose", "option", "my choice is" and the like.
7. `opening`: an option that the answer begins with, before a comma, a colon, a dash or a reason.
8. `only`: the only option named in the answer, if names rarely mean something else (exits, not moves).

A letter is only read where it is set apart: "a" and "I" are words. A letter and a name that contradict each other are
ambiguous. A letter that was not offered is illegal.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from llm_coop_envs.policies.llm.parsing.cleaning import MARK, characters, lines_of, plain, shorten, spoken
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

KEYS = ("exit", "move", "choice", "option", "answer", "final_answer", "letter", "decision", "direction", "value")


@dataclass(frozen=True, slots=True)
class Choice:
    """One option.

    Attributes:
        value: what to submit.
        names: the names it goes by.
        letter: its letter in the list; empty if it has none.
    """

    value: int
    names: tuple[str, ...]
    letter: str = ""


@dataclass(frozen=True)
class OptionQuestion:
    """What was asked for.

    Attributes:
        choices: the options.
        all_names: names of options that exist but may not be offered now; empty if all are offered.
        key: the key of the answer in an object.
        loose: whether a name anywhere in an answer may be the answer.
    """

    choices: tuple[Choice, ...]
    all_names: tuple[str, ...] = ()
    key: str = "choice"
    loose: bool = True


_FILLERS = re.compile(
    r"\b(?:the|exit|option|letter|move|choice|door|go|head|towards?|to|please|direction|one step|step|answer|der"
    r"|die|das|den"
    r"|ausgang|zum|gehe|nach|buchstabe|choose|i|is|my|cell|at|diagonal|diagonally)\b|[\"'().,;:!*\[\]<>{}=]",
    re.IGNORECASE,
)
_NOTE = re.compile(r"\([^()]*\d[^()]*\)")
_SET_APART = re.compile(
    r"^\W*(?:(?:option|letter|answer|choice|move|code)\W{1,3})?[(\[\"']?([a-zA-Z])[)\]\"']?(?:\s*[).:\]=]"
    r"|\s+[-\u2013\u2014]|\s*$|\s*[,;])\s*(.*)$",
    re.IGNORECASE,
)
_LABELS = (
    re.compile(
        r"\b(?:final|definitive|endgültige\w*)\s+(?:answer|choice|decision|option|exit|move|letter|antwort|wahl"
        r"|entscheidung)\b"
        r"\s*(?:is|would be|ist|=|:|->|→|-|\u2013|\u2014)*\s*",
        re.IGNORECASE,
    ),
    re.compile(
        r"\b(?:answer|antwort)\b(?!ed|ing|s\b)\s*(?:is|would be|ist|lautet|=|:|->|→|-|\u2013|\u2014)*\s*"
        r"|^\s*A\s*:\s+(?=\S+\s*$)",
        re.IGNORECASE | re.MULTILINE,
    ),
)
_SAID = re.compile(
    r"\b(?:I|we|ich)(?:'ll|'d|'m| will| would| shall| am| should| must| now| therefore| thus| going to| decide to"
    r"| need to"
    r"| want to| like to| have decided to| wähle)*\s+"
    r"(?:choos\w+|pick\w*|select\w*|go(?:ing)?(?: with| for| to| through| towards?)?|opt\w* for|tak\w+"
    r"|head\w*(?: for| to| towards?)?"
    r"|move|moving|step\w*|stay\w*|us\w+|prefer\w*|keep\w*|continu\w*|stick\w* (?:with|to)|leav\w*(?: through"
    r"| by)?|evacuat\w*|run\w*"
    r"|wähle|nehme|gehe|laufe|entscheide mich für)\b[\s:]*"
    r"|\b(?:my|the best|best|mein\w*|the)\s+(?:choice|option|exit|move|decision|pick|selection|wahl"
    r"|ausgang)\s*(?:is|would be|:|=|ist|->|→|-|\u2013|\u2014)\s*"
    r"|^\W*(?:choice|option|exit|move|decision|direction|target|wahl|ausgang|zug)\s*(?:is|:|=|->|→|\u2013|\u2014)\s*"
    r"|\b(?:therefore|so|thus|hence|let me|let's|should|best to|better to|will|going to)\s*,?\s*(?:choos\w+|pick"
    r"|select|go(?: with| for| to"
    r"| through| towards?)?|move|head(?: for| to| towards?)?|take|stay|use)\b[\s:]*"
    r"|^\W*(?:choose|pick|select|go(?: with| for| to| through| towards?)?|move|head(?: for| to| towards?)?|take"
    r"|stay|gehe|nimm)\b[\s:]*"
    r"|^\W*best\s*:\s*|^(?=[b-h]\s+(?:is|would|will|seems|looks|brings)\b)|\b(?:option|letter"
    r"|buchstabe)\s+(?=[\"'(\[]?[a-z]\b)",
    re.IGNORECASE | re.MULTILINE,
)
_DENIED = re.compile(
    r"\b(?:not|never|avoid\w*|instead of|rather than|than|away from|except|without|leav\w* behind|skip\w*|n't"
    r"|unlike|over"
    r"|against|between|nicht|statt|kein\w*|weder|als)\b(?:\s+(?:\w+\s+){0,3})?$",
    re.IGNORECASE,
)
# Uses of the published names that mean no direction.
_NOT_A_NAME_AFTER = re.compile(
    r"\s*(?:now|away|choice|decision|answer|thing|call|idea|track|time|moment|to do|behind|in the room|on the clock"
    r"|before|until|with (?:few|no|\d))\b",
    re.IGNORECASE,
)
_NOT_A_NAME_BEFORE = re.compile(
    r"\b(?:people|person|time|rounds?|minutes?|seconds?|nothing|little|is|are|was|were|has|have|had|what's|that's"
    r"|all|be|am"
    r"|been|only \w+|\d+|end|sum|give|giving|slow\w*|line|lined|catch|break)\s+$",
    re.IGNORECASE,
)
_OPENED = re.compile(
    r"(?:\s+exit)?\s*(?:[,:;]|[-\u2013\u2014](?=\s)|\b(?:because|since|as|weil|da)\b)"
    r"(?!\s*(?:or|oder|and|und|maybe|perhaps)\b)",
    re.IGNORECASE,
)
_END = re.compile(r"[.!?;\n]|\b(?:because|since|as it|as there|weil|which|where|but|although|while)\b", re.IGNORECASE)


def read_option(text: str, question: OptionQuestion, *, truncated: bool = False) -> Reading[int]:
    """Read the option a model answered.

    Args:
        text: the answer.
        question: the options.
        truncated: whether the provider cut the answer.

    Returns:
        The reading; its value is the option's `value`.
    """
    if len(text) == 1 and not truncated:
        for choice in question.choices:
            if choice.letter == text:
                return Reading(OK, choice.value, "bare")
    answer = characters(spoken(shorten(text)))
    if not answer:
        return Reading(TRUNCATED if truncated else EMPTY)
    found = find_value(answer, (question.key, *(key for key in KEYS if key != question.key)))
    if isinstance(found.value, str):
        inner = read_option(found.value, question) if found.value.strip() else Reading(UNREADABLE)
        return Reading(inner.status, inner.value, "json")
    cleaned = plain(answer)
    names = _names(question)
    if found.objects and answer.lstrip("`json \n").startswith("{"):
        return Reading(TRUNCATED if truncated and not found.whole else UNREADABLE, rule="json")
    lines = lines_of(cleaned)
    if not lines:
        return Reading(UNREADABLE)
    for rule in _SURE if truncated else _SURE + _GUESSED:
        reading = rule(cleaned, lines, question, names)
        if reading is not None:
            return reading
    if truncated:
        return Reading(TRUNCATED)
    return Reading(REFUSED if refuses(cleaned) else UNREADABLE)


@dataclass(frozen=True)
class _Names:
    """The names of a question's options, ready to be looked for."""

    by_letter: dict[str, int]
    by_name: dict[str, int]
    pattern: re.Pattern[str]


@functools.lru_cache(maxsize=4096)
def _names(question: OptionQuestion) -> _Names:
    by_name = {_key(name): choice.value for choice in question.choices for name in choice.names}
    every = {_key(name) for name in question.all_names} | set(by_name)
    spelled = sorted(every, key=lambda name: (-len(name), name))
    words = "|".join(re.escape(name).replace(r"\ ", r"[\s_-]*") for name in spelled) or r"(?!)"
    return _Names(
        {choice.letter.lower(): choice.value for choice in question.choices if choice.letter},
        by_name,
        re.compile(rf"(?<![\w-])(?:{words})(?!\w|-\w)", re.IGNORECASE),
    )


def _key(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name.strip().lower())


def _value(name: str, names: _Names) -> Reading[int]:
    value = names.by_name.get(_key(name))
    if value is None:
        joined = {key.replace(" ", ""): option for key, option in names.by_name.items()}
        value = joined.get(_key(name).replace(" ", ""))
    return Reading(ILLEGAL) if value is None else Reading(OK, value)


def _letter(letter: str, rest: str, names: _Names) -> Reading[int] | None:
    """A letter set apart, and what follows it."""
    if not names.by_letter:
        return None
    value = names.by_letter.get(letter.lower())
    named = names.pattern.match(_NOTE.sub("", rest).strip(" \"'(:-\u2013\u2014"))
    if value is None:
        return Reading(ILLEGAL)
    if named is not None and names.by_name.get(_key(named[0])) not in (value, None):
        return Reading(AMBIGUOUS)
    return Reading(OK, value)


def _exactly(text: str, names: _Names) -> Reading[int] | None:
    """An option, if a text is one and nothing else but words such as "the exit"."""
    text = _NOTE.sub(" ", text).strip()
    if not text:
        return None
    if names.by_letter:
        stripped = text.strip(" \"'().,;:!*[]<>{}=`")
        if len(stripped) == 1 and stripped.isalpha():
            return _letter(stripped, "", names)
        apart = _SET_APART.match(text)
        if apart is not None and len(apart[2].split()) <= 4:
            rest = _FILLERS.sub(" ", apart[2]).strip(" -\u2013\u2014")
            if not rest or names.pattern.fullmatch(rest):
                return _letter(apart[1], rest, names)
    found = list(names.pattern.finditer(text))
    if len({_key(match[0]) for match in found}) != 1:
        return None
    rest = text[: found[0].start()] + " " + text[found[-1].end() :]
    rest = re.sub(r"[\s\-\u2013\u2014]+", " ", _FILLERS.sub(" ", rest)).strip()
    if not rest:
        return _value(found[0][0], names)
    if len(rest) == 1 and rest.isalpha() and names.by_letter:
        return _letter(rest, found[0][0], names)
    return None


def _named(reading: Reading[int] | None, rule: str) -> Reading[int] | None:
    return None if reading is None else Reading(reading.status, reading.value, rule)


def _bare(text: str, lines: Sequence[str], question: OptionQuestion, names: _Names) -> Reading[int] | None:
    return _named(_exactly(lines[0], names), "bare") if len(lines) == 1 else None


def _marked(text: str, lines: Sequence[str], question: OptionQuestion, names: _Names) -> Reading[int] | None:
    marked = [line[1:] for line in text.split("\n") if line.startswith(MARK)]
    if not marked:
        return None
    return _named(_exactly(marked[-1], names) or _opening(marked[-1], names), "marked")


def _labelled(text: str, lines: Sequence[str], question: OptionQuestion, names: _Names) -> Reading[int] | None:
    for pattern in _LABELS:
        found: Reading[int] | None = None
        for match in pattern.finditer(text):
            found = _opening(text[match.end() :], names) or found
        if found is not None:
            return _named(found, "label")
    return None


def _opening(text: str, names: _Names) -> Reading[int] | None:
    """The option that a text begins with."""
    line = lines_of(text)[0] if text.strip() else ""
    sentence = re.split(r"(?<=[\w\"')])[.!?;]\s", line, maxsplit=1)[0]
    exact = _exactly(sentence, names)
    if exact is not None:
        return exact
    apart = _SET_APART.match(line)
    if apart is not None and names.by_letter:
        return _letter(apart[1], apart[2], names)
    return _first_named(line, names, 30)


def _first_named(text: str, names: _Names, gap: int) -> Reading[int] | None:
    match = names.pattern.search(text)
    if match is None or match.start() > gap or _END.search(text[: match.start()]):
        return None
    if not _is_meant(text, match):
        return None
    return _value(match[0], names)


def _is_meant(text: str, match: re.Match[str]) -> bool:
    before = text[max(0, match.start() - 40) : match.start()]
    after = text[match.end() : match.end() + 20]
    clause = re.split(r"[.,;:!?\n]", before)[-1]
    return not (_DENIED.search(clause) or _NOT_A_NAME_AFTER.match(after) or _NOT_A_NAME_BEFORE.search(clause))


def _line(text: str, lines: Sequence[str], question: OptionQuestion, names: _Names) -> Reading[int] | None:
    ends = [_exactly(line, names) for line in (lines[-1], lines[0])] if len(lines) > 1 else []
    found = [reading for reading in ends if reading is not None]
    if found:
        agree = all(reading == found[0] for reading in found)
        return _named(found[0], "line") if agree else Reading(AMBIGUOUS, rule="line")
    if names.by_letter:
        for line in (lines[-1], lines[0]):
            apart = _SET_APART.match(line)
            # "A." and "I," begin sentences; as answers they stand alone or before a bracket, a colon or an option's
            # name.
            if apart is not None and not (
                apart[1] in "AaI" and not names.pattern.match(apart[2].strip(" \"'(-\u2013\u2014"))
            ):
                return _named(_letter(apart[1], apart[2], names), "line")
    return None


def _said(text: str, lines: Sequence[str], question: OptionQuestion, names: _Names) -> Reading[int] | None:
    found: Reading[int] | None = None
    for match in _SAID.finditer(text):
        if _DENIED.search(re.split(r"[.,;:!?\n]", text[max(0, match.start() - 30) : match.end()])[-1].rstrip() + " "):
            continue
        rest = text[match.end() :].split("\n")[0]
        reading = None
        if names.by_letter:
            apart = re.match(
                r"(?:(?:option|letter|move|choice|step)\s+)?[\"'(\[]?([a-zA-Z])[\"')\]]?(?=$|[.,;:!?)]|\s+[-\u2013\u2014(]"
                r"|\s+(?:to|because|as|since|which|for|and|this|so|now|here|in order|is|would|will|brings|leads"
                r"|seems|looks)\b)",
                rest,
            )
            if apart is not None and not (
                apart[1] in "aI"
                and apart.end() < len(rest)
                and rest[apart.end()] == " "
                and "option" not in match[0].lower()
            ):
                reading = _letter(apart[1], "", names)
        if reading is None:
            # The verb itself may be the name, as in "I stay where I am".
            reading = _first_named(rest, names, 45) or _first_named(match[0], names, 45)
        found = reading or found
    return _named(found, "said")


def _opened(text: str, lines: Sequence[str], question: OptionQuestion, names: _Names) -> Reading[int] | None:
    line = lines[0].lstrip(" \"'(")
    match = names.pattern.match(line)
    if match is None or not question.loose or not _OPENED.match(line[match.end() :]):
        return None
    return _named(_value(match[0], names), "opening")


def _only(text: str, lines: Sequence[str], question: OptionQuestion, names: _Names) -> Reading[int] | None:
    if not question.loose:
        return None
    meant = {_key(match[0]) for match in names.pattern.finditer(text) if _is_meant(text, match)}
    if not meant:
        return None
    if len(meant) > 1:
        return Reading(AMBIGUOUS, rule="only")
    return _named(_value(meant.pop(), names), "only")


_SURE = (_bare, _marked, _labelled, _line, _said)
_GUESSED = (_opened, _only)
