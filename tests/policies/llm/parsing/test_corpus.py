"""Every answer of the corpus is read as it says."""

from pathlib import Path

import pytest
import yaml

from llm_coop_envs.policies.llm.parsing import (
    Choice,
    NumberQuestion,
    OptionQuestion,
    Reading,
    read_number,
    read_option,
    read_text,
)

CORPUS = yaml.safe_load((Path(__file__).parent / "corpus.yaml").read_text(encoding="utf-8"))
MOVES = (
    "right",
    "down",
    "left",
    "up",
    "stay",
    "down and right",
    "down and left",
    "up and left",
    "up and right",
)


def reader(group):
    if "number" in group:
        given = dict(group["number"])
        question = NumberQuestion(**{**given, "allowed": tuple(given.get("allowed", ())), "key": "price"})
        return lambda text, cut: read_number(text, question, truncated=cut)
    if "words" in group:
        return lambda text, cut: read_text(text, truncated=cut, **group["words"])
    if "exits" in group:
        names = group["exits"]
        other = group.get("english", names)
        choices = tuple(Choice(k, (name, english)) for k, (name, english) in enumerate(zip(names, other, strict=True)))
        question = OptionQuestion(choices, key="exit")
    else:
        names = group["moves"]
        spelled = {name: (name, name.replace(" and ", " ")) for name in MOVES}
        choices = tuple(Choice(k, spelled[name], "abcdefghi"[k]) for k, name in enumerate(names))
        every = tuple(word for words in spelled.values() for word in words)
        question = OptionQuestion(choices, every, key="move", loose=False)

    def read(text, cut):
        reading = read_option(text, question, truncated=cut)
        return Reading(reading.status, None if reading.value is None else names[reading.value], reading.rule)

    return read


def cases():
    for group in CORPUS:
        read = reader(group)
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
