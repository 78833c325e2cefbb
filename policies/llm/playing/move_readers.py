"""Readers of the answers to questions for moves: numbers that may be passed, several options, shares, parts, words.

An answer is read as the move's JSON, or as the line that a person would type (`interface.moves`), behind a label such
as "Answer:", as the whole answer, or as its last line.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from llm_coop_envs.interface.moves import Parts, Several, Shares
from llm_coop_envs.interface.question import Number, Option, Options, Question, Unusable, Words, is_nothing
from llm_coop_envs.policies.llm.parsing import (
    EMPTY,
    ILLEGAL,
    OK,
    REFUSED,
    TRUNCATED,
    UNREADABLE,
    NumberQuestion,
    Reading,
    read_number,
)
from llm_coop_envs.policies.llm.parsing.cleaning import clean_words
from llm_coop_envs.policies.llm.parsing.objects import find_objects
from llm_coop_envs.policies.llm.parsing.refusals import is_refusal
from llm_coop_envs.policies.llm.playing.answer_readers import (
    NOTHING_LEGAL,
    CachingReader,
    MessageReader,
    NumberReader,
    Reader,
    number_reader,
    option_reader,
)

# "Answer: a, b", "Antwort: a", on one line or several; "my choice is a"
_LABEL = re.compile(
    r"\b(?:answer|antwort|decision|choice)\s*:|\b(?:my|our|meine?) (?:final )?\w+ (?:is|are|ist|sind)\b:?",
    re.IGNORECASE,
)
# "I pass.", "no bid", "I'd rather not bid this round", "Ich passe"
_PASS = re.compile(
    r"\W*(?:(?:i|we)(?:'ll| will| shall| would| choose to| decide to)?\s+)?(?:just\s+)?"
    r"(?:pass\b(?! \d)|abstain\b|sit this|skip\b|no (?:bid|offer|number|price|answer)\b|null\b|n/a\b"
    r"|(?:do not|don't|will not|won't|not) (?:bid|offer)\b|none\b|nothing\b|(?:ich )?passe\b|keine?s?\b|nichts\b)",
    re.IGNORECASE,
)
_TURN = re.compile(r"\b(?:but|instead|actually|no,|sondern|aber)\b[^\n]*\d", re.IGNORECASE)
_MARKS = re.compile(r"\*\*|__|`")


def _lines_of(words: str) -> Iterator[str]:
    """The places of an answer where the move may stand, best first."""
    labels = list(_LABEL.finditer(words))
    places = [words[labels[-1].end() :]] if labels else []
    for place in (*places, words, words.rpartition("\n")[2]):
        yield place.strip()
        yield place.strip().rstrip(".")


def _values_of(words: str, key: str) -> Iterator[Any]:
    """What an answer's objects give as the move, last to first: the value under the key, or the object itself."""
    for json_object in reversed(list(find_objects(words))):
        fields = json_object.fields
        if fields is not None:
            folded = {str(name).strip().lower(): value for name, value in fields.items()}
            yield folded.get(key.lower(), fields)


def _failure(words: str, truncated: bool, status: str = UNREADABLE) -> Reading[Any]:
    if truncated:
        return Reading(TRUNCATED)
    return Reading(EMPTY if not words else REFUSED if is_refusal(words) else status)


@dataclass(frozen=True, eq=False)
class PassingReader(NumberReader):
    """Reads a number that may be passed: no answer is one, and needs no repair."""

    def _read(self, text: str, truncated: bool) -> Reading[float]:
        words = _MARKS.sub("", clean_words(text)[0]).strip()
        if not truncated and not words and not text.strip():
            return Reading(OK, None, "passed")
        has_pass = any(
            value is None or (isinstance(value, str) and is_nothing(value)) for value in _values_of(words, self.key)
        )
        lines = [line for line in _lines_of(words) if line and not line.startswith("{")]
        is_said = any(is_nothing(line) or _PASS.match(line) for line in lines) and not _TURN.search(words)
        if not truncated and (has_pass or is_said):
            return Reading(OK, None, "passed")
        return read_number(text, self.question, truncated=truncated)

    @functools.cached_property
    def legal(self) -> Mapping[str, Any]:
        """The bounds, and that nothing need be answered."""
        return {**super().legal, "passing": True}

    def schema(self) -> dict[str, Any]:
        """A number between the bounds, or null."""
        schema = super().schema()
        return {**schema, "type": [schema["type"], "null"]}


@dataclass(frozen=True, eq=False)
class MoveAnswerReader(CachingReader[Any]):
    """Reads an answer to `Several`, `Shares` or `Parts`; the value is the move."""

    key: str
    question: Question
    kind: str

    def _read(self, text: str, truncated: bool) -> Reading[Any]:
        words = _MARKS.sub("", clean_words(text)[0]).strip()
        status = UNREADABLE
        for value in _values_of(words, self.key):
            try:
                return Reading(OK, self.question.take(value), "json")
            except Unusable:
                status = ILLEGAL
        for line in _lines_of(words) if words and "{" not in words else ():
            try:
                return Reading(OK, self.question.take(line), "line")
            except Unusable:
                continue
        return _failure(words, truncated, status)

    @functools.cached_property
    def legal(self) -> Mapping[str, Any]:
        """What is legal, as the prompts say it."""
        about = {name: value for name, value in legal_of(self.question).items() if name not in ("kind", "key")}
        return {**NOTHING_LEGAL, **about}

    def schema(self) -> dict[str, Any]:
        """The move as JSON."""
        return schema_of(self.question)

    def value_text(self, reading: Reading[Any]) -> str:
        """Nothing: a move that is not legal has no text."""
        return ""

    def is_quoted(self, reading: Reading[Any], repaired: Reading[Any], text: str) -> bool:
        """Whether the answer names every number of a repaired move; all and nothing can be said in words."""
        move: Any = repaired.value
        numbers: list[Any] = []
        if isinstance(self.question, Shares):
            numbers = [share for share in move.values() if 0 < share < 100]
        elif isinstance(self.question, Parts):
            numbers = [move.get(part.name) for part in self.question.parts if isinstance(part, Number)]
        texts = [re.escape(f"{number:.12g}") for number in numbers if number is not None]
        return all(re.search(rf"(?<![\d.]){number}(?!\d)", text) for number in texts)


