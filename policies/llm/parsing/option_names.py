"""Options that a model is asked to choose from, and the names and letters by which answers call them."""

from __future__ import annotations

import functools
import itertools
import re
from dataclasses import dataclass

#: Values of mentions that are no option: two options named at once; an option that is known and not offered.
CONTRADICTION = -1
NOT_OFFERED = -2


@dataclass(frozen=True, slots=True)
class Choice:
    """One option.

    Attributes:
        value: what to submit.
        names: the names it goes by; also its cell, as `"(3, 4)"`.
        letter: its letter in the list; empty if it has none.
    """

    value: int
    names: tuple[str, ...]
    letter: str = ""


@dataclass(frozen=True)
class OptionQuestion:
    """A question for one of a few options.

    Attributes:
        choices: the options.
        all_names: names of options that exist but may not be offered now; empty if all are offered.
        key: the key of the answer in an object.
    """

    choices: tuple[Choice, ...]
    all_names: tuple[str, ...] = ()
    key: str = "choice"


@dataclass(frozen=True)
class OptionNames:
    """The names of a question's options, ready to be searched for.

    Attributes:
        letters: the options' values by letter.
        values: the options' values by name, as `name_key` writes it; `NOT_OFFERED` for names of other options.
        vocabulary: the single words of all names.
        pattern: finds a name.
    """

    letters: dict[str, int]
    values: dict[str, int]
    vocabulary: frozenset[str]
    pattern: re.Pattern[str]


@functools.lru_cache(maxsize=4096)
def names_for(question: OptionQuestion) -> OptionNames:
    """The names of a question's options; of two directions in both orders ("left and up", "upleft")."""
    values: dict[str, int] = {name_key(name): NOT_OFFERED for name in question.all_names}
    for choice in question.choices:
        values |= {name_key(name): choice.value for name in choice.names}
    for name in list(values):
        parts = re.findall(r"[^\W\d_]+", name)
        directions = [part for part in parts if part not in ("and", "und")]
        if len(directions) == 2 and len(parts) in (2, 3):
            for order in itertools.permutations(directions):
                values.setdefault(" ".join(order), values[name])
                values.setdefault("".join(order), values[name])
    spelled = sorted((name for name in values if name[:1] != "("), key=lambda name: (-len(name), name))
    pattern = "|".join(re.escape(name).replace(r"\ ", "(?:[ _/+-]| and )") for name in spelled) or r"(?!)"
    return OptionNames(
        {choice.letter.lower(): choice.value for choice in question.choices if choice.letter},
        values,
        frozenset(word for name in spelled for word in name.split()),
        re.compile(rf"(?<![\w-])(?<!\w')(?:{pattern})(?!\w|['-]\w)"),
    )


def name_key(name: str) -> str:
    """A name as `OptionNames.values` holds it: "Up and_Left" becomes "up left"."""
    return re.sub(r"[\s_-]+", " ", name.strip().lower()).replace(" and ", " ")
