"""Questions for moves that are more than a number or an option: some of several options, shares, and answers in parts.

What `take` makes of an answer is plain data, as it stands in events:

| question | a move |
|---|---|
| `Number` with `passing` | `12.5`, or `None` |
| `Several`, `ranked` or not | the choices of the options: `[0, 2]`, or best first `[2, 0, 1]` |
| `Shares` | whole per cents by name: `{"stay": 70, "go": 30}`; `_apply` gets the choice of the option that was drawn |
| `Parts` | its parts by name: `{"answer": 2, "price": 30.0, "reason": "too low"}` |
| `Words` | the text |
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.question import (
    Number,
    Option,
    Options,
    Question,
    Unusable,
    Words,
    is_nothing,
    plain_value,
    take_option,
)
from llm_coop_envs.util.quoting import quoted

# "a, b and c", "a > b > c", and a line for each
_BETWEEN = re.compile(r"\s*(?:[,;>\n]|\band\b|\bund\b)\s*", re.IGNORECASE)
_ALL = re.compile(r"all(?: of them)?|both|alle|beide", re.IGNORECASE)
# What stands between two labelled parts: "3, ", "3 and ", "3\n- "
_BEHIND = re.compile(r"(?:[\s,;.]|\b(?:and|und)\b|(?<=\s)[-*\u2022]\s)*$", re.IGNORECASE)
# "- a", "1. a"
_BULLET = re.compile(r"^(?:[-*\u2022]\s*|\d{1,3}[.)]\s+)")
# "stay: 70 %", "70% stay", "70"; where options are numbers, too, as "5: 70 %"
_SHARE = re.compile(r"(?:(?P<name>.*?\S)\s*[:=]?\s*)??(?P<number>\d+(?:\.\d+)?)\s*%?(?:\s*(?P<behind>[^\d%:=\s].*))?")


@dataclass(frozen=True, kw_only=True)
class Several(Question):
    """Some of several options are asked for: a set, as in an approval vote, or with `ranked` an order.

    Attributes:
        options: the legal options.
        fewest: how many have to be named.
        most: how many may be named; `None` for all.
        ranked: whether their order counts, best first.
    """

    name: str = "options"
    options: tuple[Option, ...]
    fewest: int = 0
    most: int | None = None
    ranked: bool = False

    @property
    def limit(self) -> int:
        """How many options may be named."""
        return len(self.options) if self.most is None else min(self.most, len(self.options))

    def take(self, raw: Any) -> list[int]:
        """The choices of the named options: ascending, or best first."""
        if is_nothing(raw):
            raw = []
        if isinstance(raw, np.ndarray):
            raw = self._of_point(raw)
        elif isinstance(raw, str) and not self.ranked and _ALL.fullmatch(raw.strip()):
            raw = [option.choice for option in self.options]
        elif isinstance(raw, str):
            items = _BETWEEN.split(raw.strip().strip("[]"))  # also '["a", "b"]'
            raw = [(_BULLET.sub("", item) or item).strip("\"'") for item in items if item]
        if not isinstance(raw, list | tuple | set | frozenset):
            raw = [raw]
        choices = [take_option(self.options, item) for item in raw]
        if len(set(choices)) < len(choices):
            raise Unusable("The same option is named twice; name each once.")
        if not self.fewest <= len(choices) <= self.limit:
            raise Unusable(f"{len(choices)} are named; name {self.fewest} to {self.limit} of them.")
        return choices if self.ranked else sorted(choices)

    def _of_point(self, point: np.ndarray[Any, Any]) -> list[int]:
        """The choices that a point of the space stands for: by their scores if ranked, else those that are 1."""
        if not self.ranked:
            return [int(choice) for choice in np.flatnonzero(point)]
        legal = [option.choice for option in self.options if option.choice < len(point)]
        return sorted(legal, key=lambda choice: -float(point[choice]))[: self.limit]

    def stand_in(self) -> list[int]:
        """As few options as possible, the first ones."""
        return [option.choice for option in self.options[: self.fewest]]


@dataclass(frozen=True, kw_only=True)
class Shares(Question):
    """A probability for each option is asked for, in whole per cents that sum to 100; one option is then drawn.

    Attributes:
        options: the legal options.
    """

    name: str = "probabilities"
    options: tuple[Option, ...]

    def take(self, raw: Any) -> dict[str, int]:
        """The per cents of all options by name; naming one option gives it all."""
        names = [option.name for option in self.options]
        if isinstance(raw, np.ndarray) and raw.size > 1:
            return dict(zip(names, self._of_point(raw), strict=True))
        raw = plain_value(raw)
        if isinstance(raw, str):
            raw = self._of_text(raw)
        if isinstance(raw, list | tuple) and len(raw) == len(names):
            raw = dict(zip(names, raw, strict=True))
        if not isinstance(raw, Mapping):
            option_choice = take_option(self.options, raw)
            raw = {option.name: 100 for option in self.options if option.choice == option_choice}
        stated = dict.fromkeys(names, 0.0)
        for key, value in raw.items():
            choice = take_option(self.options, key)
            stated[next(option.name for option in self.options if option.choice == choice)] = _per_cent(value)
        total = math.fsum(stated.values())
        if math.isclose(total, 1.0) and max(stated.values()) < 1:  # 0.7 and 0.3
            stated, total = {name: round(100 * value, 9) for name, value in stated.items()}, 100.0
        if not all(value.is_integer() for value in stated.values()) or total != 100:
            raise Unusable(f"The per cents sum to {total:g}; give whole ones that sum to 100.")
        return {name: int(value) for name, value in stated.items()}

    def draw(self, stated: Mapping[str, int], rng: np.random.Generator) -> int:
        """Draw an option, and return its choice. One number is drawn in any case."""
        drawn = int(rng.integers(100))
        for option in self.options:
            drawn -= stated[option.name]
            if drawn < 0:
                return option.choice
        return self.options[-1].choice

    def _of_text(self, text: str) -> Any:
        parts = [part for part in re.split(r"[,;\n]", text) if part.strip()]
        matches = [_SHARE.fullmatch(_BULLET.sub("", part.strip())) for part in parts]
        read = [(match["name"] or match["behind"], match["number"]) for match in matches if match]
        if len(read) < len(parts) or not read or (len(read) == 1 and not read[0][0]):
            return text
        names = [name for name, _ in read if name]
        return (
            {name.strip(): float(number) for name, number in read}
            if len(names) == len(read)
            else [float(number) for _, number in read]
        )

    def _of_point(self, point: np.ndarray[Any, Any]) -> list[int]:
        """Weights of all options as whole per cents of the legal ones: the largest remainders are rounded up."""
        weights = np.array([point[option.choice] for option in self.options], dtype=np.float64)
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise Unusable("Weights must be numbers from 0 on.")
        total = math.fsum(weights)
        exact = 100 * weights / total if total > 0 else np.full(len(weights), 100 / len(weights))
        whole = np.floor(exact + 1e-9).astype(int)
        whole[np.argsort(whole - exact, kind="stable")[: 100 - int(whole.sum())]] += 1
        return [int(share) for share in whole]

    def stand_in(self) -> dict[str, int]:
        """The first option for sure."""
        return self.take(self.options[0].choice)


def _per_cent(value: Any) -> float:
    value = plain_value(value)
    if isinstance(value, str):
        value = value.strip().rstrip("%").strip()
        value = float(value) if re.fullmatch(r"\d+(\.\d+)?", value) else value
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        raise Unusable(f"{str(value)[:40]} is no share; give whole per cents from 0 to 100.")
    return float(value)


@dataclass(frozen=True, kw_only=True)
class Parts(Question):
    """Several things are asked for at once, each by name: numbers, an option with its number, words.

    Example: an answer to an offer, with a price if it is a counter-offer.

        Parts(parts=(Options(name="answer", options=...), Number(name="price", low=0, high=9)),
              when=(("price", "counter"),))

    Attributes:
        parts: the questions; a line that somebody types answers them in this order, with `;` between.
        when: (part, option) pairs: a part that stands here is asked for only with one of its options.
    """

    name: str = "answer"
    parts: tuple[Question, ...]
    when: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        """Refuse parts that cannot be told apart, or cannot be parts."""
        names = [part.name for part in self.parts]
        options = {option.name for part in self.parts if isinstance(part, Options) for option in part.options}
        if len(set(names)) < len(names):
            raise SettingsError(self.name, names, "two parts have the same name")
        for part in self.parts:
            if not isinstance(part, Number | Options | Words | Several):
                raise SettingsError(
                    self.name, type(part).__name__, "cannot be a part; ask for it in a phase of its own"
                )
            if isinstance(part, Number) and part.counted:
                raise SettingsError(self.name, part.name, "a number in parts is the move itself; leave counted out")
        for part_name, option_name in self.when:
            if part_name not in names or option_name not in options:
                raise SettingsError(
                    self.name, (part_name, option_name), "when names a part and an option of these parts"
                )

    def applies(self, part: Question, chosen: Mapping[str, Any]) -> bool:
        """Whether a part is asked for, by the options that were chosen."""
        conditions = {option for name, option in self.when if name == part.name}
        return not conditions or any(
            option.name in conditions
            for other in self.parts
            if isinstance(other, Options) and other.name in chosen
            for option in other.options
            if option.choice == chosen[other.name]
        )

    def take(self, raw: Any) -> dict[str, Any]:
        """The parts that are asked for, by name."""
        if isinstance(raw, str):
            raw = self._of_text(raw)
        elif isinstance(raw, list | tuple | np.ndarray) and len(raw) <= len(self.parts):
            raw = dict(zip([part.name for part in self.parts], raw, strict=False))
        if not isinstance(raw, Mapping):
            raise Unusable(f"Give {', '.join(part.name for part in self.parts)}, each by its name.")
        chosen = {part.name: self._part(part, raw) for part in self.parts if isinstance(part, Options)}
        return {
            part.name: chosen[part.name] if part.name in chosen else self._part(part, raw)
            for part in self.parts
            if self.applies(part, chosen)
        }

    def _part(self, part: Question, raw: Mapping[str, Any]) -> Any:
        try:
            return part.take(raw.get(part.name))
        except Unusable as error:
            missing = f"{part.name}: " + ("it is missing. " if raw.get(part.name) is None else "")
            raise Unusable(f"{missing}{error}") from error

    def _of_text(self, text: str) -> dict[str, str]:
        """The parts of a line such as `counter; 30; too low`; with `name: value` in any order."""
        names = [part.name for part in self.parts]
        if all(isinstance(part, Number | Options) for part in self.parts) and (labelled := _labelled(names, text)):
            return labelled
        pieces: dict[str, str] = {}
        for piece in re.split(r"\s*[;\n]\s*", text.strip(), maxsplit=len(names) - 1):
            label, sign, value = piece.partition(":")
            name = next((name for name in names if sign and label.strip().lower() == name.lower()), "")
            free = [other for other in names if other not in pieces]
            if free:
                pieces[name or free[0]] = value.strip() if name else piece
        return pieces

    def stand_in(self) -> dict[str, Any]:
        """What stands in for each part."""
        chosen = {part.name: part.stand_in() for part in self.parts if isinstance(part, Options)}
        return {part.name: part.stand_in() for part in self.parts if self.applies(part, chosen)}


def _labelled(names: Sequence[str], text: str) -> dict[str, str]:
    """Several parts on one line: `a: 3, b: -1` or `a = 3 and b = -1`; empty if they are not all labelled, once."""
    any_name = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
    labels = list(re.finditer(rf"(?<![\w.-])({any_name})\s*[:=]\s*", text, re.IGNORECASE))
    ordered = [next(name for name in names if name.lower() == label[1].lower()) for label in labels]
    if sorted(ordered) != sorted(names):
        return {}
    ends = [label.start() for label in labels[1:]] + [len(text)]
    return {
        name: _BEHIND.sub("", text[label.end() : end]) for name, label, end in zip(ordered, labels, ends, strict=True)
    }


def describe_move(question: Question, move: Any) -> str:
    """A move in words, such as `"price 30"` or `"answer counter, price 30"`; what players wrote is quoted."""
    if isinstance(question, Options | Shares):
        return next((option.name for option in question.options if option.choice == move), str(move))
    if isinstance(question, Several):
        names = {option.choice: option.name for option in question.options}
        return ", ".join(names.get(choice, str(choice)) for choice in move) or f"no {question.name}"
    if isinstance(question, Parts):
        asked_parts = [part for part in question.parts if part.name in move]
        return ", ".join(
            ("" if isinstance(part, Number) else f"{part.name} ") + describe_move(part, move[part.name])
            for part in asked_parts
        )
    if isinstance(question, Words):
        return quoted(move)
    if move is None:
        return f"no {question.name}"
    return f"{question.name} {move:.6g}"


def longest_line(question: Question) -> int:
    """How many characters the longest line may have that somebody types to answer a question."""
    if isinstance(question, Words):
        return question.longest
    if isinstance(question, Parts):
        return sum(len(part.name) + 4 + longest_line(part) for part in question.parts)
    if isinstance(question, Options):
        return max(len(option.name) for option in question.options)
    if isinstance(question, Several | Shares):
        return sum(len(option.name) + 8 for option in question.options)
    return 32
