"""What is asked for at a call, and how the answer is read: a number, one of a few options, or words."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from llm_coop_envs.policies.llm.parsing import (
    NumberQuestion,
    OptionQuestion,
    Reading,
    read_number,
    read_option,
    read_text,
)

T = TypeVar("T")


class Reader(ABC, Generic[T]):
    """Reads the answers to one question."""

    kind: str
    #: Whether a question what an answer meant can help.
    repairable = True

    @abstractmethod
    def read(self, text: str, *, truncated: bool, refused: bool) -> Reading[T]:
        """Read an answer."""

    @abstractmethod
    def words(self) -> dict[str, Any]:
        """What the templates for repair and for asking again are told about what is legal."""

    @abstractmethod
    def schema(self, key: str, *, optional: bool = False) -> dict[str, Any]:
        """The JSON schema of the answer's value."""

    def said(self, reading: Reading[T]) -> str:
        """What was answered, in words; empty if it cannot be said."""
        return "" if reading.value is None else str(reading.value)


@dataclass(frozen=True)
class NumberReader(Reader[float]):
    """A number is asked for."""

    question: NumberQuestion
    kind = "number"

    def read(self, text: str, *, truncated: bool, refused: bool) -> Reading[float]:
        """Read an answer."""
        return Reading("refused") if refused else read_number(text, self.question, truncated=truncated)

    def words(self) -> dict[str, Any]:
        """The bounds, as the prompts write them."""
        question = self.question
        return {
            "low": f"{question.low:.12g}",
            "high": f"{question.high:.12g}",
            "whole": question.whole,
            "allowed": question.allowed,
            "options": (),
        }

    def schema(self, key: str, *, optional: bool = False) -> dict[str, Any]:
        """A number; the bounds are left out, which some providers refuse in schemas."""
        kind = "integer" if self.question.whole else "number"
        return {"type": [kind, "null"] if optional else kind}

    def said(self, reading: Reading[float]) -> str:
        """The number as it would be written."""
        return "" if reading.value is None else f"{reading.value:.12g}"


@dataclass(frozen=True)
class OptionReader(Reader[int]):
    """One of a few options is asked for."""

    question: OptionQuestion
    labels: tuple[str, ...]
    kind = "option"

    def read(self, text: str, *, truncated: bool, refused: bool) -> Reading[int]:
        """Read an answer."""
        return Reading("refused") if refused else read_option(text, self.question, truncated=truncated)

    def words(self) -> dict[str, Any]:
        """The options, as the prompts list them."""
        return {"low": "", "high": "", "whole": False, "allowed": (), "options": self.labels}

    def schema(self, key: str, *, optional: bool = False) -> dict[str, Any]:
        """One of the letters, or of the names."""
        answers: list[Any] = [choice.letter or choice.names[0] for choice in self.question.choices]
        return {"type": ["string", "null"] if optional else "string", "enum": [*answers, None] if optional else answers}

    def said(self, reading: Reading[int]) -> str:
        """Nothing: an option that is not there has no name."""
        return ""


@dataclass(frozen=True)
class WordReader(Reader[str]):
    """Words are asked for."""

    key: str
    speaker: str
    kind = "text"
    repairable = False

    def read(self, text: str, *, truncated: bool, refused: bool) -> Reading[str]:
        """Read an answer."""
        return read_text(text, key=self.key, speaker=self.speaker, truncated=truncated, refused=refused)

    def words(self) -> dict[str, Any]:
        """Nothing: all words are legal."""
        return {"low": "", "high": "", "whole": False, "allowed": (), "options": ()}

    def schema(self, key: str, *, optional: bool = False) -> dict[str, Any]:
        """A text."""
        return {"type": "string"}


def object_schema(key: str, value: Mapping[str, Any], *, reasoned: bool) -> dict[str, Any]:
    """The schema of a whole answer: the value under its key, after a reason where one is asked for."""
    properties: dict[str, Any] = {"reason": {"type": "string"}} if reasoned else {}
    properties[key] = dict(value)
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
