"""The contest's rules on arrays: target, winners, rewards, alone or in groups.

Integer choices are settled exactly. The target is a fraction P/Q of Python integers, and who is nearest is decided
between the largest number at or below it and the smallest above it, so no product of choices and Q is ever formed in
64 bits. Real choices are settled in double precision; distances that differ by no more than `SLACK` x the range count
as equal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.kbc.settings import KBCSettings

# The mean of a million doubles carries a relative error near 1e-15; two-sided ties need more room than that.
SLACK = 1e-12
_INT64_ROOM = 2**62

Numbers = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Settled:
    """A settled round.

    Attributes:
        mean: of all choices; in group play, of the groups' numbers.
        target: the winning number.
        winners: (players,) bool.
        count: how many won: players, or groups in group play. 0 only under the tolerance rule.
        prize: what each winner gets, in currency (units x `unit`).
        rewards: (players,) float64, `prize` for winners and 0 for the others.
        group_numbers: (groups,) float64, the groups' numbers; `None` without groups.
        winning_groups: (groups,) bool; `None` without groups.
    """

    mean: float
    target: float
    winners: NDArray[np.bool_]
    count: int
    prize: float
    rewards: NDArray[np.float64]
    group_numbers: NDArray[Any] | None = None
    winning_groups: NDArray[np.bool_] | None = None


def settle(choices: Numbers, settings: KBCSettings, there: NDArray[np.intp] | None = None) -> Settled:
    """Settle one round.

    Args:
        choices: (players,) the numbers named, each in [`settings.low`, `settings.high`]; int64 when
            `settings.choices` is `"integer"`, else float64.
        settings: the contest.
        there: who takes part, ascending, one of each group at least; everybody by default. Numbers of others are not
            looked at, and they win nothing.

    Raises:
        ValueError: not one number for each player, or no integers where the contest asks for them.
    """
    if choices.shape != (settings.players,):
        raise ValueError(f"choices has shape {choices.shape}; it must be ({settings.players},), a number a player")
    if settings.integer and choices.dtype.kind != "i":
        raise ValueError(f"choices has dtype {choices.dtype}; a contest of whole numbers needs int64")
    # In group play the groups compete by their means, else everyone by the number named.
    grouped = settings.groups is not None
    sizes = np.asarray(settings.groups or (), dtype=np.int64)
    everybody = len(choices)
    if there is not None:
        choices = choices[there]
        sizes = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[there]) if grouped else sizes
    numbers: NDArray[Any] = choices
    scaled: NDArray[Any] = choices
    scale = 1
    if grouped:
        sums = np.add.reduceat(choices, np.cumsum(sizes) - sizes)
        numbers = sums / sizes
        if settings.integer:
            scaled, scale = _common_scale(sums, sizes)
    if settings.integer:
        exact_mean = Fraction(int(scaled.sum()), scale * len(scaled))
        target, tolerance = settings.ratio * exact_mean + settings.offset, settings.tolerance
        aim, reach = (target * scale, tolerance * scale) if grouped else (target, tolerance)
        winning = exact_winners(scaled, aim, settings.winner_rule, reach)
        mean, shown = float(exact_mean), float(target)
    else:
        mean = float(numbers.mean())
        shown = real_target(mean, settings.ratio, settings.offset)
        values = numbers.astype(np.float64, copy=False)
        slack = SLACK * (settings.high - settings.low)
        winning = real_winners(values, shown, settings.winner_rule, float(settings.tolerance), slack)
    count = int(np.count_nonzero(winning))
    each = prize(count, settings.reward_rule, settings.unit)
    winners = np.repeat(winning, sizes) if grouped else winning
    if there is not None:
        won, winners = winners, np.zeros(everybody, dtype=np.bool_)
        winners[there] = won
    own: tuple[Any, Any] = (numbers, winning) if grouped else (None, None)
    return Settled(mean, shown, winners, count, each, np.where(winners, each, 0.0), *own)


def real_target(mean: float, ratio: Fraction, offset: Fraction) -> float:
    """Ratio x mean + offset in double precision; dividing last keeps whole results whole (2/3 x 45 is 30)."""
    return ratio.numerator * mean / ratio.denominator + float(offset)


def exact_winners(values: NDArray[Any], target: Fraction, rule: str, tolerance: Fraction) -> NDArray[np.bool_]:
    """Who wins among integers, without rounding.

    Args:
        values: (n,) integers (int64, or Python integers in an object array), n >= 1.
        target: the exact target.
        rule: `"nearest"`, `"first_value"` or `"tolerance"`, as in `KBCSettings.winner_rule`.
        tolerance: the largest winning distance under `"tolerance"`.
    """
    if rule == "tolerance":
        least, most = math.ceil(target - tolerance), math.floor(target + tolerance)
        return np.asarray((values >= least) & (values <= most), dtype=np.bool_)
    floor = target.numerator // target.denominator
    under = np.asarray(values <= floor, dtype=np.bool_)
    low_side, high_side = values[under], values[~under]
    below = int(low_side.max()) if low_side.size else None
    above = int(high_side.min()) if high_side.size else None
    if below is None or above is None:
        return np.asarray(values == (above if below is None else below), dtype=np.bool_)
    # The sign of (target - below) - (above - target), times the target's denominator.
    balance = 2 * target.numerator - (below + above) * target.denominator
    if balance:
        return np.asarray(values == (below if balance < 0 else above), dtype=np.bool_)
    tied = np.asarray((values == below) | (values == above), dtype=np.bool_)
    return _first_value(values, tied, 0) if rule == "first_value" else tied


def real_winners(
    values: NDArray[np.float64], target: float, rule: str, tolerance: float, slack: float
) -> NDArray[np.bool_]:
    """Who wins among real numbers, in double precision.

    Args:
        values: (n,) float64, n >= 1.
        target: the target.
        rule: as in `exact_winners`.
        tolerance: the largest winning distance under `"tolerance"`.
        slack: distances that differ by no more than this count as equal.
    """
    distance = np.abs(values - target)
    limit = tolerance if rule == "tolerance" else float(distance.min())
    near = np.asarray(distance <= limit + slack, dtype=np.bool_)
    return _first_value(values, near, slack) if rule == "first_value" else near


def prize(count: int, rule: str, unit: float) -> float:
    """What each of `count` winners gets.

    A single winner gets one unit. Several get nothing (`rule="exclusive"`), one unit each (`"independent"`), or as
    many units each as there are winners (`"amplified"`). Source: the reward rules of Wu et al. 2024 ("Shall We Talk"),
    which their programs state to the players and never pay.
    """
    if count == 0 or (count > 1 and rule == "exclusive"):
        return 0.0
    return float(unit * count) if rule == "amplified" else float(unit)


def fixed_point(settings: KBCSettings) -> float:
    """The number that everyone naming it makes the target, moved into the range; `low` when there is none.

    offset / (1 - ratio): 0 for two thirds of the mean, 10 for half of the mean plus 5 (Pan et al. 2024). With a ratio
    above 1 repeated replies run away from that point, and the range's end they run to is given instead.
    """
    middle = (Fraction(settings.low) + Fraction(settings.high)) / 2
    reply = settings.ratio * middle + settings.offset
    if settings.ratio < 1:
        point = settings.offset / (1 - settings.ratio)
        return float(min(max(point, Fraction(settings.low)), Fraction(settings.high)))
    return float(settings.high if reply > middle else settings.low)


def _first_value(values: NDArray[Any], near: NDArray[np.bool_], slack: float) -> NDArray[np.bool_]:
    """Of the nearest, those on the side of the first one."""
    first = values[int(near.argmax())]
    return np.asarray(near & (abs(values - first) <= slack), dtype=np.bool_)


def _common_scale(sums: NDArray[Any], widths: NDArray[np.int64]) -> tuple[NDArray[Any], int]:
    """The groups' means as integers over one denominator, and that denominator.

    The least common multiple of the sizes; in Python's integers where 64 bits could overflow (many unlike sizes).
    """
    distinct = np.unique(widths).tolist()
    scale = math.lcm(*distinct)
    largest = int(np.abs(sums).max()) * (scale // min(distinct)) * len(sums)
    if max(largest, scale) < _INT64_ROOM:
        return sums * (scale // widths), scale
    return np.array([int(s) * (scale // int(w)) for s, w in zip(sums, widths, strict=True)], dtype=object), scale
