"""Pages of the documentation as Markdown: their prose with what was measured in the places that name it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path


def filled(prose: Path, parts: Mapping[str, str]) -> str:
    """The prose in a file with a part in each place such as `{{NAME}}`."""
    return re.sub(r"\{\{ ?(\w+) ?\}\}", lambda place: parts[place[1]], prose.read_text(encoding="utf-8"))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def versions_of(record: Mapping[str, Mapping[str, str]]) -> str:
    """The versions of libraries that a record names."""
    return ", ".join(f"{name} {version}" for name, version in record["versions"].items())
