"""Lines of text in a terminal: wrapped between words, never within one."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable

import typer

_WIDEST = 100  # columns; longer lines are hard to read
_NARROWEST = 40
_NAMES = 24  # columns for names; what is said of a longer one stands below it


def terminal_width() -> int:
    """Columns to fill; 80 where there is no terminal."""
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size().columns))


def wrap(text: str, width: int, *, first: str = "", later: str = "") -> str:
    """Wrap a paragraph; a word that is longer than a line stays whole.

    Args:
        text: the paragraph.
        width: columns of a line.
        first: what the first line begins with.
        later: what all others begin with.
    """
    wrapper = textwrap.TextWrapper(
        width=width,
        initial_indent=first,
        subsequent_indent=later,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return wrapper.fill(text)


def definitions(rows: Iterable[tuple[str, str]], width: int, *, indent: int = 2) -> str:
    """Names, and beside them what is said of each.

    Args:
        rows: names with what is said of them; a name may begin with blanks.
        width: columns of a line.
        indent: columns before the names.
    """
    table = [(" " * indent + name, text) for name, text in rows]
    column = min(max((len(name) for name, _ in table), default=0), indent + _NAMES) + 2
    lines = []
    for name, text in table:
        margin = " " * column
        if len(name) + 2 <= column:
            lines.append(wrap(text, width, first=name.ljust(column), later=margin) if text else name)
        else:
            lines += [name, *([wrap(text, width, first=margin, later=margin)] if text else [])]
    return "\n".join(lines)


def heading(text: str) -> str:
    """A heading; bold in a terminal."""
    return typer.style(wrap(text, terminal_width()), bold=True)


def say(text: str) -> None:
    """Print a paragraph; one that begins with an empty line stands apart."""
    typer.echo("\n" * text.startswith("\n") + wrap(text.strip(), terminal_width()))
