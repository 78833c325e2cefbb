"""The number contest in batches: thousands of contests settled at once, integers exactly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.settings import OWN
from llm_coop_envs.kbc.env import KBCEnv
from llm_coop_envs.kbc.rules import SLACK, prize, real_target
from llm_coop_envs.kbc.settings import KBCSettings
from llm_coop_envs.kbc.views import DECIMALS, scale_numbers
from llm_coop_envs.wrappers.batch import BatchEnv, Copies, Flags, Played, Rows

# Sums of numbers whose targets are computed in advance: 24 players from 0 to 100 have 2,401.
_TABLE = 30_000

Numbers = NDArray[Any]


class Aims(NamedTuple):
    """What some exact targets say of integers; one value per target in each array.

    Attributes:
        floor: the largest integer at or below the target.
        twice: the largest integer at or below twice the target.
        is_half: whether twice the target is an integer.
        lowest: the lowest integer within the tolerance.
        highest: the highest one.
        announced: the target as it is announced, scaled.
    """

    floor: NDArray[np.int64]
    twice: NDArray[np.int64]
    is_half: Flags
    lowest: NDArray[np.int64]
    highest: NDArray[np.int64]
    announced: Rows


class KBCBatch(BatchEnv):
    """Copies of a contest without talk and groups; see `BatchEnv`, and `KBCEnv` for choices, rewards and features.

    Args:
        env: the contest.
        copies: how many of them.
    """

    off: ClassVar[Mapping[str, Any]] = {**BatchEnv.off, "groups": None}
    kept = ("_made", "_numbers")

    def __init__(self, env: KBCEnv, copies: int) -> None:
        super().__init__(env, copies)
        self._settings: KBCSettings = env.settings
        env.begin(0)
        self._first = env.features()
        self._limit = min(self._settings.decisions, env._horizon or self._settings.decisions)
        counts = range(self._settings.players + 1)
        self._prizes = np.array([prize(k, self._settings.reward_rule, self._settings.unit) for k in counts])
        self._made = np.zeros(copies, dtype=np.int64)
        # The numbers named last, counted from the lowest; what stands before the first decision is not shown.
        self._numbers: Numbers = np.zeros(self._shape, dtype=np.int64 if self._settings.integer else np.float64)
        self._table: Aims | None = None
        keys = 1 + self._key_of(np.full((1, self._settings.players), self._top))[0] if self._settings.integer else 0
        if 0 < keys <= _TABLE:
            self._table = self._aims(np.arange(keys))

    @property
    def _top(self) -> int:
        """The largest integer choice."""
        return int(self._settings.high - self._settings.low)

    def _begin(self, copies: Copies) -> None:
        self._made[copies] = 0
        self._numbers = self._numbers.copy()  # they may be the caller's own array
        self._numbers[copies] = 0 if self._settings.integer else float(self._settings.low)
        self.observations[copies] = self._first

    def _play(self, choices: Numbers) -> Played:
        settings = self._settings
        numbers, illegal = self._usable(choices)
        winners, announced = self._integer_winners(numbers) if settings.integer else self._real_winners(numbers)
        rewards = winners * self._prizes.take(np.count_nonzero(winners, axis=1))[:, None]
        self._made += 1
        self._numbers = numbers
        self.observations = self._rows(numbers, announced)
        over = self._made >= self._limit
        decided = self._made >= settings.decisions
        ends = [np.repeat(end, settings.players).reshape(self._shape) for end in (decided, over & ~decided)]
        return Played(rewards, illegal, ends[0], ends[1], over)

    def _usable(self, choices: Numbers) -> tuple[Numbers, Flags]:
        """The choices with those replaced that cannot be used, and which these are."""
        settings = self._settings
        if settings.integer:
            # Seen as unsigned numbers, negative choices are large ones.
            if choices.view(np.uint64).max() <= self._top:
                return choices, np.zeros(self._shape, dtype=np.bool_)
            illegal = choices.view(np.uint64) > self._top
            return np.where(illegal, 0, choices), illegal
        low, high = float(settings.low), float(settings.high)
        if choices.min() >= low and choices.max() <= high:
            return choices, np.zeros(self._shape, dtype=np.bool_)
        illegal = ~((choices >= low) & (choices <= high))
        return np.clip(np.where(np.isnan(choices), low, choices), low, high), illegal

    # Integers: targets hang on a sum alone, so they are computed once, as fractions.

    def _key_of(self, choices: Numbers) -> NDArray[np.int64]:
        """What the target of each contest hangs on: the sum of its choices, twice their median, or the largest."""
        keys: NDArray[np.int64]
        if self._settings.statistic == "mean":
            keys = choices.sum(axis=1)
        elif self._settings.statistic == "max":
            keys = choices.max(axis=1)
        else:
            middle, in_order = self._settings.players // 2, np.sort(choices, axis=1)
            keys = in_order[:, middle] + in_order[:, middle - 1 + self._settings.players % 2]
        return keys

    def _aims(self, keys: NDArray[np.int64]) -> Aims:
        """What the targets of these keys say of choices, which count from the lowest number."""
        settings = self._settings
        parts = {"mean": settings.players, "median": 2, "max": 1}[settings.statistic]
        rows = []
        for key in keys.tolist():
            target = settings.ratio * (Fraction(key, parts) + int(settings.low)) + settings.offset
            aim, number = target - int(settings.low), round(float(target), DECIMALS)
            ends = math.ceil(aim - settings.tolerance), math.floor(aim + settings.tolerance)
            integers = [math.floor(aim), math.floor(2 * aim), *ends]
            # Nobody's choice lies beyond these bounds, and no sum of two.
            bounded = [min(max(integer, -1), 2 * self._top + 2) for integer in integers]
            rows.append((*bounded, (2 * aim).denominator == 1, scale_numbers(settings, number)))
        names = ("floor", "twice", "lowest", "highest", "is_half", "announced")
        columns = dict(zip(names, zip(*rows, strict=True), strict=True))
        kinds: Mapping[str, Any] = {"is_half": np.bool_, "announced": np.float32}
        return Aims(**{name: np.array(column, dtype=kinds.get(name, np.int64)) for name, column in columns.items()})

    def _integer_winners(self, choices: Numbers) -> tuple[Flags, Rows]:
        """Who wins, (copies, players), and what is announced, (copies,)."""
        keys = self._key_of(choices)
        table: Any = self._table
        aims = self._aims(keys) if table is None else Aims(*(values.take(keys) for values in table))
        if self._settings.winner_rule == "tolerance":
            return (choices >= aims.lowest[:, None]) & (choices <= aims.highest[:, None]), aims.announced
        nobody = 2 * self._top + 2
        under = choices <= aims.floor[:, None]
        below = np.where(under, choices, -1).max(axis=1)
        above = np.where(under, nobody, choices).min(axis=1)
        both = below + above
        tied = aims.is_half & (both == aims.twice) & (below >= 0) & (above < nobody)
        nearest = np.where((below >= 0) & ((above == nobody) | (both > aims.twice)), below, above)
        winners = choices == nearest[:, None]
        if tied.any():
            winners |= tied[:, None] & ((choices == below[:, None]) | (choices == above[:, None]))
            if self._settings.winner_rule == "first_value":
                winners &= choices == self._first_of(choices, winners)
        return winners, aims.announced

    def _real_winners(self, numbers: Numbers) -> tuple[Flags, Rows]:
        """Who wins, (copies, players), and what is announced, (copies,)."""
        settings = self._settings
        statistic: Any = {"mean": np.mean, "median": np.median, "max": np.max}[settings.statistic]
        targets = [real_target(value, settings.ratio, settings.offset) for value in statistic(numbers, axis=1).tolist()]
        slack = SLACK * (settings.high - settings.low)
        distance = np.abs(numbers - np.array(targets)[:, None])
        limit = float(settings.tolerance) if settings.winner_rule == "tolerance" else distance.min(axis=1)[:, None]
        winners = distance <= limit + slack
        if settings.winner_rule == "first_value":
            winners &= np.abs(numbers - self._first_of(numbers, winners)) <= slack
        announced = [scale_numbers(settings, round(target, DECIMALS)) for target in targets]
        return winners, np.array(announced, dtype=np.float32)

    @staticmethod
    def _first_of(numbers: Numbers, winners: Flags) -> Numbers:
        """The number of the first of each contest's nearest players, (copies, 1)."""
        return np.take_along_axis(numbers, winners.argmax(axis=1)[:, None], axis=1)

    # Views.

    def _rows(self, numbers: Numbers, announced: Rows) -> Rows:
        settings = self._settings
        rows = np.empty((*self._shape, len(self.feature_names)), dtype=np.float32)
        rows[:] = self._first
        rows[:, :, 0] = (self._made / settings.decisions)[:, None]
        if settings.session == "repeated" and settings.memory != 0:
            rows[:, :, 7] = self._scaled(numbers)
            if settings.information != OWN:
                rows[:, :, 5], rows[:, :, 6] = 1.0, announced[:, None]
        return rows

    def _scaled(self, numbers: Numbers) -> Numbers:
        settings = self._settings
        scaled: Numbers = numbers / float(self._top) if settings.integer else scale_numbers(settings, numbers)
        return scaled

    def _state(self) -> NDArray[np.float64]:
        return np.column_stack([self._made / self._settings.decisions, self._scaled(self._numbers)])
