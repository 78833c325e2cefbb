"""How a thing shows itself: a small table in a notebook, the same as a few lines of text elsewhere."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from reprlib import Repr
from typing import Any

from llm_coop_envs.util.quoting import harmless

#: The longest text, in lines and columns, and the most rows of a table in a notebook.
MOST_LINES, WIDTH, MOST_ROWS = 12, 100, 20
_MOST_FIRST, _CELL = 6, 40
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _CELL


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a thing says of itself.

    Attributes:
        title: what it is, in a line.
        facts: what else is to be said first, a line each.
        head: the headings of the table.
        rows: its rows; all texts may come from anywhere.
        many: what the rows are, in the plural.
    """

    title: str
    facts: Sequence[str] = ()
    head: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    many: str = "rows"

    def text(self) -> str:
        """Lines for a terminal; what does not fit is cut, and rows that are left out are counted."""
        lines = [line for text in (self.title, *self.facts) for line in _wrap(text)][:_MOST_FIRST]
        free = MOST_LINES - len(lines)
        rows = self.rows if len(self.rows) <= free else self.rows[: free - 1]
        cells = [
            [*(textwrap.shorten(cell, _CELL, placeholder="...") for cell in row[:-1]), " ".join(row[-1].split())]
            for row in ([harmless(cell) for cell in row] for row in rows)
        ]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        for row in cells:
            lines.append("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
        lines += [f"  and {omitted} more {self.many}"] if (omitted := len(self.rows) - len(rows)) else []
        return "\n".join(line if len(line) <= WIDTH else line[: WIDTH - 3] + "..." for line in lines)

    def html(self) -> str:
        """A table for a notebook; all texts are escaped."""
        paragraphs = "".join(f"<p>{escape(fact)}</p>" for fact in self.facts if fact)
        heading = f"<p><b>{escape(self.title)}</b></p>{paragraphs}"
        if not self.rows:
            return heading
        head = "".join(f"<th>{escape(cell)}</th>" for cell in self.head)
        rows = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in self.rows[:MOST_ROWS]
        )
        omitted = len(self.rows) - MOST_ROWS
        more = f"<p>and {omitted} more {self.many}</p>" if omitted > 0 else ""
        return f"{heading}<table><tr>{head}</tr>{rows}</table>{more}"


def call_text(name: str, arguments: Mapping[str, Any]) -> str:
    """A call as it would be typed, such as `kbc_v0(players=5)`, in three lines at most."""
    parts = [f"{key}={_SHORT.repr(value)}" for key, value in arguments.items()]
    call = harmless(f"{name}({', '.join(parts)})")
    return "\n".join(textwrap.wrap(call, WIDTH, subsequent_indent="  ", max_lines=3, placeholder=" ...)"))


def _wrap(text: str) -> list[str]:
    return textwrap.wrap(harmless(text), WIDTH, max_lines=3, placeholder=" ...")
