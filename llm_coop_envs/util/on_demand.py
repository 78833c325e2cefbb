"""Mappings whose values are made when they are looked up, where all of them at once would fill the memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TypeVar

V = TypeVar("V")


class OnDemand(Mapping[str, V]):
    """A mapping of names to values that are made anew at every look.

    Args:
        names: the names.
        make: makes a name's value.
    """

    def __init__(self, names: Collection[str], make: Callable[[str], V]) -> None:
        self._names, self._make = names, make

    def __getitem__(self, name: str) -> V:
        """A name's value."""
        if name not in self._names:
            raise KeyError(name)
        return self._make(name)

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._names)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._names)
