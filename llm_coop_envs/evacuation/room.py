"""The room: its cells, exits and desks, and the distances between them.

Cells are (row, column), counted from 0, row 0 at the top, as in the authors' code of "Shall We Team Up" (Wu et al.
2024). The outer ring is wall; exits are cells cut into it. Inside the package a cell is one integer, its index in a
grid padded by the view radius on all sides, so that neither vision nor movement needs a test for the edge of the
room. Example: in a room of 33 columns the padded grid is 53 wide, and the cell (0, 0) is 10 * 53 + 10 = 540.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]
ByteArray = npt.NDArray[np.uint8]
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]

#: A cell of an exit: the exit's name, row, column.
ExitCell = tuple[str, int, int]
#: A cell: row, column.
Cell = tuple[int, int]

#: How far a person sees, in cells (authors' code).
VIEW_RADIUS = 10

#: The nine moves in the published order (authors' code): name, rows down, columns right.
MOVES: tuple[tuple[str, int, int], ...] = (
    ("right", 0, 1),
    ("down", 1, 0),
    ("left", 0, -1),
    ("up", -1, 0),
    ("stay", 0, 0),
    ("down and right", 1, 1),
    ("down and left", 1, -1),
    ("up and left", -1, -1),
    ("up and right", -1, 1),
)
#: The index of staying in `MOVES`.
STAY = 4

#: Rows and columns of the published 264 desks (authors' code).
DESK_ROWS = (2, 4, 6, 8, 10, 12, 19, 21, 23, 25, 27, 29)
DESK_COLS = (*range(4, 15), *range(18, 29))


def wall_exits(rows: int, cols: int, widths: tuple[int, int, int] = (3, 3, 1)) -> tuple[ExitCell, ...]:
    """Return the published three exits, for a room of any size.

    In a room of 33 x 33 with widths (3, 3, 1) these are the 7 cells of the authors' code, in its order, which
    decides ties: bottom and left in turn, then right. The right exit is one cell below the middle, as published.

    Args:
        rows: rows of the room, walls included.
        cols: columns of the room, walls included.
        widths: cells of the bottom, left and right exit; 0 leaves an exit out.
    """
    bottom = [("bottom", rows - 1, (cols - widths[0]) // 2 + k) for k in range(widths[0])]
    left_cells = [("left", (rows - widths[1]) // 2 + k, 0) for k in range(widths[1])]
    right = [("right", (rows - widths[2]) // 2 + 1 + k, cols - 1) for k in range(widths[2])]
    in_turn = [cell for k in range(max(widths[:2])) for cell in (*bottom[k : k + 1], *left_cells[k : k + 1])]
    return (*in_turn, *right)


def published_desks() -> tuple[Cell, ...]:
    """Return the 264 desks of the authors' code, row by row."""
    return tuple((row, col) for row in DESK_ROWS for col in DESK_COLS)


def cells_without_way_out(
    rows: int, cols: int, exits: tuple[ExitCell, ...], desks: tuple[Cell, ...], *, diagonals: bool = True
) -> list[Cell]:
    """Return the inner cells from which desks block every way to an exit, row by row."""
    unreached = {(row, col) for row in range(1, rows - 1) for col in range(1, cols - 1)} - set(desks)
    edge = [(row, col) for _, row, col in exits]
    while edge:
        row, col = edge.pop()
        for _, down, right in MOVES:
            cell = row + down, col + right
            if cell in unreached and (diagonals or not (down and right)):
                unreached.remove(cell)
                edge.append(cell)
    return sorted(unreached)


