"""Vision: the view fan that a person sees towards an exit, from the authors' code of "Shall We Team Up".

Source: Wu et al. 2024. A circle of radius 10 around the person carries 100 rays, 3.6 degrees apart (the authors list
101: the last is the first again). A ray is kept if it is at most 45 degrees off the direction to the exit cell. It
ends at the rounded point on the circle and covers the cells of a Bresenham line, the person's own among them. A desk
ends a ray (the desk is seen), walls do not; cells outside the room are dropped. The fan is the union of its rays'
cells and has holes far out, as published.

Without desks a fan depends only on which rays are kept, a range of 24 to 26 of them, so that all fans are a few
hundred fixed sets of offsets, and counting who stands in one is a gather. With desks the visible cells of a place and
an exit cell are kept once computed.
"""

from __future__ import annotations

import math
from functools import cache, lru_cache

import numpy as np

from llm_coop_envs.evacuation.room import VIEW_RADIUS, BoolArray, ByteArray, FloatArray, IntArray, Room

#: Rays on the circle (the authors' 101, the last of which repeats the first).
RAYS = 100
#: A ray is kept up to this angle off the direction to the exit cell, in degrees.
HALF_ANGLE = 45.0

# A fan is a range of `_FEWEST` to `_FEWEST + _SIZES - 1` rays: 90 degrees at 3.6 degrees, with none, one or both
# border rays.
_FEWEST = 24
_SIZES = 3
_NO_FAN = RAYS * _SIZES
_KEPT_ROWS = 250_000
# Pairs of a watcher and an exit cell that are looked at together: a few megabytes, whatever the crowd.
_PAIRS = 50_000


def _ray_cells(ray: int) -> list[tuple[int, int]]:
    """Return the offsets that a ray covers, from (0, 0) outwards."""
    angle = 2 * math.pi / RAYS * ray
    # Python's round takes halves to the even number, as published.
    down, right = round(math.cos(angle) * VIEW_RADIUS), round(math.sin(angle) * VIEW_RADIUS)
    long, short = max(abs(down), abs(right)), min(abs(down), abs(right))
    cells = []
    for step in range(long + 1):
        # Bresenham's line in closed form: the minor coordinate rounded to the nearest, halves towards zero.
        aside = (2 * step * short + long - 1) // (2 * long)
        along, across = (step, aside) if abs(down) > abs(right) else (aside, step)
        cells.append((along if down > 0 else -along, across if right > 0 else -across))
    return cells


def _on_border(ray: int, down: int, right: int) -> bool:
    """Whether a ray exactly 45 degrees off is kept. Rounding errors decide, so this is the published formula."""
    angle = 2 * math.pi / RAYS * ray
    ray_down, ray_right = math.cos(angle) * VIEW_RADIUS, math.sin(angle) * VIEW_RADIUS
    lengths = math.sqrt(ray_down**2 + ray_right**2) * math.sqrt(down**2 + right**2)
    return math.degrees(math.acos((ray_down * down + ray_right * right) / lengths)) <= HALF_ANGLE


@cache
def _border_rays(down: int, right: int) -> int:
    """Return the fan of a diagonal direction; only these have rays exactly on the border."""
    middle = math.degrees(math.atan2(right, down)) * RAYS / 360
    spread = HALF_ANGLE * RAYS / 360
    first, last = round(middle - spread), round(middle + spread)
    # Ray 100 repeats ray 0 with another rounding error; if one of the two is kept, the cells are seen.
    low, high = (any(_on_border(r, down, right) for r in _ray_copies(ray)) for ray in (first, last))
    count = last - first + 1 - (not low) - (not high)
    return (first + (not low)) % RAYS * _SIZES + count - _FEWEST


def _ray_copies(ray: int) -> tuple[int, ...]:
    return (0, RAYS) if ray % RAYS == 0 else (ray % RAYS,)


