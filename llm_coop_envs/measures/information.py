"""Information use: whether players choose what they heard announced, compared with a permutation control.

A choice counts if its player heard others name numbers or options in the same round. `followed` is the share of such
choices that are among the values heard; `moved` the share that left the player's previous choice in their direction.
Both also happen by chance, because players who think alike name and choose alike. The control therefore permutes what
was heard among these choices, and takes the exact mean over all permutations (no random numbers).

A share above its control means that information was used, or that something else moved along with it. Prices that drift
through an episode, for example, are announced and chosen alike in the same rounds; this raises `followed`, but hardly
`moved`. What players see is not considered, only what they hear.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.scenario import Row

RELATIVE_TOLERANCE = 1e-5
"""Two numbers that differ by this share count as the same, because texts show fewer digits than prices have."""
_ABSOLUTE_TOLERANCE = 1e-9


class InformedChoice(NamedTuple):
    """A choice of a player who heard others name something.

    Attributes:
        previous: the player's previous choice, if there was one.
        chosen: the choice.
        heard: the numbers or options that it heard named, one or more.
    """

    previous: float | None
    chosen: float
    heard: tuple[float, ...]


def information_measures(choices: Sequence[InformedChoice], *, numbers: bool) -> Row:
    """Compute one episode's measures, as `ABOUT` defines them.

    Args:
        choices: The choices of players who heard something.
        numbers: Whether players choose numbers, which have a direction; otherwise they choose options.
    """
    followed = _followed(choices, [True] * len(choices))
    # Players can move towards what they heard only if it differs from their previous choice.
    movable = [
        choice
        for choice in choices
        if choice.previous is not None and not all(is_same(value, choice.previous) for value in choice.heard)
    ]
    if numbers:
        moved = _moved_towards(movable)
    else:
        moved = _followed(movable, [choice.chosen != choice.previous for choice in movable])
    return {
        "heard_choices": len(choices),
        **dict(zip(("followed_share", "followed_by_chance"), followed, strict=True)),
        **dict(zip(("moved_share", "moved_by_chance"), moved, strict=True)),
    }


def _followed(choices: Sequence[InformedChoice], is_counted: Sequence[bool]) -> tuple[float | None, float | None]:
    """Return the share of counted choices that were heard named, and its mean over all permutations.

    The second value is `None` if all players heard the same, because then no permutation changes anything.
    """
    if not choices:
        return None, None
    chosen, counted = np.array([choice.chosen for choice in choices]), np.array(is_counted)
    # Each choice's values are distinct here, so counting values counts choices.
    heard = [_distinct(choice.heard) for choice in choices]
    named = np.array([value for values in heard for value in values])
    choice_index = np.repeat(np.arange(len(choices)), [len(values) for values in heard])
    distance = np.abs(named - chosen[choice_index])
    # The tolerance of `is_same`, for all pairs at once.
    scale = np.maximum(np.abs(named), np.abs(chosen[choice_index]))
    matches = choice_index[distance <= np.maximum(RELATIVE_TOLERANCE * scale, _ABSOLUTE_TOLERANCE)]
    has_followed = np.bincount(matches, minlength=len(choices)) > 0
    by_chance = _count_occurrences(np.sort(named), chosen) / len(choices)
    all_alike = all(values == heard[0] for values in heard)
    return float((has_followed & counted).mean()), None if all_alike else float((by_chance * counted).mean())


def _moved_towards(choices: Sequence[InformedChoice]) -> tuple[float | None, float | None]:
    """Return the share of choices that moved towards the mean of what was heard, and its mean over all permutations.

    Example: after 3.0, the choice 5.0 moved towards a mean of 7.0, and also towards one of 4.0.
    """
    if not choices:
        return None, None
    previous, chosen = np.array([[choice.previous, choice.chosen] for choice in choices], dtype=np.float64).T
    means = np.array([math.fsum(choice.heard) / len(choice.heard) for choice in choices])
    moved_up, moved_down = _is_above(chosen, previous), _is_above(previous, chosen)
    moved = (moved_up & _is_above(means, previous) | moved_down & _is_above(previous, means)).mean()
    ordered, n = np.sort(means), len(means)
    above = 1 - np.searchsorted(ordered, previous + _tolerance(previous), side="right") / n
    below = np.searchsorted(ordered, previous - _tolerance(previous), side="left") / n
    by_chance = np.where(moved_up, above, np.where(moved_down, below, 0.0)).mean()
    return float(moved), None if all(is_same(mean, means[0]) for mean in means) else float(by_chance)


def _tolerance(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """How far off a number may be and still count as the same."""
    return np.maximum(RELATIVE_TOLERANCE * np.abs(values), _ABSOLUTE_TOLERANCE)


def _is_above(first: NDArray[np.float64], second: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether numbers are above others and do not count as the same."""
    return np.asarray(first > second + _tolerance(second))


@functools.lru_cache(maxsize=4096)  # in a group all hear nearly the same
def _distinct(values: tuple[float, ...]) -> list[float]:
    distinct: list[float] = []
    for value in sorted(set(values)):
        if not distinct or not is_same(value, distinct[-1]):
            distinct.append(value)
    return distinct


def is_same(first: float, second: float) -> bool:
    """Whether two announced or chosen values count as the same."""
    return math.isclose(first, second, rel_tol=RELATIVE_TOLERANCE, abs_tol=_ABSOLUTE_TOLERANCE)


def _count_occurrences(ordered: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count how often each value occurs in a sorted array, within the tolerance."""
    tolerance = _tolerance(values)
    end = np.searchsorted(ordered, values + tolerance, side="right")
    counts: NDArray[np.int64] = end - np.searchsorted(ordered, values - tolerance, side="left")
    return counts


_CHANCE = "what it would be on average if what was heard were dealt anew among these choices, 0 to 1; missing without"
ABOUT: Mapping[str, str] = {
    "heard_choices": "Choices of players who heard others name a number or option in the same round, a count from 0.",
    "followed_share": "Share of heard_choices that are among what was heard, 0 to 1; missing without any.",
    "followed_by_chance": f"followed_share by chance: {_CHANCE} any, and where all heard the same.",
    "moved_share": "Share of choices after a player's first that left the one before towards what was heard (numbers: "
    "towards its mean; options: to one of them), among those that heard something else named, 0 to 1; missing without "
    "any.",
    "moved_by_chance": f"moved_share by chance: {_CHANCE} any, and where all heard the same.",
}
