"""The page on error sentences names sentences that the program has, and the glossary is in order."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ROOMS = ("llm_coop_envs", "policies")
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")


def quoted_sentences():
    """Yield the pieces of error sentences in the first column of the page's tables."""
    for row in re.findall(r"^\| (`.+?) \| .+ \|$", PAGE, re.MULTILINE):
        if "(from pip)" not in row:
            yield from re.findall(r"`([^`]+)`", row)


@pytest.fixture(scope="module")
def program():
    """All source text, with string literals joined that stand one below the other."""
    paths = [path for room in ROOMS for path in (ROOT / room).rglob("*.py") if "node_modules" not in path.parts]
    return re.sub(r'"\n *f?"', "", "\n".join(path.read_text(encoding="utf-8") for path in paths))


def test_sentences_are_looked_for():
    assert len(list(quoted_sentences())) > 25


@pytest.mark.parametrize("sentence", list(quoted_sentences()))
def test_the_program_says_so(sentence, program):
    assert sentence in program


def test_the_glossary_is_in_alphabetical_order():
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = re.findall(r"^\| ([^|]+?) \| ", text, re.MULTILINE)[1:]
    assert len(words) > 30
    assert words == sorted(words, key=str.lower)