@cache
def _rays() -> IntArray:
    """(RAYS, VIEW_RADIUS + 1, 2) offsets of every ray, the last one repeated where a ray is shorter."""
    table = np.zeros((RAYS, VIEW_RADIUS + 1, 2), dtype=np.int64)
    for ray in range(RAYS):
        cells = _ray_cells(ray)
        table[ray] = cells + [cells[-1]] * (VIEW_RADIUS + 1 - len(cells))
    return table


@cache
def _fans() -> tuple[IntArray, IntArray]:
    """All fans: (fans, L, 2) offsets, own cell repeated at the end; and how many repetitions each has.

    Fan `first * 3 + count - 24` covers `count` rays from `first` on; the last one covers nothing.
    """
    rays = [set(_ray_cells(ray)) for ray in range(RAYS)]
    unions: list[list[tuple[int, int]]] = []
    for first in range(RAYS):
        for count in range(_FEWEST, _FEWEST + _SIZES):
            unions.append(sorted(set().union(*(rays[(first + k) % RAYS] for k in range(count)))))
    unions.append([])
    longest = max(map(len, unions))
    offsets = np.zeros((len(unions), longest, 2), dtype=np.int64)
    for fan, cells in enumerate(unions):
        offsets[fan, : len(cells)] = np.array(cells, dtype=np.int64).reshape(-1, 2)
    return offsets, np.array([longest - len(cells) for cells in unions], dtype=np.int64)


def _directions(rows: int, cols: int) -> IntArray:
    """Return the fan of every difference (exit cell minus own cell) in a room, flat, (0, 0) in the middle."""
    down = np.arange(-rows + 1, rows, dtype=np.int64)[:, None]
    right = np.arange(-cols + 1, cols, dtype=np.int64)[None, :]
    middle = np.degrees(np.arctan2(right, down)) * RAYS / 360
    spread = HALF_ANGLE * RAYS / 360
    first = np.ceil(middle - spread).astype(np.int64)
    last = np.floor(middle + spread).astype(np.int64)
    fans = first % RAYS * _SIZES + last - first + 1 - _FEWEST
    for size in range(1, min(rows, cols)):
        for sign_down, sign_right in ((1, 1), (1, -1), (-1, 1), (-1, -1)):
            at = rows - 1 + sign_down * size, cols - 1 + sign_right * size
            fans[at] = _border_rays(sign_down * size, sign_right * size)
    fans[rows - 1, cols - 1] = _NO_FAN
    return fans.reshape(-1)


