"""Observation and action spaces for text that may hold any character."""

from __future__ import annotations

import string
from typing import Any

from gymnasium import spaces

# Only what `sample` draws from. A string, not a set: samples must not depend on PYTHONHASHSEED.
SAMPLE_CHARACTERS = string.ascii_letters + string.digits + " .,:;!?'-"


class UnicodeText(spaces.Text):
    """Any text up to a length.

    `gymnasium.spaces.Text` lists its characters one by one, which cannot be done for all of Unicode. Here every
    string that UTF-8 can carry is contained; sampling draws from plain ASCII.

    Args:
        max_length: the longest text in characters.
        seed: for sampling.
    """

    def __init__(self, max_length: int, seed: int | None = None) -> None:
        super().__init__(max_length, min_length=0, charset=SAMPLE_CHARACTERS, seed=seed)

    def contains(self, x: Any) -> bool:
        """Whether `x` is a string that is short enough and has no lone surrogate."""
        if not isinstance(x, str) or len(x) > self.max_length:
            return False
        if x.isascii():
            return True
        try:
            x.encode()
        except UnicodeEncodeError:
            return False
        return True

    def __repr__(self) -> str:
        """Name the limit; the sampling alphabet is no property of the space."""
        return f"UnicodeText({self.max_length})"
