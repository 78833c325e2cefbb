"""What a player is asked, as data: a number, one of some options, or words.

A question stands in the slots of whoever is on turn (`slots.question`). Everything that asks reads it there: the
language model's readers and repair, JSON schemas, the terminal, the window, scripted answers. `choice` turns what was
answered into what `step` takes, so that nobody else needs to know how a scenario counts its choices.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

#: A choice that no discrete space holds: the environment replaces it by its fallback and flags it.
ILLEGAL = -1


@dataclass(frozen=True, kw_only=True)
class Words:
    """Free text is asked for.

    Attributes:
        name: what the answer is called, in one word; the key of an answer given as an object.
        longest: the most characters that count.
    """

    name: str = "message"
    longest: int


@dataclass(frozen=True, kw_only=True)
class Number:
    """A number is asked for.

    Attributes:
        name: what the answer is called, in one word, such as `"price"`.
        low: the smallest legal number.
        high: the largest legal number.
        integer: whether only integers are legal.
        counted: whether choices count the integers from `low` on (a Discrete space); else the number is the choice.
        listed: (choice, number) of every legal number, if only some are; empty otherwise.
    """

    name: str = "number"
    low: float
    high: float
    integer: bool = False
    counted: bool = False
    listed: tuple[tuple[int, float], ...] = ()

    def choice(self, number: float) -> float | int:
        """What `step` takes for a number; `ILLEGAL` where choices are discrete and there is none for it.

        A listed number counts as named in full or with the six digits that texts show.
        """
        if self.listed:
            return self._choice_of.get(number, ILLEGAL)
        if not self.counted:
            return number
        legal = self.low <= number <= self.high and number == int(number)
        return int(number - self.low) if legal else ILLEGAL

    @property
    def discrete(self) -> bool:
        """Whether choices are integers of a Discrete space."""
        return self.counted or bool(self.listed)

    @functools.cached_property
    def _choice_of(self) -> dict[float, int]:
        rounded = {float(f"{number:.6g}"): choice for choice, number in reversed(self.listed)}
        return rounded | {number: choice for choice, number in reversed(self.listed)}


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


@dataclass(frozen=True, kw_only=True)
class Options:
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


Question = Number | Options | Words