@dataclass(frozen=True, kw_only=True, eq=False)
class Room:
    """A room and its precomputed tables; `build_room` makes one.

    Padded cells index `blocked` and `desks`, flat arrays of `height * width` cells. E cells of G exits.

    Attributes:
        rows: rows of the room, walls included.
        cols: columns of the room, walls included.
        height: rows of the padded grid.
        width: columns of the padded grid.
        exit_names: the G exits, in the order in which they are shown (first appearance in the list of cells).
        exit_cells: E padded cells, in the order of the list, which decides ties and the order of counting out.
        exit_group: E indices into `exit_names`.
        exit_at: the index into `exit_cells` of every padded cell, -1 where there is no exit.
        blocked: 1 where nobody can ever stand: wall, desk, outside.
        desks: 1 where a desk stands.
        moves: the 9 moves as differences of padded cells, in the published order.
        allowed_moves: 1 for each of these moves that the settings allow, 0 for diagonal ones without `diagonals`.
        start_cells: padded cells on which a person may start: inside, no desk, no exit.
        inside: room cells as rows * cols padded cells, row by row.
        mean_distance: (rows * cols, G) mean Euclidean distance to an exit's cells.
        nearest_distance: (rows * cols) Euclidean distance to the nearest exit cell.
        nearest_exit: (rows * cols) the exit of the nearest exit cell, the first in the list on ties.
        target_cell: (rows * cols, G) index into `exit_cells` of the exit's nearest cell, the first in the list on
            ties.
    """

    rows: int
    cols: int
    height: int
    width: int
    exit_names: tuple[str, ...]
    exit_cells: IntArray
    exit_group: IntArray
    exit_at: IntArray
    blocked: ByteArray
    desks: ByteArray
    moves: IntArray
    allowed_moves: ByteArray
    start_cells: IntArray
    inside: IntArray
    mean_distance: FloatArray
    nearest_distance: FloatArray
    nearest_exit: IntArray
    target_cell: IntArray

    def cell(self, row: int, col: int) -> int:
        """Return the padded cell of a row and column."""
        return (row + VIEW_RADIUS) * self.width + col + VIEW_RADIUS

    def cells(self, positions: npt.ArrayLike) -> IntArray:
        """Return the padded cells of an (n, 2) array of rows and columns."""
        rows_cols = np.asarray(positions, dtype=np.int64).reshape(-1, 2)
        return (rows_cols[:, 0] + VIEW_RADIUS) * self.width + rows_cols[:, 1] + VIEW_RADIUS

    def row_col(self, cells: IntArray) -> tuple[IntArray, IntArray]:
        """Return the rows and columns of padded cells."""
        row, col = np.divmod(cells, self.width)
        return row - VIEW_RADIUS, col - VIEW_RADIUS

    def positions(self, cells: IntArray) -> IntArray:
        """Return the (n, 2) rows and columns of n padded cells."""
        return np.column_stack(self.row_col(cells))

    def table_index(self, cells: IntArray) -> IntArray:
        """Return the index of padded cells in the (rows * cols) tables."""
        row, col = self.row_col(cells)
        return row * self.cols + col

    def squared_distance(self, cells: IntArray, to: IntArray) -> IntArray:
        """Return squared Euclidean distances between padded cells, elementwise; integers, so that ties are exact."""
        row, col = np.divmod(cells, self.width)
        to_row, to_col = np.divmod(to, self.width)
        down, right = row - to_row, col - to_col
        squared: IntArray = down * down + right * right
        return squared


@lru_cache(maxsize=32)
def build_room(
    rows: int, cols: int, exits: tuple[ExitCell, ...], desks: tuple[Cell, ...], *, diagonals: bool = True
) -> Room:
    """Compute the tables of a room, whose rows and columns include the walls. The result is cached and shared."""
    pad = VIEW_RADIUS
    height, width = rows + 2 * pad, cols + 2 * pad

    def padded(cells: list[Cell]) -> IntArray:
        where = np.array(cells, dtype=np.int64).reshape(-1, 2)
        return (where[:, 0] + pad) * width + where[:, 1] + pad

    exit_cells = padded([(row, col) for _, row, col in exits])
    desk_cells = padded(list(desks))
    blocked = np.ones((height, width), dtype=np.uint8)
    blocked[pad + 1 : pad + rows - 1, pad + 1 : pad + cols - 1] = 0
    flat = blocked.reshape(-1)
    flat[desk_cells] = 1
    start_cells = np.flatnonzero(flat == 0)
    flat[exit_cells] = 0
    desk_grid = np.zeros(height * width, dtype=np.uint8)
    desk_grid[desk_cells] = 1
    exit_at = np.full(height * width, -1, dtype=np.int64)
    exit_at[exit_cells] = np.arange(len(exits))
    row, col = np.divmod(np.arange(rows * cols, dtype=np.int64), cols)
    names = tuple(dict.fromkeys(name for name, _, _ in exits))
    group = np.array([names.index(name) for name, _, _ in exits], dtype=np.int64)
    total = np.zeros((len(names), rows * cols))
    best = np.full((len(names), rows * cols), np.iinfo(np.int64).max)
    target = np.zeros((len(names), rows * cols), dtype=np.int64)
    # One exit cell at a time: memory stays linear in the room, and `<` keeps the first cell of the list on ties.
    for index, (name, exit_row, exit_col) in enumerate(exits):
        which = names.index(name)
        squared = (row - exit_row) ** 2 + (col - exit_col) ** 2
        total[which] += np.sqrt(squared)
        nearer = squared < best[which]
        best[which][nearer] = squared[nearer]
        target[which][nearer] = index
    # The exit whose nearest cell is nearest of all, the cell first in the list on ties.
    first = np.where(best == best.min(axis=0), target, np.iinfo(np.int64).max)
    tables = {
        "mean_distance": np.ascontiguousarray((total / np.bincount(group)[:, None]).T),
        "nearest_distance": np.sqrt(best.min(axis=0)),
        "nearest_exit": first.argmin(axis=0),
        "target_cell": np.ascontiguousarray(target.T),
        "blocked": flat,
        "desks": desk_grid,
        "exit_cells": exit_cells,
        "exit_group": group,
        "exit_at": exit_at,
        "start_cells": start_cells,
        "inside": (row + pad) * width + col + pad,
        "moves": np.array([down * width + right for _, down, right in MOVES], dtype=np.int64),
        "allowed_moves": np.array([diagonals or not (down and right) for _, down, right in MOVES], dtype=np.uint8),
    }
    for table in tables.values():
        table.setflags(write=False)
    return Room(rows=rows, cols=cols, height=height, width=width, exit_names=names, **tables)
