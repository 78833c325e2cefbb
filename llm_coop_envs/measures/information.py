"""Whether what players heard tells what they chose, by rules, against a control in which messages are dealt anew.

For each choice of somebody who heard others name numbers or options in the same round it is counted whether it is one
of these, and whether it left the player's choice before in their direction. Both also happen by chance: where players
think alike, they name and choose the same. So the same is counted with what was heard dealt anew among these choices,
as the mean over all ways to deal (no random numbers). What is above that was used, or goes with something that was:
prices that drift through an episode are announced and chosen alike in the same rounds, which shows in `followed`, less
in `moved`. What people see is not looked at, only what they hear.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.scenario import Row

SAME = 1e-5
"""Up to which difference, as a share, two numbers count as the same: texts show fewer digits than prices have."""
_ZERO = 1e-9


class InformedChoice(NamedTuple):
    """A choice of somebody who heard others name something.

    Attributes:
        before: the player's choice before, if there was one.
        chosen: the choice.
        heard: the numbers or options that it heard named, one or more.
    """

    before: float | None
    chosen: float
    heard: tuple[float, ...]


def information_measures(choices: Sequence[InformedChoice], *, numbers: bool) -> Row:
    """One episode's measures, as `ABOUT` defines them.

    Args:
        choices: those of players who heard something.
        numbers: whether numbers are chosen, which have a direction; else options.
    """
    again = [one for one in choices if one.before is not None and one.heard.count(one.before) < len(one.heard)]
    followed = _followed(choices, [True] * len(choices))
    moved = _moved_towards(again) if numbers else _followed(again, [one.chosen != one.before for one in again])
    return {
        "heard_choices": len(choices),
        **dict(zip(("followed_share", "followed_by_chance"), followed, strict=True)),
        **dict(zip(("moved_share", "moved_by_chance"), moved, strict=True)),
    }


def _followed(choices: Sequence[InformedChoice], counts: Sequence[bool]) -> tuple[float | None, float | None]:
    """The share of choices that were heard named, among those that count, and the same if messages are dealt anew."""
    if not choices:
        return None, None
    chosen, counted = np.array([one.chosen for one in choices]), np.array(counts)
    # Nobody hears a number twice here, so values count choices.
    heard = [_distinct(one.heard) for one in choices]
    named = np.array([what for one in heard for what in one])
    whose = np.repeat(np.arange(len(choices)), [len(one) for one in heard])
    off = np.abs(named - chosen[whose])
    near = whose[off <= np.maximum(SAME * np.maximum(np.abs(named), np.abs(chosen[whose])), _ZERO)]  # as in `same`
    own = np.bincount(near, minlength=len(choices)) > 0
    by_chance = _holding(np.sort(named), chosen) / len(choices)
    alike = all(one == heard[0] for one in heard)
    return float((own & counted).mean()), None if alike else float((by_chance * counted).mean())


def _moved_towards(choices: Sequence[InformedChoice]) -> tuple[float | None, float | None]:
    """The share of choices that went from the one before towards the mean of what was heard, and by chance."""
    if not choices:
        return None, None
    before, chosen = np.array([[one.before, one.chosen] for one in choices], dtype=np.float64).T
    means = np.array([sum(one.heard) / len(one.heard) for one in choices])
    moved = ((chosen - before) * (means - before) > 0).mean()
    ordered, n = np.sort(means), len(means)
    above = 1 - np.searchsorted(ordered, before, side="right") / n
    below = np.searchsorted(ordered, before, side="left") / n
    by_chance = np.where(chosen > before, above, np.where(chosen < before, below, 0.0)).mean()
    return float(moved), None if (means == means[0]).all() else float(by_chance)


@functools.lru_cache(maxsize=4096)  # in a group all hear nearly the same
def _distinct(values: tuple[float, ...]) -> list[float]:
    found: list[float] = []
    for value in sorted(set(values)):
        if not found or not same(value, found[-1]):
            found.append(value)
    return found


def same(first: float, second: float) -> bool:
    """Whether two announced or chosen values count as the same."""
    return math.isclose(first, second, rel_tol=SAME, abs_tol=_ZERO)


def _holding(ordered: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.int64]:
    """How often each value is among ordered ones."""
    off = np.maximum(SAME * np.abs(values), _ZERO)
    last = np.searchsorted(ordered, values + off, side="right")
    found: NDArray[np.int64] = last - np.searchsorted(ordered, values - off, side="left")
    return found


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
