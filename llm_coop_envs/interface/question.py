"""What a player is asked, as data: a number, one of some options, words, or several of these together.

A question stands in the slots of whoever is on turn (`slots.question`). Everything that asks reads it there: the
language model's readers and repair, JSON schemas, the terminal, the window, scripted answers. `choice` turns a number
that was answered into what `step` takes, so that nobody else needs to know how a scenario counts its choices.

`take` makes of anything that was submitted the move as plain data, as events hold it and `_apply` gets it: of the move
itself, of a point of the question's space (`interface.move_spaces`), of JSON, and of a line that somebody typed. The
kinds that are more than a number or an option stand in `interface.moves`.
"""

from __future__ import annotations

import functools
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.util.digits import six_digits

#: A choice that no discrete space holds: the environment replaces it by its fallback and flags it.
ILLEGAL = -1
#: The key of a point of a space that says whether a number is passed.
PASS = "pass"

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)
#: The most legal numbers that an error message lists.
_LONGEST_LISTING = 30
_NOTHING = frozenset(("", PASS, "none", "nothing", "null", "-"))


class Unusable(ValueError):
    """A text or value is no answer; the message explains why, and what would be one."""


def is_nothing(raw: object) -> bool:
    """Whether somebody submitted nothing, or a word for it such as `"pass"`."""
    return raw is None or (isinstance(raw, str) and raw.strip().strip(".\"'").lower() in _NOTHING)


def plain_value(raw: Any) -> Any:
    """A number out of an array of one or out of NumPy; everything else as it is."""
    if isinstance(raw, np.ndarray) and raw.size == 1:
        raw = raw.reshape(-1)[0]
    return raw.item() if isinstance(raw, np.generic) else raw


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """What a player is asked.

    Attributes:
        name: what the answer is called, in one word; the key of an answer given as an object.
    """

    name: str

    @abstractmethod
    def take(self, raw: Any) -> Any:
        """The move as plain data, of anything that was submitted.

        Raises:
            Unusable: it is no legal move.
        """

    @abstractmethod
    def stand_in(self) -> Any:
        """The move that stands in for a missing one.

        Raises:
            Unusable: no move is harmless in every game; the scenario has to say which it is.
        """


@dataclass(frozen=True, kw_only=True)
class Words(Question):
    """Free text is asked for.

    Attributes:
        name: what the answer is called, in one word; the key of an answer given as an object.
        longest: the most characters that count.
    """

    name: str = "message"
    longest: int

    def take(self, raw: Any) -> str:
        """The text, cut to its length; nothing is the empty one.

        Raises:
            Unusable: it is no text.
        """
        if raw is not None and not isinstance(raw, str):
            raise Unusable(f"{type(raw).__name__} is no {self.name}; write a text.")
        # Lone surrogates, which no file can carry, become U+FFFD.
        text = (raw or "").strip().encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text[: self.longest]

    def stand_in(self) -> str:
        """Silence."""
        return ""


