"""Readers of the answers to a question: a number, one of a few options, or a message."""

from __future__ import annotations

import functools
import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from llm_coop_envs.interface.question import Number
from llm_coop_envs.policies.llm.parsing import (
    AMBIGUOUS,
    Choice,
    NumberQuestion,
    OptionQuestion,
    Reading,
    read_number,
    read_option,
    read_text,
)
from llm_coop_envs.util.fixed_schema import FixedSchema

T = TypeVar("T")

# How long a text in an object may be. English has four characters per token, but a reason full of digits has one, and
# the choice comes after it. The object's keys, number and white space take tokens too, and so does each further text.
_CHARACTERS_PER_TOKEN = {"text": 2, "number": 1, "option": 1}
_TOKENS_AROUND, _TOKENS_FURTHER = 32, 12
_SHORTEST = 20
# Answers up to this length are cached: they come again and again, from many players or at temperature 0.
_SHORT = 200
# "exit number 2": the noun that an option's number stands behind; "2 = left": a number before the option's name
_NOUN = re.compile(
    r"\A[^\w{\n]*(?:exit|option|move|step|choice|ausgang|schritt|wahl)\b[^\w\n]*(?:number|no|nr|nummer)?\W*(?=\d)",
    re.IGNORECASE,
)
_NUMBER_LABEL = re.compile(r"\A\W*(\d{1,4}) ?[=:)\],-]")
#: What templates may show besides of moves that are more than a number or an option, where there is nothing to show.
MOVE_FACTS: Mapping[str, Any] = {"passing": False, "fewest": 0, "most": 0, "parts": (), "pattern": ""}
#: What is legal, where nothing is said of it.
NOTHING_LEGAL: Mapping[str, Any] = {
    **{"low": "", "high": "", "integer": False, "allowed": (), "options": ()},
    **MOVE_FACTS,
}


class Reader(ABC, Generic[T]):
    """Reads the answers to one question.

    Attributes:
        kind: `"number"`, `"option"`, `"text"`, or one of those of `move_readers`.
        key: the key of the answer where an object is asked for.
        repairable: whether asking what the answer meant can help.
    """

    kind: str
    key: str
    repairable = True

    @abstractmethod
    def read(self, text: str, *, truncated: bool, refused: bool) -> Reading[T]:
        """Read an answer."""

    @functools.cached_property
    def legal(self) -> Mapping[str, Any]:
        """What is legal, as the templates for repairs and second tries show it."""
        return NOTHING_LEGAL

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the answer's value."""

    def value_text(self, reading: Reading[T]) -> str:
        """The value as a text; empty if there is none."""
        return ""

    def is_quoted(self, reading: Reading[T], repaired: Reading[T], text: str) -> bool:
        """Whether an answer names what it is said to have meant: a value that it does not name is made up."""
        named = {*reading.named, reading.value} if reading.ok else reading.named
        value_pattern = re.escape(self.value_text(repaired)) if reading.ok else ""
        return repaired.value in named or (
            bool(value_pattern) and re.search(rf"(?<![\d.]){value_pattern}(?!\.?\d)", text) is not None
        )

    def object_schema(
        self, *, repair: bool = False, max_tokens: int | None = None, beside: Sequence[str] = ("reason",)
    ) -> FixedSchema:
        """The JSON schema of an answer: an object with the value, after the texts `beside` a choice.

        In a repair there are no texts, and the value may be null. Texts are bounded so that the object is complete
        within `max_tokens`.
        """
        return _object_schema(self, repair, max_tokens, tuple(beside))


