"""The rules of the contest on arrays: target, winners and rewards, with and without groups.

Integer choices are settled exactly. The target is a fraction P/Q of Python integers. The nearest number is either the
largest at or below the target or the smallest above it, so that no product of choices and Q is formed in 64 bits: with
the target 70/3, of the numbers 20, 23, 24 and 30 only 23 and 24 are compared. Real choices are settled in double
precision; distances that differ by no more than `SLACK` x the range count as equal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.kbc.settings import KBCSettings

# The mean of a million doubles has a relative error near 1e-15. Ties on both sides of the target need more room than
# that: 20 and 30 both win for the target 25.000000000000004.
SLACK = 1e-12
_INT64_ROOM = 2**62

Numbers = NDArray[np.int64] | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of a round.

    Attributes:
        mean: of all choices; in group play, of the groups' numbers.
        target: the winning number.
        winners: (players,) bool.
        count: the number of winners: players, or groups in group play. 0 only under the tolerance rule.
        prize: the reward of each winner, in currency (units x `unit`).
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


def settle(choices: Numbers, settings: KBCSettings, participants: NDArray[np.intp] | None = None) -> Settled:
    """Settle one round.

    Args:
        choices: (players,) the numbers named, each in [`settings.low`, `settings.high`]; int64 when
            `settings.choices` is `"integer"`, else float64.
        settings: the contest.
        participants: the indices of the players who take part, ascending, at least one of each group; by default all.
            The numbers of the others are ignored, and they win nothing.

    Raises:
        ValueError: there is not one number for each player, or the numbers are no integers where these are required.
    """
    if choices.shape != (settings.players,):
        raise ValueError(f"choices has shape {choices.shape}; it must be ({settings.players},), a number a player")
    if settings.integer and choices.dtype.kind != "i":
        raise ValueError(f"choices has dtype {choices.dtype}; a contest of whole numbers needs int64")
    # In group play groups compete by the means of their members, otherwise players by the numbers they named.
    grouped = settings.groups is not None
    sizes = np.asarray(settings.groups or (), dtype=np.int64)
    n_players = len(choices)
    if participants is not None:
        choices = choices[participants]
        sizes = np.bincount(np.repeat(np.arange(len(sizes)), sizes)[participants]) if grouped else sizes
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
        of_all = exact_mean
        if settings.statistic != "mean":
            of_all = exact_statistic(scaled, settings.statistic) / scale
        target, tolerance = settings.ratio * of_all + settings.offset, settings.tolerance
        aim, reach = (target * scale, tolerance * scale) if grouped else (target, tolerance)
        winning = exact_winners(scaled, aim, settings.winner_rule, reach)
        mean, target_value = float(exact_mean), float(target)
    else:
        mean = float(numbers.mean())
        of_all_values = {"mean": mean, "median": float(np.median(numbers)), "max": float(numbers.max())}
        target_value = real_target(of_all_values[settings.statistic], settings.ratio, settings.offset)
        values = numbers.astype(np.float64, copy=False)
        slack = SLACK * (settings.high - settings.low)
        winning = real_winners(values, target_value, settings.winner_rule, float(settings.tolerance), slack)
    count = int(np.count_nonzero(winning))
    each = prize(count, settings.reward_rule, settings.unit)
    winners = np.repeat(winning, sizes) if grouped else winning
    if participants is not None:
        won, winners = winners, np.zeros(n_players, dtype=np.bool_)
        winners[participants] = won
    own: tuple[Any, Any] = (numbers, winning) if grouped else (None, None)
    return Settled(mean, target_value, winners, count, each, np.where(winners, each, 0.0), *own)


def exact_statistic(values: NDArray[Any], statistic: str) -> Fraction:
    """The median or the largest of some integers."""
    if statistic == "max":
        return Fraction(int(values.max()))
    in_order = np.sort(values)
    middle = len(in_order) // 2
    if len(in_order) % 2:
        return Fraction(int(in_order[middle]))
    return Fraction(int(in_order[middle - 1]) + int(in_order[middle]), 2)


def real_target(of_all: float, ratio: Fraction, offset: Fraction) -> float:
    """Ratio x mean (or median, or maximum) + offset in double precision.

    Dividing last keeps whole results whole: 2/3 x 45 is 30.
    """
    return ratio.numerator * of_all / ratio.denominator + float(offset)


def exact_winners(values: NDArray[Any], target: Fraction, rule: str, tolerance: Fraction) -> NDArray[np.bool_]:
    """Find the winners among integers, without rounding.

    At equal distance on both sides, such as 20 and 30 for the target 25, both numbers win under `"nearest"`. Under
    `"first_value"` only the number of the first of these players wins (the first program of Wu et al. 2024).

    Args:
        values: (n,) integers (int64, or Python integers in an object array), n >= 1.
        target: the exact target.
        rule: `"nearest"`, `"first_value"` or `"tolerance"`, as in `KBCSettings.winner_rule`.
        tolerance: the largest winning distance under `"tolerance"`.
    """
    if rule == "tolerance":
        lowest, highest = math.ceil(target - tolerance), math.floor(target + tolerance)
        return np.asarray((values >= lowest) & (values <= highest), dtype=np.bool_)
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
    """Find the winners among real numbers, in double precision.

    Args:
        values: (n,) float64, n >= 1.
        target: the target.
        rule: as in `exact_winners`.
        tolerance: the largest winning distance under `"tolerance"`.
        slack: distances that differ by no more than this count as equal: 1e-10 in a range of 0 to 100.
    """
    distance = np.abs(values - target)
    limit = tolerance if rule == "tolerance" else float(distance.min())
    near = np.asarray(distance <= limit + slack, dtype=np.bool_)
    return _first_value(values, near, slack) if rule == "first_value" else near


def prize(count: int, rule: str, unit: float) -> float:
    """The reward of each of `count` winners, in currency.

    A single winner gets one unit. Several get nothing (`rule="exclusive"`), one unit each (`"independent"`), or as
    many units each as there are winners (`"amplified"`). Source: the reward rules of Wu et al. 2024 ("Shall We Talk"),
    which their programs state to the players and never pay.
    """
    if count == 0 or (count > 1 and rule == "exclusive"):
        return 0.0
    return float(unit * count) if rule == "amplified" else float(unit)


def fixed_point(settings: KBCSettings) -> float:
    """The number that is its own target if everyone names it, moved into the range.

    It is offset / (1 - ratio): 0 for two thirds of the mean, 10 for half of the mean plus 5 (Pan et al. 2024). With a
    ratio of 1 or more repeated replies run to an end of the range, which is returned instead: `high` if the reply to
    the middle is above it, else `low`.
    """
    middle = (Fraction(settings.low) + Fraction(settings.high)) / 2
    reply = settings.ratio * middle + settings.offset
    if settings.ratio < 1:
        point = settings.offset / (1 - settings.ratio)
        return float(min(max(point, Fraction(settings.low)), Fraction(settings.high)))
    return float(settings.high if reply > middle else settings.low)


def _first_value(values: NDArray[Any], near: NDArray[np.bool_], slack: float) -> NDArray[np.bool_]:
    """Of the nearest numbers, those equal to the first in the players' order."""
    first = values[int(near.argmax())]
    return np.asarray(near & (abs(values - first) <= slack), dtype=np.bool_)


def _common_scale(sums: NDArray[Any], widths: NDArray[np.int64]) -> tuple[NDArray[Any], int]:
    """The groups' means as integers over one denominator, and that denominator.

    The denominator is the least common multiple of the sizes: means 10/2 and 9/3 become 30 and 18 over 6. Python's
    integers are used where 64 bits could overflow (many unlike sizes).
    """
    distinct = np.unique(widths).tolist()
    scale = math.lcm(*distinct)
    largest = int(np.abs(sums).max()) * (scale // min(distinct)) * len(sums)
    if max(largest, scale) < _INT64_ROOM:
        return sums * (scale // widths), scale
    return np.array([int(s) * (scale // int(w)) for s, w in zip(sums, widths, strict=True)], dtype=object), scale
