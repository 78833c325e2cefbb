"""How many words a page of the documentation has: what a reader reads, without markup.

    python tests/tools/page_words.py docs/*.md

Words of prose, lists and tables count. Blocks of code, comments, addresses of links, bars of tables and other signs
without a letter or digit do not.
"""

import re
import sys
from pathlib import Path

#: What is taken out before words are counted, and what stands in its place.
MARKUP = (
    (re.compile(r"^(```+|~~~+).*?^\1", re.DOTALL | re.MULTILINE), ""),
    (re.compile(r"<!--.*?-->", re.DOTALL), ""),
    (re.compile(r"\]\([^)\s]*\)"), "]"),
)


def count_words(text):
    """Count the words of a page in Markdown."""
    for pattern, replacement in MARKUP:
        text = pattern.sub(replacement, text)
    return sum(any(map(str.isalnum, word)) for word in text.split())


if __name__ == "__main__":
    counts = {path: count_words(Path(path).read_text(encoding="utf-8")) for path in sys.argv[1:]}
    for path, count in sorted(counts.items(), key=lambda item: -item[1]):
        sys.stdout.write(f"{count:6,} {path}\n")
    sys.stdout.write(f"{sum(counts.values()):6,} all\n")
