"""Backgrounds from sentences: one of each list of sentences is taken, with attributes and words in its places.

A place is `{name}`, or `{a name}` for the name with its article. A name is an attribute, or a list of words from which
each person gets one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_coop_envs.policies.population.columns import Codes

_PLACE = re.compile(r"\{(a |)([^{}]*)\}")


def places(text: str) -> set[str]:
    """The names in a text's places."""
    return {name for _, name in _PLACE.findall(text)}


def fill(text: str, values: Mapping[str, Any]) -> str:
    """The text with values in its places."""

    def value(found: re.Match[str]) -> str:
        word = str(values[found[2]])
        article = ("an " if word[:1].lower() in "aeiou" else "a ") if found[1] else ""
        return article + word

    return _PLACE.sub(value, text)


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """Sentences.

    Attributes:
        sentences: lists of sentences; one of each is taken, in this order.
        vocabulary: lists of words.
    """

    sentences: tuple[tuple[str, ...], ...]
    vocabulary: Mapping[str, tuple[str, ...]]

    def _lists(self) -> Iterator[tuple[str, Collection[str]]]:
        yield from self.vocabulary.items()
        for number, sentences in enumerate(self.sentences):
            yield f"sentence {number}", sentences

    def draw(self, size: int, rng: np.random.Generator) -> dict[str, Codes]:
        """For each list, which entry everybody gets."""
        return {name: rng.integers(len(entries), size=size, dtype=np.int32) for name, entries in self._lists()}

    def text(self, profile: Mapping[str, Any], chosen: Mapping[str, int]) -> str:
        """A background.

        Args:
            profile: the person's attributes.
            chosen: the entry of each list.
        """
        words = {name: entries[chosen[name]] for name, entries in self.vocabulary.items()}
        taken = [sentences[chosen[f"sentence {number}"]] for number, sentences in enumerate(self.sentences)]
        return " ".join(fill(sentence, {**words, **profile}) for sentence in taken)
