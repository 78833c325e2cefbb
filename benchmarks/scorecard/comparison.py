"""Comparison of two scorecards."""

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
    """Find the differences between two scorecards that survive Holm's correction over all lines.

    The unit is the set of parameters, with the mean of its scores. A line is compared in pairs if all of its sets have
    the same seeds in both, as with one held-out seed; otherwise as two unpaired samples.

    Args:
        first: The reference scorecard: a file, or a run folder.
        second: The scorecard that is compared with it.

    Returns:
        A sentence for each difference, and one on the tests.

    Raises:
        RunError: One is no scorecard or was changed, they are of different versions, or have too few sets.
    """
    first_card, second_card = read_card(first), read_card(second)
    for name in ("suite", "version", "sha256"):
        if first_card[name] != second_card[name]:
            raise RunError(
                f"{second}: was played with another suite than {first} "
                f"({name} {second_card[name]} here, {first_card[name]} there); "
                "scores of different suites cannot be compared, play both with one version"
            )
    first_values, second_values = _values(first_card), _values(second_card)
    tests = [_test(*line, first_values[line], second_values[line]) for line in first_values if line in second_values]
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
    """Return the mean score of each line's sets of parameters, by their name and the seeds with a score."""
    return {
        (line["tendency"], line["scenario"]): {
            (name, *scores): float(np.mean(list(scores.values()))) for name, scores in by_set(line["values"]).items()
        }
        for line in card["lines"]
    }


def _test(
    tendency: str, scenario: str, first: Mapping[tuple[Any, ...], float], second: Mapping[tuple[Any, ...], float]
) -> Comparison:
    """Compare one line: in pairs if all sets of both cards can be paired, otherwise unpaired."""
    return Comparison.by_key(f"{tendency} ({scenario})", first, second, paired=first.keys() == second.keys())
