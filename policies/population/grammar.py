"""Backgrounds from sentences: one sentence of each list is chosen, and its placeholders are filled in.

A placeholder is `{name}`, or `{a name}` for the value with its article: `{a job}` becomes "an artist". A name is an
attribute, or a list of words from which each person gets one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_coop_envs.policies.population.columns import Codes

_PLACE = re.compile(r"\{(a |)([^{}]*)\}")


def place_names(text: str) -> set[str]:
    """The names in a text's placeholders."""
    return {name for _, name in _PLACE.findall(text)}


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Fill in a text's placeholders."""

    def value(match: re.Match[str]) -> str:
        word = str(values[match[2]])
        article = ("an " if word[:1].lower() in "aeiou" else "a ") if match[1] else ""
        return article + word

    return _PLACE.sub(value, text)


@dataclass(frozen=True, kw_only=True)
class Grammar:
    """The sentences of backgrounds.

    Attributes:
        sentences: lists of sentences; a background has one of each, in this order.
        vocabulary: lists of words by name.
    """

    sentences: tuple[tuple[str, ...], ...]
    vocabulary: Mapping[str, tuple[str, ...]]

    def _lists(self) -> Iterator[tuple[str, Collection[str]]]:
        yield from self.vocabulary.items()
        for number, sentences in enumerate(self.sentences):
            yield f"sentence {number}", sentences

    def draw(self, size: int, rng: np.random.Generator) -> dict[str, Codes]:
        """Draw, for each list, the entry of each person: (size,) indices by the list's name."""
        return {name: rng.integers(len(entries), size=size, dtype=np.int32) for name, entries in self._lists()}

    def text(self, profile: Mapping[str, Any], chosen: Mapping[str, int]) -> str:
        """Write a person's background.

        Args:
            profile: the person's attributes.
            chosen: the index of the entry in each list.
        """
        chosen_words = {name: entries[chosen[name]] for name, entries in self.vocabulary.items()}
        chosen_sentences = [sentences[chosen[f"sentence {number}"]] for number, sentences in enumerate(self.sentences)]
        return " ".join(fill(sentence, {**chosen_words, **profile}) for sentence in chosen_sentences)
