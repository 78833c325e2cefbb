"""A population, and the people that are drawn from it: columns of codes, from which all else is made on demand."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.population.columns import Codes, Column, marginal
from llm_coop_envs.policies.population.grammar import Grammar
from llm_coop_envs.util.on_demand import OnDemand

#: The column that says which policy plays.
POLICY = "policy"
#: People who differ in who plays them, or in how a model is asked, at most.
MOST_CELLS = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class Background:
    """How backgrounds are written.

    Attributes:
        grammar: our own sentences, which write all of them, or those that the model does not get right.
        model: the model that writes them; empty for none.
        options: how it is asked: `temperature` and other fields of `ModelParameters`.
        endpoint: where it is reached.
        words: how long a background is, about.
        prompt: what the model is asked, with the places `{attributes}` and `{words}`.
    """

    grammar: Grammar
    model: str
    options: Mapping[str, Any]
    endpoint: Mapping[str, Any]
    words: int
    prompt: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Population:
    """Who people are, and in which shares.

    Attributes:
        size: how many they are; `None` for as many as there are seats.
        exact: whether shares are quotas (largest remainders) instead of chances.
        shuffled: whether people sit anywhere, instead of in the order of who plays them.
        seed: makes the people the same in every episode; `None` draws them anew in each.
        attributes: who they are. A column stands behind the one that it hangs on.
        play: who plays them, under `"policy"`, and options of those that are language models.
        background: how their backgrounds are written; `None` for none.
        data: all of it as plain data that `read_population` reads again; where models are reached is left out.
    """

    size: int | None
    exact: bool
    shuffled: bool
    seed: int | None
    attributes: tuple[Column, ...]
    play: tuple[Column, ...]
    background: Background | None
    data: Mapping[str, Any]

    def check(self, size: int) -> None:
        """Refuse a number of people that it cannot have.

        Raises:
            SettingsError: it names another size, or quotas are impossible.
        """
        if self.size not in (None, size):
            raise SettingsError("size", self.size, f"there are seats for {size}")
        for column in self.columns:
            column.check(size, exact=self.exact)

    @property
    def columns(self) -> tuple[Column, ...]:
        """All columns."""
        return self.attributes + self.play

    def draw(self, size: int, seed: np.random.SeedSequence) -> People:
        """People.

        Args:
            size: how many.
            seed: where the draws come from, unless the population has a seed of its own.

        Raises:
            SettingsError: it cannot have so many.
        """
        self.check(size)
        source = seed if self.seed is None else np.random.SeedSequence(self.seed)
        # A generator for each column, so that one more at the end leaves the others as they are.
        seeds = source.spawn(len(self.columns) + 1)
        codes: dict[str, Codes] = {}
        numbers: dict[str, NDArray[np.int64]] = {}
        everybody = np.zeros(size, dtype=np.int32)
        for column, child in zip(self.columns, seeds[1:], strict=True):
            rng = np.random.default_rng(child)
            codes[column.name] = column.draw(codes.get(column.by, everybody), rng, exact=self.exact)
            if column.ranges:
                low, high = np.array(column.ranges)[codes[column.name]].T
                numbers[column.name] = rng.integers(low, high, endpoint=True)
        if not self.shuffled and self.play:
            order = np.lexsort([codes[column.name] for column in reversed(self.play)])
            codes = {name: found[order] for name, found in codes.items()}
            numbers = {name: found[order] for name, found in numbers.items()}
        return People(population=self, size=size, codes=codes, numbers=numbers, seed=seeds[0])

    def cells(self, policies: Mapping[int | None, bool]) -> list[dict[str, int]]:
        """Everybody who can play: codes by column of `play`.

        Args:
            policies: for each code of the column `"policy"` (`None` for somebody who is given beside the file) whether
                it is a language model, which alone has options by person.

        Raises:
            SettingsError: there are too many.
        """
        options = [column for column in self.play if column.name != POLICY]
        found: list[dict[str, int]] = []
        for code, model in policies.items():
            first = {} if code is None else {POLICY: code}
            own = options if model else []
            for combined in itertools.product(*(range(len(column.values)) for column in own)):
                found.append({**first, **dict(zip((column.name for column in own), combined, strict=True))})
                if len(found) > MOST_CELLS:
                    raise SettingsError("play", len(found), f"{MOST_CELLS} different players are the most")
        return found

    def share(self, cell: Mapping[str, int]) -> float:
        """About how many of all people are of a cell: as if its columns had nothing to do with each other."""
        return math.prod(float(marginal(self.columns, name)[code]) for name, code in cell.items())

    def options(self, cell: Mapping[str, int]) -> dict[str, Any]:
        """The options of a language model in a cell."""
        return {one.name: one.values[cell[one.name]] for one in self.play if one.name in cell and one.name != POLICY}


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """People who were drawn.

    Attributes:
        population: where from.
        size: how many.
        codes: (size,) for each column, the place of everybody's value in `Column.values`.
        numbers: (size,) for each column of ranges, everybody's integer.
        seed: where the choices of words come from.
    """

    population: Population
    size: int
    codes: Mapping[str, Codes]
    numbers: Mapping[str, NDArray[np.int64]]
    seed: np.random.SeedSequence

    def profile(self, person: int) -> dict[str, Any]:
        """A person's attributes, by name."""
        return {
            column.name: int(self.numbers[column.name][person])
            if column.ranges
            else column.values[self.codes[column.name][person]]
            for column in self.population.attributes
            if not column.joint
        }

    @functools.cached_property
    def digest(self) -> str:
        """What tells these people from others."""
        found = hashlib.sha256(json.dumps([self.population.data, self.seed.generate_state(4).tolist()]).encode())
        for table in (self.codes, self.numbers):
            for name in table:
                found.update(table[name].tobytes())
        return found.hexdigest()

    def sits(self, cell: Mapping[str, int]) -> NDArray[np.bool_]:
        """(size,) who is of a cell."""
        found = np.ones(self.size, dtype=np.bool_)
        for name, code in cell.items():
            found &= self.codes[name] == code
        return found

    def sampling_seed(self, person: int) -> int:
        """A number of a person's own, by which a model's samples differ."""
        return int(self._sampling_seeds[person])

    @functools.cached_property
    def _sampling_seeds(self) -> NDArray[np.int64]:
        return np.random.default_rng([*self.seed.generate_state(4).tolist(), 1]).integers(2**31 - 10, size=self.size)

    @functools.cached_property
    def _grammar_words(self) -> dict[str, Codes]:
        background = self.population.background
        return {} if background is None else background.grammar.draw(self.size, np.random.default_rng(self.seed))

    def sentences(self, person: int) -> str:
        """A person's background by the grammar; empty if the population has none."""
        background = self.population.background
        if background is None:
            return ""
        chosen = {name: int(codes[person]) for name, codes in self._grammar_words.items()}
        return background.grammar.text(self.profile(person), chosen)

    def backgrounds(self, seats: Mapping[str, int]) -> Mapping[str, str]:
        """The `sentences` on those who sit in some seats, by seat.

        Args:
            seats: who sits there.
        """
        return OnDemand(seats, lambda seat: self.sentences(seats[seat]))

    def to_json(self, play: Collection[str] = ()) -> dict[str, Any]:
        """What is recorded: each column's values and everybody's code, and the integers in ranges.

        Args:
            play: the columns of `Population.play` that decided who plays; the others of them are left out.
        """
        return {
            column.name: {
                "values": list(column.values),
                "codes": self.codes[column.name].tolist(),
                **({"numbers": self.numbers[column.name].tolist()} if column.ranges else {}),
            }
            for column in self.population.columns
            if not column.joint and (column.name in play or column in self.population.attributes)
        }


@dataclass(frozen=True, eq=False, slots=True)
class Person:
    """Somebody of a population; what is asked for is put together then.

    Attributes:
        people: the people.
        number: which of them.
    """

    people: People
    number: int

    @property
    def attributes(self) -> dict[str, Any]:
        """Who it is."""
        return self.people.profile(self.number)

    @property
    def options(self) -> dict[str, Any]:
        """Who plays it, under `"policy"`, and how: `"model"`, `"temperature"`, `"personas"`, ..."""
        people = self.people
        return {one.name: one.values[people.codes[one.name][self.number]] for one in people.population.play}

    @property
    def background(self) -> str:
        """Sentences about it by the grammar; empty if the population has none."""
        return self.people.sentences(self.number)
