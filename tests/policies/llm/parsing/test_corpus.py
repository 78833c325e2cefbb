"""Every answer of the corpus is read as it says."""

from pathlib import Path

import pytest
import reading_measured as measuring

CORPUS = measuring.load(Path(__file__).parent / "corpus.yaml")


def cases():
    for group in CORPUS:
        read = measuring.reader(group)
        for number, (text, expected, *finish) in enumerate(group["cases"]):
            name = f"{group['about'][:24]}-{number}-{text[:30]!r}"
            yield pytest.param(read, text, expected, finish == ["length"], id=name.encode("ascii", "replace").decode())


def wanted(expected):
    if not isinstance(expected, str) or not expected.startswith("!"):
        return "ok", expected
    status, _, value = expected[1:].partition(" ")
    return status, float(value) if value else None


@pytest.mark.parametrize(("read", "text", "expected", "cut"), list(cases()))
def test_an_answer_is_read(read, text, expected, cut):
    reading = read(text, cut)
    assert (reading.status, reading.value) == wanted(expected), reading


def test_the_corpus_is_large_and_has_no_case_twice():
    seen = [(group["about"], *map(str, case)) for group in CORPUS for case in group["cases"]]
    assert len(seen) >= 300
    assert len(set(seen)) == len(seen)