class RoomVision:
    """Counts people in the fans of one room. `view_of` makes one per room and keeps it.

    Args:
        room: the room.
    """

    def __init__(self, room: Room) -> None:
        self._room = room
        order = np.argsort(room.exit_group, kind="stable")
        self._exits = room.exit_cells[order]
        exit_row, exit_col = room.row_col(self._exits)
        # Linear codes whose difference is the direction, so that one subtraction finds the fan.
        self._stride = 2 * room.cols - 1
        self._exit_code = (exit_row + room.rows - 1) * self._stride + exit_col + room.cols - 1
        self._sizes = np.bincount(room.exit_group)
        self._starts = np.concatenate(([0], np.cumsum(self._sizes)[:-1]))
        self._fan_of = _directions(room.rows, room.cols).astype(np.int16)
        offsets, self._padding = _fans()
        self._offsets = (offsets[:, :, 0] * room.width + offsets[:, :, 1]).astype(np.int32)
        rays = _rays()
        self._rays = rays[:, :, 0] * room.width + rays[:, :, 1]
        self._around = np.unique(self._rays)
        self._has_desks = bool(room.desks.any())
        if self._has_desks:
            self._row_of = np.full((room.rows * room.cols, len(self._exits)), -1, dtype=np.int32)
            self._kept = np.zeros((0, self._offsets.shape[1]), dtype=np.int32)
            self._kept_padding = np.zeros(0, dtype=np.int64)

    def fans(self, cells: IntArray) -> IntArray:
        """Return the fan of each of n cells towards each of E exit cells, these ordered by exit."""
        row, col = self._room.row_col(cells)
        codes = self._exit_code[None, :] - (row * self._stride + col)[:, None]
        return self._fan_of[codes].astype(np.int64)

    def visible(self, cell: int, exit_cell: int) -> frozenset[tuple[int, int]]:
        """Return the (row, column) of all cells seen from a padded cell towards a padded exit cell."""
        which = int(np.flatnonzero(self._exits == exit_cell)[0])
        fan = int(self.fans(np.array([cell]))[0, which])
        if fan == _NO_FAN:
            return frozenset()
        seen = self._seen_cells(np.array([cell]), np.array([fan])).reshape(-1)
        row, col = self._room.row_col(seen)
        inside = (row >= 0) & (row < self._room.rows) & (col >= 0) & (col < self._room.cols)
        return frozenset(zip(row[inside].tolist(), col[inside].tolist(), strict=True))

    def people_towards(self, grid: ByteArray, cells: IntArray, *, count_self: bool) -> FloatArray:
        """Count the people seen from n cells towards each of G exits: (n, G) means over the exit's cells.

        `grid` is 1 where somebody (or something that counts) stands, over padded cells, a watcher's own included.
        """
        watchers = max(1, _PAIRS // len(self._exits))
        parts = [
            self._people_towards(grid, cells[start : start + watchers], count_self=count_self)
            for start in range(0, max(len(cells), 1), watchers)
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def people_around(self, grid: ByteArray, cells: IntArray) -> IntArray:
        """Count the people in the cells seen in all directions, the watcher included."""
        if not self._has_desks:
            is_occupied = grid[cells[:, None] + self._around]
        else:
            seen = self._trace(cells, np.broadcast_to(np.arange(RAYS), (len(cells), RAYS)))
            is_occupied = grid[np.where(seen < 0, 0, seen)] * (seen >= 0)
        around: IntArray = is_occupied.sum(axis=1, dtype=np.int64)
        return around

    def views(self) -> tuple[IntArray, IntArray, BoolArray]:
        """Return all that can be seen in this room as sets of cells around a watcher.

        Returns:
            The set seen from each of T cells of the room towards each of E exit cells, these ordered by exit, (T, E);
            that seen from each cell in all directions, (T,); both as indices into the sets, (sets, cells), of the
            21 x 21 cells around a watcher row by row.
        """
        cells = self._room.inside
        fans = self.fans(cells)
        if self._has_desks:
            watchers = np.repeat(np.arange(len(cells)), len(self._exits))
            seen = self._seen_cells(cells[watchers], fans.reshape(-1))
            around = self._trace(cells, np.broadcast_to(np.arange(RAYS), (len(cells), RAYS)))
            around = np.where(around < 0, cells[:, None], around)
            towards = np.where(fans == _NO_FAN, -1, np.arange(len(watchers)).reshape(fans.shape))
            differences = [seen - cells[watchers, None], around - cells[:, None]]
            everywhere = len(watchers) + np.arange(len(cells))
        else:
            towards, differences = np.where(fans == _NO_FAN, -1, fans), [self._offsets, self._around[None]]
            everywhere = np.full(len(cells), len(self._offsets))
        side, nothing = 2 * VIEW_RADIUS + 1, sum(map(len, differences))
        sets = np.zeros((nothing + 1, side * side), dtype=np.bool_)
        first = 0
        for difference in differences:
            row, col = np.divmod(difference + VIEW_RADIUS * (self._room.width + 1), self._room.width)
            sets[first + np.arange(len(difference))[:, None], row * side + col] = True
            first += len(difference)
        return np.where(towards < 0, nothing, towards), everywhere, sets

    def _people_towards(self, grid: ByteArray, cells: IntArray, *, count_self: bool) -> FloatArray:
        count, exits = len(cells), len(self._exits)
        if not count:
            return np.zeros((0, len(self._sizes)))
        fans = self.fans(cells)
        if self._has_desks:
            rows = self._rows(cells, fans)
            seen = grid[self._kept[rows]].sum(axis=2, dtype=np.uint8).astype(np.int64)
            repeated = self._kept_padding[rows] + (not count_self) * (fans != _NO_FAN)
            totals = seen - repeated * grid[cells][:, None]
            return np.add.reduceat(totals, self._starts, axis=1) / self._sizes
        # Neighbouring cells of an exit often share a fan: each run of equal fans is counted once.
        flat = fans.reshape(-1)
        new = np.empty(flat.shape, dtype=bool)
        np.not_equal(flat[1:], flat[:-1], out=new[1:])
        new.reshape(count, exits)[:, self._starts] = True
        starts = np.flatnonzero(new)
        watcher, fan = starts // exits, flat[starts]
        own = grid[cells][watcher]
        seen = grid[self._offsets[fan] + cells[watcher, None].astype(np.int32)].sum(axis=1, dtype=np.uint8)
        repeated = self._padding[fan] + (not count_self) * (fan != _NO_FAN)
        totals = (seen - repeated * own) * np.diff(starts, append=flat.size)
        groups = (np.cumsum(new) - 1).reshape(count, exits)[:, self._starts]
        return np.add.reduceat(totals, groups.reshape(-1)).reshape(count, -1) / self._sizes

    def _rows(self, cells: IntArray, fans: IntArray) -> IntArray:
        """Rows of `_kept` for each watcher and exit cell; computes those that are new."""
        table_index = self._room.table_index(cells)
        missing = self._row_of[table_index] < 0
        if missing.any():
            if len(self._kept) > _KEPT_ROWS:
                self._row_of.fill(-1)
                self._kept, self._kept_padding = self._kept[:0], self._kept_padding[:0]
                missing[:] = True
            watcher, which = np.nonzero(missing)
            seen = self._seen_cells(cells[watcher], fans[watcher, which])
            own = cells[watcher, None]
            self._row_of[table_index[watcher], which] = len(self._kept) + np.arange(len(watcher))
            self._kept = np.concatenate([self._kept, seen.astype(np.int32)])
            self._kept_padding = np.concatenate(
                [self._kept_padding, (seen == own).sum(axis=1) - (fans[watcher, which] != _NO_FAN)]
            )
        return self._row_of[table_index].astype(np.int64)

    def _seen_cells(self, cells: IntArray, fans: IntArray) -> IntArray:
        """(n, L) padded cells seen from each cell in its fan, the own cell repeated at the end."""
        longest = self._offsets.shape[1]
        if not self._has_desks:
            return cells[:, None] + self._offsets[fans]
        first, extra = np.divmod(fans, _SIZES)
        number = np.arange(_FEWEST + _SIZES - 1)
        rays = (first[:, None] + np.minimum(number, (_FEWEST + extra - 1)[:, None])) % RAYS
        seen = self._trace(cells, rays)
        seen.sort(axis=1)
        seen = seen[:, ::-1][:, :longest]
        nothing = (seen < 0) | (fans == _NO_FAN)[:, None]
        return np.where(nothing, cells[:, None], seen)

    def _trace(self, cells: IntArray, rays: IntArray) -> IntArray:
        """The distinct padded cells seen along rays until the first desk, -1 for all others; (n, rays * 11)."""
        path = cells[:, None, None] + self._rays[rays]
        desk = self._room.desks[path]
        hidden = np.zeros(path.shape, dtype=bool)
        hidden[:, :, 1:] = np.maximum.accumulate(desk, axis=2)[:, :, :-1]
        seen = np.where(hidden, -1, path).reshape(len(cells), -1)
        seen.sort(axis=1)
        seen[:, 1:][seen[:, 1:] == seen[:, :-1]] = -1
        return seen


@lru_cache(maxsize=32)
def view_of(room: Room) -> RoomVision:
    """Return the vision of a room, cached by the room's identity."""
    return RoomVision(room)
