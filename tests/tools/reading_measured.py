"""How well the readers do on the answers in `tests/policies/llm/parsing/answers`; as a program it prints a table.

A third of the answers, drawn by a hash of their text, is held out: rules are changed by looking at the others.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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

ANSWERS = Path(__file__).parents[1] / "policies" / "llm" / "parsing" / "answers"
AGAIN = "again"
#: A reading that is the answer itself, where words were asked for.
SAME = "same"
MOVES = ("right", "down", "left", "up", "stay", "down and right", "down and left", "up and left", "up and right")
#: What became of an answer: a clear one read right, another value read, one read where there was none, one refused.
RIGHT, WRONG, GARBAGE, REFUSED = "right", "wrong", "garbage", "refused"


@dataclass(frozen=True)
class Answer:
    """One answer, its right reading (a list: one of them), and whether it is held out."""

    file: str
    kind: str
    text: str
    wanted: Any
    read: Callable[[str, bool], Reading[Any]]
    looked_at: bool = False
    cut: bool = False

    @property
    def held_out(self) -> bool:
        return not self.looked_at and hashlib.blake2b(f"{self.file}:{self.text}".encode()).digest()[0] % 3 == 0

    @functools.cached_property
    def outcome(self) -> str:
        reading = self.read(self.text, self.cut)
        wanted = self.wanted if isinstance(self.wanted, list) else [self.wanted]
        wanted = [self.text.strip() if one == SAME else one for one in wanted]
        if not reading.ok:
            return RIGHT if AGAIN in wanted else REFUSED
        if wanted == [AGAIN]:
            return GARBAGE
        value: Any = reading.value
        close = any(value == one or (isinstance(one, int | float) and abs(value - one) < 1e-9) for one in wanted)
        return RIGHT if close else WRONG


def reader(question: dict[str, Any]) -> Callable[[str, bool], Reading[Any]]:
    """What reads the answers to a question as the files give it."""
    if "words" in question:
        return lambda text, cut: read_text(text, truncated=cut, **question["words"])
    if "number" in question:
        given = {"key": "price", **question["number"]}
        asked = NumberQuestion(**{**given, "allowed": tuple(given.get("allowed", ()))})
        return lambda text, cut: read_number(text, asked, truncated=cut)
    if "exits" in question:
        names = question["exits"]
        other = question.get("english", names)
        choices = tuple(Choice(k, (name, english)) for k, (name, english) in enumerate(zip(names, other, strict=True)))
        options = OptionQuestion(choices, key="exit")
    else:
        names = question["moves"]
        spelled = {name: (name, name.replace(" and ", " ")) for name in MOVES}
        cells = [(f"({row}, {col})",) for row, col in question.get("cells", ())] or [()] * len(names)
        choices = tuple(
            Choice(k, spelled[name] + cell, "abcdefghi"[k])
            for k, (name, cell) in enumerate(zip(names, cells, strict=True))
        )
        every = tuple(word for words in spelled.values() for word in words)
        options = OptionQuestion(choices, every, key="move")

    def read(text: str, cut: bool) -> Reading[Any]:
        reading = read_option(text, options, truncated=cut)
        return Reading(reading.status, None if reading.value is None else names[reading.value], reading.rule)

    return read


def load(path: Path) -> Any:
    """A file of answers, by libyaml if it is there: every worker reads them all to know what there is to test."""
    return yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))


@functools.cache
def answers() -> tuple[Answer, ...]:
    """All answers, file by file."""
    return tuple(_answers())


def _answers() -> Iterator[Answer]:
    for path in sorted(ANSWERS.glob("*.yaml")):
        loaded = load(path)
        for group in loaded if isinstance(loaded, list) else [loaded]:
            read = reader(group["question"])
            for kind, cases in group["classes"].items():
                for text, wanted, *cut in cases:
                    yield Answer(path.stem, kind, text, wanted, read, group.get("looked_at", False), bool(cut))


def main(shown: bool) -> None:
    """Print the table; with `shown`, also each answer that is not held out and not read right."""
    table: dict[tuple[str, str], Counter[str]] = {}
    for answer in answers():
        outcome = answer.outcome
        part = "held out" if answer.held_out else "known"
        for row in ((answer.file, answer.kind), (answer.file, part), ("all", answer.kind), ("all", part)):
            table.setdefault(row, Counter())[outcome] += 1
        if shown and outcome != RIGHT and not answer.held_out:
            print(
                f"{outcome:8}{answer.file} {answer.kind}: {answer.text!r} -> {answer.read(answer.text, answer.cut)}, "
                f"not {answer.wanted!r}"
            )
    print(f"{'':34}{'n':>5}{RIGHT:>8}{WRONG:>8}{GARBAGE:>8}{REFUSED:>8}")
    for (file, kind), counts in sorted(table.items()):
        n = counts.total()
        print(
            f"{file + ' ' + kind:34}{n:5}{counts[RIGHT] / n:8.1%}"
            + "".join(f"{counts[what]:8}" for what in (WRONG, GARBAGE, REFUSED))
        )


if __name__ == "__main__":
    main("--show" in sys.argv)
