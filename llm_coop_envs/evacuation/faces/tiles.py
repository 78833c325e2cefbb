"""Tile coding of the evacuation: rows of features become entries of weight tables (Sutton and Barto 2018, 9.5.4).

A tiling cuts some of the observed numbers into bins and has one weight for each combination of bins and choice. The
value of a choice is the sum of one weight per tiling. Only the environment's feature columns and the fixed plan of the
room are used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.evacuation.features import NEAR_SCALE, PEOPLE_SCALE, VISIBLE_SCALE, feature_names
from llm_coop_envs.evacuation.room import MOVES
from llm_coop_envs.evacuation.settings import EvacuationSettings

Indices = NDArray[np.int64]
Rows = NDArray[np.float32]

# Distances to an exit in steps of 3 cells, up to 48; people seen in steps of 3, up to 30.
_AWAY, _AWAY_BINS = 3.0, 17
_SEEN, _SEEN_BINS = 3.0, 11
# Detours compared with the nearest exit, in steps of 2 cells, up to 24.
_DETOUR, _DETOUR_BINS = 2.0, 13
# The room in 8 x 8 parts, 9 with the shifted tiling.
_PARTS = 8
_PERIODS = (1.5, 5.5, 10.5, 20.5, 30.5)
# Distances to the cell one walks to: exact where it matters, coarse far away.
_STEPS = (1.1, 1.5, 2.3, 3.5, 4.5, 6.0, 8.0, 10.0, 13.0, 16.0, 20.0, 26.0)
_SECTORS = 16
_CLOSE = 4
_SPAN = 2 * _CLOSE + 1
_SHIFTS = (0.0, 0.5)
_NINE = len(MOVES)
_ROUNDS_A_PART, _PARTS_OF_PLAY = 4, 12


class EvacuationTiles:
    """Turns rows of the environment's features into entries of two tables, one for exits and one for moves.

    Exits: (1) distance, people seen, part of the play, twice with shifted bins; (2) where in the room, and part of the
    play, twice; (3) distance and the exit headed for; (4) detour compared with the nearest exit, and people seen.

    Moves: (1) the exact offset to the cell one walks to, if it is within 4 cells; (2) direction and distance of that
    cell; (3) its direction and the people around; (4) exit, distance and round, the same for all moves; (5) its
    direction and the last move.
    """

    def __init__(self, settings: EvacuationSettings) -> None:
        room = settings.room
        names = feature_names(room)
        first = room.exit_names[0]
        self.exits = len(room.exit_names)
        self._at = {name: column for column, name in enumerate(names)}
        self._groups = {
            feature: slice(start := names.index(f"{feature}_{first}"), start + self.exits)
            for feature in ("distance", "people", "heading")
        }
        self._extent = (settings.rows - 1, settings.cols - 1)
        self._diagonal = math.hypot(*self._extent)
        self._last = settings.last_round + 1
        self._around_scale = NEAR_SCALE if settings.crowd_count == "near" else VISIBLE_SCALE
        row, col = room.row_col(room.exit_cells)
        self._cell_at = np.zeros((settings.rows, settings.cols), dtype=np.int64)
        self._cell_at[row, col] = np.arange(len(row))
        self._group = room.exit_group
        count, periods = self.exits, len(_PERIODS) + 1
        self._exit_sizes = (
            *[count * _AWAY_BINS * _SEEN_BINS * periods for _ in _SHIFTS],
            *[count * (_PARTS + 1) ** 2 * 3 for _ in _SHIFTS],
            count * (count + 1) * _AWAY_BINS,
            count * _DETOUR_BINS * _SEEN_BINS * 2,
        )
        steps = len(_STEPS) + 1
        self._move_sizes = (
            len(row) * _SPAN**2 * _NINE,
            steps * _SECTORS * _NINE,
            (_NINE + 1) * _SECTORS * _NINE,
            count * steps * _PARTS_OF_PLAY,
            _NINE * _SECTORS * _NINE,
        )
        self.exit_tilings, self.move_tilings = len(self._exit_sizes), len(self._move_sizes)
        self._exit_starts, self.exit_size = _starts(self._exit_sizes)
        self._move_starts, self.move_size = _starts(self._move_sizes)

    def exit_entries(self, rows: Rows) -> Indices:
        """Entries (n, exits, tilings) of the choices of an exit, for rows (n, features)."""
        away = rows[:, self._groups["distance"]] * self._diagonal
        seen = rows[:, self._groups["people"]] * PEOPLE_SCALE
        headed = rows[:, self._groups["heading"]]
        heading = np.where(headed.any(axis=1), headed.argmax(axis=1) + 1, 0)[:, None]
        nearest = rows[:, self._at["nearest_distance"], None] * self._diagonal
        period = np.searchsorted(_PERIODS, self._round(rows))[:, None]
        down = rows[:, self._at["row"], None] * _PARTS
        right = rows[:, self._at["col"], None] * _PARTS
        exit_ = np.arange(self.exits)[None]
        tilings = []
        for shift in _SHIFTS:
            near, heads = _bin(away / _AWAY + shift, _AWAY_BINS), _bin(seen / _SEEN + shift, _SEEN_BINS)
            tilings.append(((exit_ * _AWAY_BINS + near) * _SEEN_BINS + heads) * (len(_PERIODS) + 1) + period)
        for shift in _SHIFTS:
            part = _bin(down + shift, _PARTS + 1) * (_PARTS + 1) + _bin(right + shift, _PARTS + 1)
            tilings.append((exit_ * (_PARTS + 1) ** 2 + part) * 3 + np.minimum(period, 2))
        near, heads = _bin(away / _AWAY, _AWAY_BINS), _bin(seen / _SEEN, _SEEN_BINS)
        tilings.append((exit_ * (self.exits + 1) + heading) * _AWAY_BINS + near)
        detour = _bin((away - nearest) / _DETOUR, _DETOUR_BINS)
        tilings.append(((exit_ * _DETOUR_BINS + detour) * _SEEN_BINS + heads) * 2 + (period > 0))
        return np.stack(tilings, axis=-1) + self._exit_starts

    def move_entries(self, rows: Rows) -> Indices:
        """Entries (n, 9, tilings) of the choices of a move, for rows (n, features)."""
        row, col = (
            _whole(rows[:, self._at[name]] * size) for name, size in zip(("row", "col"), self._extent, strict=True)
        )
        down, right = (
            _whole(rows[:, self._at[name]] * size)
            for name, size in zip(("target_down", "target_right"), self._extent, strict=True)
        )
        cell = self._cell_at[row + down, col + right]
        distance = np.searchsorted(_STEPS, np.hypot(down, right))
        sector = _whole(np.arctan2(down, right) * (_SECTORS / (2 * math.pi))) % _SECTORS
        around = np.minimum(_whole(rows[:, self._at["around"]] * self._around_scale), _NINE)
        play = np.minimum(_whole(self._round(rows)) // _ROUNDS_A_PART, _PARTS_OF_PLAY - 1)
        last = (_whole(rows[:, self._at["last_down"]]) + 1) * 3 + _whole(rows[:, self._at["last_right"]]) + 1
        close = (np.clip(down, -_CLOSE, _CLOSE) + _CLOSE) * _SPAN + np.clip(right, -_CLOSE, _CLOSE) + _CLOSE
        move = np.arange(_NINE)
        steps = len(_STEPS) + 1
        tilings = (
            (cell * _SPAN**2 + close)[:, None] * _NINE + move,
            (distance * _SECTORS + sector)[:, None] * _NINE + move,
            (around * _SECTORS + sector)[:, None] * _NINE + move,
            np.repeat(((self._group[cell] * steps + distance) * _PARTS_OF_PLAY + play)[:, None], _NINE, axis=1),
            (last * _SECTORS + sector)[:, None] * _NINE + move,
        )
        return np.stack(tilings, axis=-1) + self._move_starts

    def _round(self, rows: Rows) -> NDArray[np.float32]:
        round_: NDArray[np.float32] = rows[:, self._at["round"]] * self._last
        return round_


class TileTable:
    """The weights of one table, one per entry, and how they learn."""

    def __init__(self, size: int) -> None:
        self.weights = np.zeros(size)

    def values(self, entries: Indices) -> NDArray[np.float64]:
        """The values of choices: sums over the last axis of their entries' weights."""
        values: NDArray[np.float64] = self.weights[entries].sum(axis=-1)
        return values

    def learn(self, entries: Indices, errors: NDArray[np.float64], step_size: float) -> None:
        """Move weights by the errors of many simultaneous decisions.

        An entry that occurs c times moves by the mean of its errors, as far as c steps one after the other would. With
        one step per occurrence it would overshoot where a crowd does the same thing.

        Args:
            entries: (n, tilings) entries of the choices.
            errors: (n,) how much too low their values were.
            step_size: share of its error that a value moves by in one step.
        """
        tilings = entries.shape[1]
        flat = entries.ravel()
        counts = np.bincount(flat, minlength=len(self.weights))
        used = np.flatnonzero(counts)
        sums = np.bincount(flat, np.repeat(errors, tilings), minlength=len(self.weights))[used]
        times = counts[used]
        self.weights[used] += sums / times * (1.0 - (1.0 - step_size) ** times) / tilings


def _starts(sizes: Sequence[int]) -> tuple[Indices, int]:
    ends = np.cumsum(np.array(sizes, dtype=np.int64))
    return ends - sizes, int(ends[-1])


def _bin(values: NDArray[Any], bins: int) -> Indices:
    binned: Indices = values.astype(np.int64).clip(0, bins - 1)
    return binned


def _whole(values: NDArray[Any]) -> Indices:
    whole: Indices = np.rint(values).astype(np.int64)
    return whole
