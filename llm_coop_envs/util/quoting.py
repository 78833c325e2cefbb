"""What somebody else wrote, made safe to show: between quotation marks on one line, or without acting on a terminal."""

from __future__ import annotations

import json
import re
import sys
import unicodedata
from typing import Any

_BREAKERS = "\x7f\x85\u2028\u2029\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
_LINE_BREAKERS = {ord(c): f"\\u{ord(c):04x}" for c in _BREAKERS}
_LINE_BREAKER = re.compile(f"[{_BREAKERS}]")
# Everything that a terminal acts on instead of showing it: control characters, directions, private characters.
_ACTING = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
# What spreadsheets begin a formula with, also in the wide forms of Chinese and Japanese.
FORMULA = tuple("=+-@\t\r\n\uff1d\uff0b\uff0d\uff20")
_NUMBER = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?")
# What reports write of numbers: '-86 to 170'.
_NUMBERS = re.compile(rf"{_NUMBER.pattern}( to {_NUMBER.pattern}| ?%)?")
_in_quotes = json.JSONEncoder(ensure_ascii=False).encode


def quoted(text: str) -> str:
    """Put a message between double quotes on one line.

    Line ends, control characters, quotes, backslashes and direction overrides are escaped as in JSON, so that nothing
    a player writes can leave its quotation or look like another part of the text; all other characters stay.
    """
    line = _in_quotes(text)
    # Looking first is ten times faster: the same messages come back in text after text.
    if line.isascii() and "\x7f" not in line:
        return line
    return line.translate(_LINE_BREAKERS) if _LINE_BREAKER.search(line) else line


def harmless(text: str) -> str:
    """A text that only shows: what a terminal would act on is written as an escape."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        sign if sign in "\n\t" or unicodedata.category(sign) not in _ACTING else _escaped(ord(sign)) for sign in text
    )


def to_stderr(sentence: str) -> None:
    """Show a sentence for the user on standard error."""
    print(harmless(sentence), file=sys.stderr, flush=True)


def table_cell(value: Any) -> Any:
    """A value for a CSV file; a text that a spreadsheet would take for a formula begins with an apostrophe.

    Numbers stay as they are, also in texts such as `-86 to 170`. A zero byte becomes the replacement character. Yes
    and no are `TRUE` and `FALSE`, as R writes them.
    """
    if isinstance(value, bool):
        return str(value).upper()
    if not isinstance(value, str):
        return value
    value = value.replace("\0", "\ufffd")  # Python 3.10 cannot write a zero byte to CSV, and R reads no further
    return f"'{value}" if value.startswith(FORMULA) and not _NUMBERS.fullmatch(value) else value


def markdown_text(text: str) -> str:
    """A text on one line of Markdown that only shows itself."""
    return re.sub(r"([\\`*_{}\[\]<>()#|~!&$-])", r"\\\1", " ".join(harmless(text).split()))


def markdown_code(text: str, language: str = "") -> str:
    """A text as a block of code in Markdown, or with `language` empty as code within a line."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    if not language:
        ticks = "`" * (longest + 1)
        return (
            f"{ticks} {' '.join(harmless(text).split())} {ticks}"
            if longest
            else f"`{' '.join(harmless(text).split())}`"
        )
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{harmless(text)}\n{fence}"


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
