"""A population and the people drawn from it: columns of codes, from which everything else is derived on demand."""

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

#: The column of the policies that play.
POLICY = "policy"
#: The most groups of people that differ in their policy or its options.
MOST_CELLS = 1000


@dataclass(frozen=True, kw_only=True, eq=False)
class Background:
    """How backgrounds are written.

    Attributes:
        grammar: sentences for all backgrounds, or, if a model writes them, for those that it gets wrong.
        model: the model that writes them; empty for none.
        options: the model's parameters: `temperature` and other fields of `ModelParameters`.
        endpoint: the fields of the model's `Endpoint`.
        words: the approximate length of a background in words.
        prompt: the question to the model, with the placeholders `{attributes}` and `{words}`.
    """

    grammar: Grammar
    model: str
    options: Mapping[str, Any]
    endpoint: Mapping[str, Any]
    words: int
    prompt: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Population:
    """The distribution of people's attributes, and of the policies that play them.

    Attributes:
        size: the number of people; `None` for as many as there are seats.
        exact: whether shares are quotas (largest remainders) instead of chances.
        shuffled: whether people take seats at random, instead of sorted by the policies that play them.
        seed: draws the same people in every episode; `None` draws new people in each.
        attributes: the people's attributes. A column comes after the one on which it depends.
        play: the policies that play them, under `"policy"`, and options of those that are language models.
        background: how backgrounds are written; `None` for none.
        data: the population as plain data for `read_population`, without the models' endpoints.
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
        """Check that the population can have this number of people.

        Raises:
            SettingsError: its size is fixed to another number, or quotas are impossible.
        """
        if self.size not in (None, size):
            raise SettingsError("size", self.size, f"there are seats for {size}")
        for column in self.columns:
            column.check(size, exact=self.exact)

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of attributes and of play."""
        return self.attributes + self.play

    def draw(self, size: int, seed: np.random.SeedSequence) -> People:
        """Draw people.

        Args:
            size: how many.
            seed: the source of random numbers, unless the population has a seed of its own.

        Raises:
            SettingsError: the population cannot have this size.
        """
        self.check(size)
        source = seed if self.seed is None else np.random.SeedSequence(self.seed)
        # A generator for each column, so that another column at the end does not change the others.
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
            codes = {name: column_codes[order] for name, column_codes in codes.items()}
            numbers = {name: column_numbers[order] for name, column_numbers in numbers.items()}
        return People(population=self, size=size, codes=codes, numbers=numbers, seed=seeds[0])

    def cells(self, policies: Mapping[int | None, bool]) -> list[dict[str, int]]:
        """List the groups of people with the same policy and options: codes by column of `play`.

        Args:
            policies: for each code of the column `"policy"`, whether it is a language model, which alone has options by
                person. The code `None` stands for a policy given outside the file.

        Raises:
            SettingsError: there are too many cells.
        """
        options = [column for column in self.play if column.name != POLICY]
        cells: list[dict[str, int]] = []
        for code, model in policies.items():
            first = {} if code is None else {POLICY: code}
            own = options if model else []
            for combined in itertools.product(*(range(len(column.values)) for column in own)):
                cells.append({**first, **dict(zip((column.name for column in own), combined, strict=True))})
                if len(cells) > MOST_CELLS:
                    raise SettingsError("play", len(cells), f"{MOST_CELLS} different players are the most")
        return cells

    def share(self, cell: Mapping[str, int]) -> float:
        """The approximate share of a cell in all people, as if its columns were independent."""
        return math.prod(float(marginal(self.columns, name)[code]) for name, code in cell.items())

    def options(self, cell: Mapping[str, int]) -> dict[str, Any]:
        """The options of a language model in a cell."""
        columns = (column for column in self.play if column.name in cell and column.name != POLICY)
        return {column.name: column.values[cell[column.name]] for column in columns}


@dataclass(frozen=True, kw_only=True, eq=False)
class People:
    """People drawn from a population.

    Attributes:
        population: the population.
        size: how many people.
        codes: (size,) for each column, the index of each person's value in `Column.values`.
        numbers: (size,) for each column of ranges, each person's integer.
        seed: the source of random numbers for backgrounds.
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
        """The SHA-256 of these people, in hex."""
        sha = hashlib.sha256(json.dumps([self.population.data, self.seed.generate_state(4).tolist()]).encode())
        for table in (self.codes, self.numbers):
            for name in table:
                sha.update(table[name].tobytes())
        return sha.hexdigest()

    def in_cell(self, cell: Mapping[str, int]) -> NDArray[np.bool_]:
        """(size,) Whether each person is in a cell."""
        is_member = np.ones(self.size, dtype=np.bool_)
        for name, code in cell.items():
            is_member &= self.codes[name] == code
        return is_member

    def sampling_seed(self, person: int) -> int:
        """A person's own sampling seed, by which a model's answers for equal people differ."""
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
        """The backgrounds by the grammar, by seat.

        Args:
            seats: the person in each seat.
        """
        return OnDemand(seats, lambda seat: self.sentences(seats[seat]))

    def to_json(self, play: Collection[str] = ()) -> dict[str, Any]:
        """The record of these people: each column's values, each person's code, and integers in ranges.

        Args:
            play: the columns of `Population.play` that were used; the others are left out.
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
    """One of some people, whose properties are derived on demand.

    Attributes:
        people: the people.
        number: the person's index.
    """

    people: People
    number: int

    @property
    def attributes(self) -> dict[str, Any]:
        """The person's attributes by name."""
        return self.people.profile(self.number)

    @property
    def options(self) -> dict[str, Any]:
        """The person's policy, under `"policy"`, and its options: `"model"`, `"temperature"`, `"personas"`, ..."""
        people = self.people
        return {column.name: column.values[people.codes[column.name][self.number]] for column in people.population.play}

    @property
    def background(self) -> str:
        """The person's background by the grammar; empty if the population has none."""
        return self.people.sentences(self.number)