@functools.lru_cache(maxsize=1 << 10)
def _object_schema(reader: Reader[Any], repair: bool, max_tokens: int | None, beside: tuple[str, ...]) -> FixedSchema:
    value = reader.schema()
    text: dict[str, Any] = {"type": "string"}
    if max_tokens is not None:
        texts = 1 if reader.kind == "text" else max(1, len(beside))
        text_tokens = max_tokens - _TOKENS_AROUND - _TOKENS_FURTHER * (texts - 1)
        text["maxLength"] = max(_SHORTEST // texts, _CHARACTERS_PER_TOKEN.get(reader.kind, 1) * text_tokens // texts)
    if reader.kind == "text":
        value = {**text, **value}
    if repair:
        value["type"] = value["type"] if isinstance(value["type"], list) else [value["type"], "null"]
        if "enum" in value:
            value["enum"] = [*value["enum"], None]
    properties: dict[str, Any] = {} if repair or reader.kind == "text" else dict.fromkeys(beside, text)
    properties[reader.key] = value
    schema = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return _shared_schema(json.dumps(schema))


@functools.lru_cache(maxsize=1 << 10)
def _shared_schema(text: str) -> FixedSchema:
    """The schema that a text writes: of many questions whose options go by the same letters it is one object."""
    return FixedSchema(json.loads(text))


class CachingReader(Reader[T]):
    """Reads a short answer once. Readers are equal only if identical; `reader_for` returns the same one again."""

    def read(self, text: str, *, truncated: bool, refused: bool) -> Reading[T]:
        """Read an answer."""
        if refused:
            return Reading("refused")
        return _cached_read(self, text, truncated) if len(text) <= _SHORT else self._read(text, truncated)

    @abstractmethod
    def _read(self, text: str, truncated: bool) -> Reading[T]:
        """Read an answer that the provider does not call a refusal."""


@functools.lru_cache(maxsize=1 << 14)
def _cached_read(reader: CachingReader[T], text: str, truncated: bool) -> Reading[T]:
    return reader._read(text, truncated)


@dataclass(frozen=True, eq=False)
class NumberReader(CachingReader[float]):
    """Reads a number."""

    key: str
    question: NumberQuestion
    kind = "number"

    def _read(self, text: str, truncated: bool) -> Reading[float]:
        return read_number(text, self.question, truncated=truncated)

    @functools.cached_property
    def legal(self) -> Mapping[str, Any]:
        """The bounds, as the prompts write them."""
        question = self.question
        bounds = {"low": f"{question.low:.12g}", "high": f"{question.high:.12g}"}
        return {**NOTHING_LEGAL, **bounds, "integer": question.whole, "allowed": question.allowed}

    def schema(self) -> dict[str, Any]:
        """A number between the bounds."""
        question = self.question
        kind = int if question.whole else float
        bounds = {"minimum": question.low, "maximum": question.high}
        finite = {name: kind(bound) for name, bound in bounds.items() if math.isfinite(bound)}
        return {"type": "integer" if question.whole else "number", **finite}

    def value_text(self, reading: Reading[float]) -> str:
        """The number as it would be written."""
        return "" if reading.value is None else f"{reading.value:.12g}"


@dataclass(frozen=True, eq=False)
class OptionReader(CachingReader[int]):
    """Reads one of a few options; the value is the option's choice."""

    key: str
    question: OptionQuestion
    labels: tuple[str, ...]
    numbered: bool = False
    kind = "option"

    def _read(self, text: str, truncated: bool) -> Reading[int]:
        reading = read_option(text, self.question, truncated=truncated)
        if not self.numbered:
            return reading
        if reading.ok:
            # "2 = left" where 1 is left names two options; the 2 in "left, 2 cells away" only stands beside one.
            label = _NUMBER_LABEL.match(text)
            is_another = label is not None and int(label[1]) != reading.value
            return replace(reading, status=AMBIGUOUS, value=None) if is_another else reading
        number = read_number(_NOUN.sub("", text), self._numbers, truncated=truncated)
        if number.value is None:
            return reading
        value = int(number.value) if number.ok else None
        named = frozenset(int(candidate) for candidate in number.named)
        return Reading(number.status, value, number.rule, number.flags, named)

    @functools.cached_property
    def _numbers(self) -> NumberQuestion:
        """The options' numbers, as a question of its own."""
        numbers = tuple(float(choice.value) for choice in self.question.choices)
        return NumberQuestion(min(numbers), max(numbers), whole=True, allowed=numbers, key=self.key)

    @functools.cached_property
    def legal(self) -> Mapping[str, Any]:
        """The options, as the prompts list them."""
        return {**NOTHING_LEGAL, "options": self.labels}

    def schema(self) -> dict[str, Any]:
        """One of the letters, or of the names."""
        return {"type": "string", "enum": [choice.letter or choice.names[0] for choice in self.question.choices]}


@dataclass(frozen=True)
class MessageReader(Reader[str]):
    """Reads a message or another text."""

    key: str
    speaker: str
    longest: int = 0
    kind = "text"
    repairable = False

    def read(self, text: str, *, truncated: bool, refused: bool) -> Reading[str]:
        """Read an answer."""
        return read_text(text, key=self.key, speaker=self.speaker, truncated=truncated, refused=refused)

    @functools.cached_property
    def legal(self) -> Mapping[str, Any]:
        """How long it may be, where it is a move."""
        return {**NOTHING_LEGAL, "most": self.longest}

    def schema(self) -> dict[str, Any]:
        """A text."""
        return {"type": "string"}


@functools.lru_cache(maxsize=4096)  # few questions come back again and again
def number_reader(question: Number) -> NumberReader:
    """The reader of a number that may not be passed."""
    # Answers name the six digits that texts show.
    allowed = tuple(float(f"{number:.6g}") for _, number in question.listed)
    low, high = (min(allowed), max(allowed)) if allowed else (question.low, question.high)
    whole = question.integer
    return NumberReader(question.name, NumberQuestion(low, high, whole=whole, allowed=allowed, key=question.name))


@functools.lru_cache(maxsize=4096)
def option_reader(
    key: str,
    options: tuple[tuple[int, str, str, tuple[str, ...]], ...],
    all_names: tuple[str, ...],
    word: Callable[[str], str],
    numbered: bool,
) -> OptionReader:
    """The reader of an option; `options` are (choice, letter, name, spellings)."""

    def spellings(name: str, aliases: tuple[str, ...] = ()) -> tuple[str, ...]:
        # Aliases of one or two letters are for keyboards: in prose they are something else.
        longer = [alias for alias in aliases if len(alias) > 2]
        return tuple(dict.fromkeys((word(name), name, name.replace(" and ", " "), *longer)))

    choices = tuple(Choice(choice, spellings(name, aliases), letter) for choice, letter, name, aliases in options)
    labels = tuple(f"{letter}) {word(name)}" if letter else word(name) for _, letter, name, _ in options)
    every = tuple(spelling for name in all_names for spelling in spellings(name))
    return OptionReader(key, OptionQuestion(choices, every, key=key), labels, numbered)
