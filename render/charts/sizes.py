"""Sizes of figures: their own, or that of a journal's column, in which text stays readable and panels move."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

from llm_coop_envs.errors import SettingsError

#: The width in inches of the figures that are being drawn, if a journal's column sets it; else each has its own.
_WIDTH: ContextVar[float | None] = ContextVar("width", default=None)
#: How large text and lines are in a column, as a share of their usual size: 8 points where it is 10.
_IN_COLUMN = 0.8
#: The narrowest panel in a column, in inches.
_NARROWEST = 1.6
#: The width of a letter, as a share of the size of type.
_LETTER = 0.56

Item = TypeVar("Item")


@contextmanager
def column_width(inches: float | None) -> Iterator[None]:
    """Draw figures of this width during a `with` block, with the sizes of type of journals; `None` changes nothing."""
    token = _WIDTH.set(inches)
    try:
        yield
    finally:
        _WIDTH.reset(token)


def is_in_column() -> bool:
    """Whether a journal's column sets the width of the figures that are being drawn."""
    return _WIDTH.get() is not None


def panel_width(natural: float, across: int) -> float:
    """The width of each of so many panels beside each other: the natural one, or its part of a column, in inches."""
    width = _WIDTH.get()
    return natural if width is None else width / across


def fit_rows(rows: Sequence[Sequence[Item]]) -> list[list[Item]]:
    """Break rows of panels that are too many for a column's width into shorter ones."""
    width = _WIDTH.get()
    across = max(map(len, rows)) if width is None else max(1, int(width / _NARROWEST))
    return [list(row[start : start + across]) for row in rows for start in range(0, len(row), across)]


def points(size: float) -> float:
    """A size of type or the width of a line in points, smaller in a journal's column."""
    return size if _WIDTH.get() is None else size * _IN_COLUMN


def wrap_to(text: str, inches: float, size: float) -> str:
    """A text in lines that a column's part holds; as it is where no column sets the width.

    Args:
        text: the text.
        inches: the width of that part.
        size: the text's usual size of type.
    """
    if _WIDTH.get() is None:
        return text
    letters = max(12, int(72 * inches / (points(size) * _LETTER)))
    return "\n".join(line for part in text.split("\n") for line in textwrap.wrap(part, letters) or [""])


#: Inches of each unit of length.
_UNITS = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72.27}
#: The widths that a figure can have, in inches.
NARROWEST_COLUMN, WIDEST_COLUMN = 2.0, 20.0


def read_width(text: str) -> float:
    """Read a width such as `3.3in`, `84mm` or `8.4 cm`; gives inches.

    Raises:
        SettingsError: it is no length, or no figure can have this width.
    """
    parts = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*(in|cm|mm|pt)\s*", text)
    if parts is None:
        raise SettingsError("width", text, "is no length; write a number and in, cm, mm or pt, such as 3.3in or 84mm")
    inches = float(parts[1]) * _UNITS[parts[2]]
    if not NARROWEST_COLUMN <= inches <= WIDEST_COLUMN:
        raise SettingsError("width", text, f"must be from {NARROWEST_COLUMN:g}in to {WIDEST_COLUMN:g}in")
    return inches