def legal_of(question: Question) -> dict[str, Any]:
    """A question as data: its kind, key and what is legal, for prompts and scripted answers."""
    about: dict[str, Any] = {"key": question.name}
    if isinstance(question, Number):
        bounds = {"low": f"{question.low:.12g}", "high": f"{question.high:.12g}"}
        allowed = tuple(float(f"{number:.6g}") for _, number in question.listed)
        about |= {"kind": "number", **bounds, "integer": question.integer, "passing": question.passing}
        return about | {"allowed": allowed}
    if isinstance(question, Words):
        return about | {"kind": "words", "most": question.longest}
    if isinstance(question, Parts):
        conditions = {
            part.name: [option for name, option in question.when if name == part.name] for part in question.parts
        }
        parts = tuple(
            {**NOTHING_LEGAL, **legal_of(part), "only_with": conditions[part.name]} for part in question.parts
        )
        pattern = "; ".join(f"{part.name}: ..." for part in question.parts)
        return about | {"kind": "parts", "parts": parts, "pattern": pattern}
    assert isinstance(question, Options | Several | Shares), "there are no other kinds of questions"
    labels = tuple(
        f"{option.letter}) {_shown(option)}" if option.letter else _shown(option) for option in question.options
    )
    about |= {"kind": "option", "options": labels}
    if isinstance(question, Shares):
        about |= {"kind": "shares", "pattern": ", ".join(f"{_shown(option)}: ..." for option in question.options)}
    elif isinstance(question, Several):
        kind, between = ("ranking", " > ") if question.ranked else ("several", ", ")
        pattern = between.join(map(_shown, question.options))
        about |= {"kind": kind, "fewest": question.fewest, "most": question.limit, "pattern": pattern}
    return about


def schema_of(question: Question) -> dict[str, Any]:
    """The JSON schema of a move; what may be left out may be null."""
    if isinstance(question, Number):
        bounds = {"minimum": question.low, "maximum": question.high}
        kind = "integer" if question.integer else "number"
        return {"type": [kind, "null"] if question.passing else kind, **bounds}
    if isinstance(question, Words):
        return {"type": "string"}
    if isinstance(question, Parts):
        conditional = {name for name, _ in question.when}
        properties = {part.name: schema_of(part) for part in question.parts}
        for name in conditional:
            part_type = properties[name]["type"]
            properties[name]["type"] = part_type if isinstance(part_type, list) else [part_type, "null"]
        return _object(properties)
    assert isinstance(question, Options | Several | Shares), "there are no other kinds of questions"
    names = [option.letter or _shown(option) for option in question.options]
    if isinstance(question, Options):
        return {"type": "string", "enum": names}
    if isinstance(question, Several):
        items = {"type": "string", "enum": names}
        return {"type": "array", "items": items, "minItems": question.fewest, "maxItems": question.limit}
    return _object({_shown(option): {"type": "integer", "minimum": 0, "maximum": 100} for option in question.options})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _shown(option: Option) -> str:
    """An option's name in the prompt's language, which `_translated` has put last among its aliases."""
    return option.aliases[-1] if option.aliases else option.name


def _translated(question: Question, word: Callable[[str], str]) -> Any:
    """The same question, whose options also go by their label and their name in the prompt's language."""
    if isinstance(question, Parts):
        return replace(question, parts=tuple(_translated(part, word) for part in question.parts))
    if not isinstance(question, Options | Several | Shares):
        return question
    options = tuple(
        replace(option, aliases=(*option.aliases, f"{option.letter}) {word(option.name)}".lower(), word(option.name)))
        for option in question.options
    )
    return replace(question, options=options)


def reader_for(question: Question, word: Callable[[str], str], *, numbered: bool = False) -> Reader[Any]:
    """The reader of the answers to a question.

    Args:
        question: the question.
        word: an option's name in the prompt's language.
        numbered: whether options also go by the numbers that `step` takes, as in the environment's own texts.
    """
    if isinstance(question, Options):
        options = tuple((option.choice, option.letter, option.name, option.spellings) for option in question.options)
        return option_reader(question.name, options, question.known, word, numbered)
    if isinstance(question, Number) and not question.passing:
        return number_reader(question)
    return move_reader(question, word)


@functools.lru_cache(maxsize=4096)
def move_reader(question: Question, word: Callable[[str], str]) -> Reader[Any]:
    """The reader of the answers to a question for a move that is more than a number or an option."""
    if isinstance(question, Number):
        numbers = tuple(number for _, number in question.listed)
        low, high = (min(numbers), max(numbers)) if numbers else (question.low, question.high)
        whole = question.integer
        return PassingReader(question.name, NumberQuestion(low, high, whole=whole, allowed=numbers, key=question.name))
    if isinstance(question, Words):
        return MessageReader(question.name, "", question.longest)
    translated = _translated(question, word)
    return MoveAnswerReader(question.name, translated, legal_of(translated)["kind"])
