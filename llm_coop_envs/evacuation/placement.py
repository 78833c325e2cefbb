"""Start cells and traits of people, drawn exactly as in the authors' code of "Shall We Team Up" (Wu et al. 2024).

With the stream of `numpy.random.default_rng(seed)` these draws give the published initial states for seeds 0 to 4.
"""

from __future__ import annotations

import numpy as np

from llm_coop_envs.evacuation.room import Cell, IntArray, Room


def random_cells(room: Room, people: int, rng: np.random.Generator) -> IntArray:
    """Draw each person's row, then column, uniformly over the whole room, again until the cell is free.

    A cell is free if it is inside, no desk, no exit and not occupied by an earlier person. There must be enough cells.
    `rng` is consumed by two bounded integers per try, and by nothing else.

    Returns:
        `people` padded cells, person 0 first.
    """
    free = np.zeros(room.height * room.width, dtype=bool)
    free[room.start_cells] = True
    placed: list[int] = []
    while len(placed) < people:
        # As many pairs at once as are certainly needed: the stream is consumed as if they were drawn one by one.
        missing = people - len(placed)
        pairs = rng.integers(np.tile([room.rows, room.cols], missing))
        for cell in room.cells(pairs).tolist():
            if free[cell]:
                free[cell] = False
                placed.append(cell)
    return np.array(placed, dtype=np.int64)


def cells_below_desks(room: Room, desks: tuple[Cell, ...], rng: np.random.Generator) -> IntArray:
    """Return the cells directly below the desks, shuffled: one padded cell per person, person 0 first.

    As in the authors' code, the list of cells is shuffled and then dealt from its end.
    """
    cells = room.cells([(row + 1, col) for row, col in desks])
    rng.shuffle(cells)
    dealt: IntArray = cells[::-1].copy()
    return dealt


def traits(people: int) -> tuple[IntArray, IntArray]:
    """Return each person's physical and mental trait, 0 the better and 1 the worse; all four pairs are equally common.

    From the authors' code: physical = (id % 4) // 2, mental = id % 2; `people` numbers each.
    """
    ids = np.arange(people, dtype=np.int64)
    return ids % 4 // 2, ids % 2
