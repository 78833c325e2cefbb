"""The simultaneous engine: everybody moves at once, and conflicts over cells are settled by lot.

The rule:

1. If several people want the same cell, one of them is drawn, each with the same chance, as in the cellular automata
   of pedestrian dynamics with parallel update (Burstedde et al. 2001; Kirchner et al. 2003, without friction). The
   others stay.
2. The winner gets the cell if it is empty, or if the person in it moves away in this same round. So a queue moves on
   together, as in the published one-by-one engine, where the front moves first. Otherwise an exit could pass one
   person every second round only.
3. People who each want the next one's cell in a ring stay. The smallest ring is two people who want to swap cells, so
   nobody passes through anybody.

There are never two people in a cell, and no index and no part of the room is favoured. One draw is enough: whether a
cell is vacated does not depend on who was drawn for it, so nobody else could use a cell that its winner cannot enter.

Example: A and B want the empty cell 5, and C wants A's cell. If A is drawn, A moves to 5 and C follows into A's cell,
while B stays. If B is drawn, B moves to 5, A stays, and so does C.
"""

from __future__ import annotations

import numpy as np

from llm_coop_envs.evacuation.movement import open_moves
from llm_coop_envs.evacuation.room import STAY, ByteArray, IntArray, Room


def settle_moves(room: Room, cells: IntArray, wishes: IntArray, rng: np.random.Generator) -> IntArray:
    """Settle a simultaneous move.

    Args:
        room: its cells.
        cells: n padded cells, all different.
        wishes: n padded cells, none blocked; one's own cell is a wish to stay.
        rng: consumed by one permutation of n.

    Returns:
        Everybody's cell after the move: n padded cells, all different.
    """
    count = len(cells)
    everyone = np.arange(count)
    drawn = rng.permutation(count)
    moving = wishes != cells
    drawn = drawn[moving[drawn]]
    size = room.height * room.width
    claim = np.full(size, -1, dtype=np.int64)
    # With repeated indices the last assignment wins. That is the contender who comes last in the permutation, so all
    # contenders have the same chance.
    claim[wishes[drawn]] = drawn
    winner = moving & (claim[wishes] == everyone)
    occupant = np.full(size, count, dtype=np.int64)
    occupant[cells] = everyone
    # The person whose cell each winner wants, `count` for an empty cell; `count + 1` marks everybody else, who stays.
    waits_for = np.where(winner, occupant[wishes], count + 1)
    waits_for = np.concatenate([waits_for, [count, count + 1]])
    # Pointer doubling: after k passes everybody looks 2**k people ahead in its queue. Rings never reach an end.
    for _ in range(count.bit_length()):
        if (waits_for >= count).all():
            break
        waits_for = waits_for[waits_for]
    return np.where(waits_for[:count] == count, wishes, cells)


def walking_wishes(room: Room, people: ByteArray, cells: IntArray, targets: IntArray) -> IntArray:
    """Choose the cell that each person who walks towards its exit cell wants next, for `settle_moves`.

    1. The free neighbouring cell nearest (Euclidean) to its exit cell, if that is nearer than its own cell.
    2. Otherwise the nearest occupied cell that is nearer, to follow the person there.
    3. Otherwise its own cell.

    Ties go to the first in the published order of moves. Example: of the cells down-left and down-right, equally near,
    down-right counts.

    Args:
        room: the room.
        people: 1 where somebody stands, over padded cells.
        cells: n padded cells.
        targets: n indices into `room.exit_cells`.

    Returns:
        n padded cells.
    """
    around = cells[:, None] + room.moves
    distance = room.squared_distance(around, room.exit_cells[targets][:, None])
    nearer = (distance < distance[:, STAY, None]) & (open_moves(room, cells) == 1)
    free = nearer & (people[around] == 0)
    allowed = np.where(free.any(axis=1)[:, None], free, nearer)
    # Staying is the farthest of the cells considered, so it is taken only if there is no other.
    allowed[:, STAY] = True
    choice = np.where(allowed, distance, np.iinfo(np.int64).max).argmin(axis=1)
    wishes: IntArray = cells + room.moves[choice]
    return wishes
