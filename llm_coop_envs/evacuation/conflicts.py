"""The simultaneous engine: everybody names a cell at once, and conflicts are resolved fairly.

The rule:

1. If several people want the same cell, one of them is drawn, each with the same chance, as in the cellular automata
   of pedestrian dynamics with parallel update (Burstedde et al. 2001; Kirchner et al. 2003, without friction). The
   others stay.
2. Who was drawn gets the cell if it is empty, or if the person in it moves away in this same round. So a queue moves
   on together, as it does in the published one-by-one engine, where the front moves first; without this an exit would
   be served every second round only.
3. People who each wait for the next one in a ring stay. The smallest ring is two people who want to swap, so nobody
   passes through anybody.

There are never two people in a cell. Nobody has a fixed rank, so no index and no place in the room is favoured.
Whether a cell is left does not depend on who was drawn for it, so one draw is enough: nobody else could have used a
cell that its winner cannot enter.
"""

from __future__ import annotations

import numpy as np

from llm_coop_envs.evacuation.movement import open_moves
from llm_coop_envs.evacuation.room import STAY, ByteArray, IntArray, Room


def settle_moves(room: Room, cells: IntArray, wishes: IntArray, rng: np.random.Generator) -> IntArray:
    """Where everybody stands after a simultaneous move: n padded cells, all different.

    Args:
        room: its cells.
        cells: n padded cells, all different.
        wishes: n padded cells wanted, none blocked; the own cell means to stay.
        rng: consumed by one permutation of n.
    """
    count = len(cells)
    everyone = np.arange(count)
    drawn = rng.permutation(count)
    moving = wishes != cells
    drawn = drawn[moving[drawn]]
    size = room.height * room.width
    claim = np.full(size, -1, dtype=np.int64)
    # With repeated indices the last assignment stays: the last in the permutation, each contender with the same
    # chance.
    claim[wishes[drawn]] = drawn
    winner = moving & (claim[wishes] == everyone)
    occupant = np.full(size, count, dtype=np.int64)
    occupant[cells] = everyone
    # Whom each waits for: another person, nobody (count), or for ever (count + 1).
    waits_for = np.where(winner, occupant[wishes], count + 1)
    waits_for = np.concatenate([waits_for, [count, count + 1]])
    # Pointer doubling: after k passes everybody looks 2**k people ahead. Rings never reach an end.
    for _ in range(count.bit_length()):
        if (waits_for >= count).all():
            break
        waits_for = waits_for[waits_for]
    return np.where(waits_for[:count] == count, wishes, cells)


def walking_wishes(room: Room, people: ByteArray, cells: IntArray, targets: IntArray) -> IntArray:
    """Where people want to go who walk towards their exit cells, all at once.

    Each wants the free neighbouring cell that is nearest (Euclidean) to its exit cell, if one is nearer than where it
    stands; else the nearest of the taken cells that are nearer, to follow whoever stands there; else to stay. Ties go
    to the first in the published order of moves.

    `people` is 1 where somebody stands, over padded cells; `targets` are indices into `room.exit_cells`. What is
    returned is n padded cells, for `settle_moves`.
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
