"""What two scorecards differ by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from llm_coop_envs.benchmarks.scorecard.card import CARD, by_set, read_card
from llm_coop_envs.errors import RunError
from llm_coop_envs.reports.contrast_text import surviving_differences
from llm_coop_envs.statistics.comparison import ALPHA, Comparison, holm, is_underpowered


def is_card(path: Path) -> bool:
    """Whether a path is a file, or a run folder with a scorecard."""
    return path.is_file() or (path / CARD).is_file()


def compare_cards(first: Path, second: Path) -> tuple[list[str], str]:
    """The differences between two scorecards that survive Holm, all lines being one family.

    The unit is the set of parameters, with the mean of its scores. Sets with the same seeds are pairs if all of a line
    are, as with the same held-out seed; else the sets of both are samples that are not paired.

    Args:
        first: the scorecard that is compared with: a file, or a run folder.
        second: the other one.

    Returns:
        A sentence for each difference, and one that says what was tested.

    Raises:
        RunError: one is no scorecard or was changed, they are of different versions, or have too few sets.
    """
    one, other = read_card(first), read_card(second)
    for name in ("suite", "version", "sha256"):
        if one[name] != other[name]:
            raise RunError(
                f"{second}: was played with another suite than {first} ({name} {other[name]} here, {one[name]} there); "
                "scores of different suites cannot be compared, play both with one version"
            )
    before, after = _values(one), _values(other)
    tests = [_test(*line, before[line], after[line]) for line in before if line in after]
    tests = [test for test in tests if test.testable]
    if not tests:
        raise RunError(f"{second}: too few sets of parameters: no line has two with scores, or more, in both")
    adjusted = holm([test.p or 0.0 for test in tests])
    if is_underpowered(tests):
        smallest = min(test.smallest_p for test in tests)
        raise RunError(
            f"{second}: too few sets of parameters: the smallest p that they can reach is {smallest:.3g}, too much for "
            f"any of {len(tests)} lines; play both without --quick"
        )
    few = sum(test.smallest_p * len(tests) > ALPHA for test in tests)
    named_tests = [(test.measure, test, p) for test, p in zip(tests, adjusted, strict=True)]
    sentences, summary = surviving_differences(named_tests, first, second, unit="sets of parameters")
    return sentences, summary + (f"; {few} lines have too few sets to tell" if few else "") + "."


def _values(card: Mapping[str, Any]) -> dict[tuple[str, str], dict[tuple[Any, ...], float]]:
    """The mean scores of each line's sets of parameters, by their name and the seeds that have a score."""
    return {
        (line["tendency"], line["scenario"]): {
            (name, *scores): float(np.mean(list(scores.values()))) for name, scores in by_set(line["values"]).items()
        }
        for line in card["lines"]
    }


def _test(
    tendency: str, scenario: str, first: Mapping[tuple[Any, ...], float], second: Mapping[tuple[Any, ...], float]
) -> Comparison:
    """A line's sets: in pairs if both halves can be paired, else all sets of both."""
    return Comparison.by_key(f"{tendency} ({scenario})", first, second, paired=first.keys() == second.keys())
