"""What makes a figure, and how it says that it cannot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llm_coop_envs.benchmarks.report.blocks import colours
from llm_coop_envs.benchmarks.report.gather import Gathered, Played

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class NotDrawn(Exception):
    """The run does not hold what a figure shows; the message says what is missing."""


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """One figure.

    Attributes:
        name: its files' name without ending.
        caption: what can be seen, with the sources of published values; some sentences.
        figure: the figure.
    """

    name: str
    caption: str
    figure: Figure


def need(gathered: Gathered, scenario: str) -> list[Played]:
    """The conditions of a scenario.

    Raises:
        NotDrawn: there are none.
    """
    found = gathered.of(scenario)
    if not found:
        raise NotDrawn(f"the run has no finished episode of {scenario}")
    return found


def shades(conditions: Sequence[Played]) -> dict[str, str]:
    """A colour for each condition, the one that reports give it."""
    return colours([one.condition for one in conditions])
