"""What docstrings say of attributes and arguments."""

from __future__ import annotations

import inspect
import re


def attributes(kind: type) -> dict[str, str]:
    """What a class and its bases say of their attributes, each as one paragraph, those of base classes first."""
    return {
        name: text
        for base in reversed(kind.__mro__)
        for name, text in entries(vars(base).get("__doc__") or "", "Attributes").items()
    }


def entries(docstring: str, section: str) -> dict[str, str]:
    """The entries of a Google-style section such as `Attributes`, each as one paragraph."""
    paragraphs: dict[str, list[str]] = {}
    name = ""
    for line in _section(inspect.cleandoc(docstring), section).splitlines():
        entry = re.match(r"(\w+): ?(.*)", line)
        if entry:
            name = entry[1]
            paragraphs[name] = [entry[2]]
        elif name:
            paragraphs[name].append(line.strip())
    return {key: " ".join(" ".join(lines).split()) for key, lines in paragraphs.items()}


def _section(docstring: str, title: str) -> str:
    """The indented block below `title:`, without its indentation."""
    match = re.search(rf"^{title}:\n((?:[ ]+.*\n|\n)*)", docstring + "\n", re.MULTILINE)
    return inspect.cleandoc("\n" + match[1]) if match else ""


def first_sentence(text: str) -> str:
    """The first sentence of a paragraph without its full stop; "et al. 2020", "41, ..." and "e.g." do not end one."""
    return re.split(r"(?<!al)(?<!\.)(?<!\.\w)\. (?=[A-Z0-9`])", text)[0].rstrip(".:")
