"""Pages stay short, and so does the documentation as a whole."""

from pathlib import Path

from page_words import count_words

DOCS = Path(__file__).parents[3] / "docs"
MOST_OF_A_PAGE, MOST_OF_A_GENERATED_PAGE, MOST_OF_ALL = 1_500, 1_500, 28_500
GENERATED = "<!-- Written by"  # from docstrings and records, so that a new setting makes it longer


def test_what_counts_as_a_word():
    page = """# Two words

<!-- a comment -->
| a | **b** |
|---|---|
| `c` d | [two words](address.md#a-place) |

```bash
llm-coop run --limit 6
```
- A last one.
"""
    assert count_words(page) == 2 + 2 + 4 + 3


def test_no_page_is_too_long():
    pages = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    counts = {name: count_words(page) for name, page in pages.items()}
    most = {name: MOST_OF_A_GENERATED_PAGE if GENERATED in page else MOST_OF_A_PAGE for name, page in pages.items()}
    assert {name: count for name, count in counts.items() if count > most[name]} == {}
    assert {name for name, page in pages.items() if GENERATED in page} >= {"bertrand.md", "kbc.md", "q_learning.md"}
    assert len(counts) > 40
    assert sum(counts.values()) <= MOST_OF_ALL


def test_the_front_page_is_short():
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert len(readme.split()) <= 700  # with code and bars of tables