@dataclass(frozen=True, kw_only=True)
class Number(Question):
    """A number is asked for.

    Attributes:
        name: what the answer is called, in one word, such as `"price"`.
        low: the smallest legal number.
        high: the largest legal number.
        integer: whether only integers are legal.
        counted: whether choices count the integers from `low` on (a Discrete space); else the number is the choice.
        listed: (choice, number) of every legal number, if only some are; empty otherwise.
        passing: whether no number is an answer, too: the move is then the number itself, or `None`.
    """

    name: str = "number"
    low: float
    high: float
    integer: bool = False
    counted: bool = False
    listed: tuple[tuple[int, float], ...] = ()
    passing: bool = False

    def __post_init__(self) -> None:
        """Refuse counted numbers that may be passed: they would have no number for it."""
        if self.counted and self.passing:
            raise SettingsError(self.name, "counted", "with passing the move is the number itself; leave counted out")

    def choice(self, number: float) -> float | int:
        """What `step` takes for a number; `ILLEGAL` where choices are discrete and there is none for it.

        A listed number counts as named in full or with the six digits that texts show.
        """
        if self.listed and not self.passing:
            return self._choice_of.get(number, ILLEGAL)
        if not self.counted:
            return number
        legal = self.low <= number <= self.high and number == int(number)
        return int(number - self.low) if legal else ILLEGAL

    @property
    def discrete(self) -> bool:
        """Whether choices are integers of a Discrete space."""
        return self.counted or (bool(self.listed) and not self.passing)

    def read(self, text: str) -> float:
        """The number that somebody typed.

        Raises:
            Unusable: it is no legal one.
        """
        example = six_digits(self.listed[0][1] if self.listed else (self.low + self.high) / 2)
        typed = text.strip()
        if not typed:
            raise Unusable(f"Nothing was typed; type a number such as {example}.")
        if _NUMBER.fullmatch(typed) is None:
            raise Unusable(f"'{typed[:40]}' is no number; type one such as {example}, decimals with a point.")
        return self.check(float(typed), typed)

    def check(self, value: float, typed: str = "") -> float:
        """A number that may be answered; one of those listed, in full.

        Raises:
            Unusable: it may not.
        """
        low, high = six_digits(self.low), six_digits(self.high)
        if self.integer and not value.is_integer():
            raise Unusable(f"{value:g} is no whole number; type a whole number from {low} to {high}.")
        if not self.low <= value <= self.high:
            raise Unusable(f"{six_digits(value)} is out of range; type a number from {low} to {high}.")
        if not self.listed:
            return value
        number = self._number_of.get(value)
        if number is None:
            numbers = [six_digits(number) for _, number in self.listed]
            if len(numbers) > _LONGEST_LISTING:
                numbers = [*numbers[: _LONGEST_LISTING - 1], "...", numbers[-1]]
            raise Unusable(f"There is no {self.name} {typed[:40] or value}; type one of {', '.join(numbers)}.")
        return number

    def take(self, raw: Any) -> float | int | None:
        """The number itself, or `None` where it is passed; not what `step` counts it as.

        Raises:
            Unusable: it is no legal number.
        """
        if isinstance(raw, Mapping):
            raw = None if self.passing and plain_value(raw.get(PASS)) else raw.get(self.name)
        if isinstance(raw, np.ndarray) and raw.size == 1 and self.listed:
            return min((number for _, number in self.listed), key=lambda number: abs(number - float(raw.item())))
        raw = plain_value(raw)
        if self.passing and (is_nothing(raw) or raw != raw):
            return None
        if isinstance(raw, str):
            number = self.read(raw)
        elif isinstance(raw, bool) or not isinstance(raw, int | float) or not math.isfinite(raw):
            raise Unusable(f"{str(raw)[:40]} is no {self.name}; give a number.")
        else:
            number = self.check(float(raw))
        return int(number) if self.integer else number

    def stand_in(self) -> None:
        """Nothing, where a number may be passed."""
        if not self.passing:
            raise Unusable(f"no {self.name} is harmless in every game")

    @functools.cached_property
    def _choice_of(self) -> dict[float, int]:
        rounded = {float(f"{number:.6g}"): choice for choice, number in reversed(self.listed)}
        return rounded | {number: choice for choice, number in reversed(self.listed)}

    @functools.cached_property
    def _number_of(self) -> dict[float, float]:
        numbers = [number for _, number in reversed(self.listed)]
        return {float(f"{number:.6g}"): number for number in numbers} | {number: number for number in numbers}


@dataclass(frozen=True, kw_only=True)
class Option:
    """One legal answer.

    Attributes:
        choice: what `step` takes.
        name: its name, such as `"bottom exit"`.
        letter: its letter in a list, or empty.
        aliases: other ways to type it.
        towards: (down, right) of a step, each -1, 0 or 1; `None` if it is no step.
    """

    choice: int
    name: str
    letter: str = ""
    aliases: tuple[str, ...] = ()
    towards: tuple[int, int] | None = None

    @property
    def spellings(self) -> tuple[str, ...]:
        """Other ways to write it in prose, such as the cell that a step leads to."""
        return self.aliases

    @property
    def label(self) -> str:
        """The option as a person reads and types it, such as `"a (up)"`."""
        return f"{self.letter or self.choice} ({self.name})"


def take_option(options: Iterable[Option], raw: Any) -> int:
    """The choice of the option that was named: by its choice, name, letter or alias.

    Raises:
        Unusable: it is none of them.
    """
    legal = tuple(options)
    raw = plain_value(raw)
    if isinstance(raw, str):
        option = Options(options=legal).find(raw)
        wrong = f"'{' '.join(raw.lower().split())[:40]}' is not possible now" if raw.strip() else "Nothing was typed"
    else:
        is_choice = isinstance(raw, int) and not isinstance(raw, bool)
        option = next((option for option in legal if is_choice and option.choice == raw), None)
        wrong = f"{str(raw)[:40]} is not possible now"
    if option is None:
        raise Unusable(f"{wrong}; type one of {', '.join(option.label for option in legal)}.")
    return option.choice


@dataclass(frozen=True, kw_only=True)
class Options(Question):
    """One of some options is asked for.

    Attributes:
        name: what the answer is called, in one word, such as `"exit"`.
        options: the legal answers, in the order in which they are listed.
        known: the names of all options there ever are, legal now or not: an answer that names another one is illegal,
            not unreadable.
    """

    name: str = "option"
    options: tuple[Option, ...]
    known: tuple[str, ...] = ()

    def find(self, text: str) -> Option | None:
        """The option that a text names exactly: by letter, name, the number that `step` takes, or alias.

        A letter or number that the question shows never means another option's alias.
        """
        wanted_name = " ".join(text.lower().split())
        names = [(o.letter.lower(), o.name.lower(), str(o.choice), *o.aliases) for o in self.options]
        # Column by column: all letters first, then all names, and so on.
        matches = (k for way in range(3) for k, ways in enumerate(names) if wanted_name and wanted_name == ways[way])
        others = (k for k, ways in enumerate(names) if wanted_name and wanted_name in ways[3:])
        index = next(matches, next(others, None))
        return None if index is None else self.options[index]

    def take(self, raw: Any) -> int:
        """The option's choice; see `take_option`."""
        return take_option(self.options, raw)

    def stand_in(self) -> int:
        """The first option."""
        return self.options[0].choice
