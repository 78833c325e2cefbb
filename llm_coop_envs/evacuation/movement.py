"""Legal moves, the order of movement, and the published sequential engine.

The engine of the authors' code of "Shall We Team Up" (Wu et al. 2024) moves people one after the other: grouped by
the exit cell they head for, groups in the order in which they first appear in the round's shuffled list, nearest
first inside a group. Each sees the room as the earlier ones left it, and only free cells are offered, so that
conflicts cannot arise.

That order has an exact parallel form. A person's options depend on the cells around it, and its move changes only the
cells around it. So two people interact only if their cells at the start of the phase are within a Chebyshev distance
of 2. A person's level is 1 + the highest level among the earlier people within that distance, and all people of a
level move at once. Example: of three people in a row, two cells apart, who move in the order left, right, middle, the
first two form level 1, since they are four cells apart, and the middle one is level 2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from llm_coop_envs.evacuation.room import MOVES, STAY, ByteArray, IntArray, Room

#: (people, 9): which moves are possible, in the order of `room.MOVES`.
Moves = npt.NDArray[np.int8]

#: Two people can influence each other's move only within this Chebyshev distance.
REACH = 2


def free_moves(room: Room, people: ByteArray, cells: IntArray) -> Moves:
    """Return which of the 9 moves from n padded cells lead to a free cell, (n, 9) of 0 and 1; staying is always 1.

    Here and below `people` is 1 where somebody stands, over padded cells.
    """
    free: Moves = open_moves(room, cells) & (people[cells[:, None] + room.moves] == 0)
    free[:, STAY] = 1
    return free


def open_moves(room: Room, cells: IntArray) -> Moves:
    """Return which of the 9 moves lead to a cell that is no wall or desk, occupied or not, (n, 9) of 0 and 1."""
    possible: Moves = (room.allowed_moves * (room.blocked[cells[:, None] + room.moves] == 0)).astype(np.int8)
    return possible


def people_near(people: ByteArray, room: Room, cells: IntArray) -> IntArray:
    """Count the people in the 3 x 3 cells around each of n cells, that cell included: 1 to 9 (authors' code)."""
    heads: IntArray = people[cells[:, None] + room.moves].sum(axis=1, dtype=np.int64)
    return heads


def move_order(room: Room, shuffled: IntArray, cells: IntArray, targets: IntArray) -> IntArray:
    """Sort people into the published order of movement.

    Groups that head for the same exit cell move one after the other, in the order in which they first appear in
    `shuffled`, and within a group the nearest first. Example: A and C head for cell 1, 5 and 2 cells away, B for cell
    2. The shuffled order A, B, C becomes C, A, B.

    `shuffled` are people in the round's shuffled order, `cells` the padded cells of all people, by index, `targets` the
    exit cells they head for, as indices into `room.exit_cells`.
    """
    if not len(shuffled):
        return shuffled
    target = targets[shuffled]
    _, first_seen, inverse = np.unique(target, return_index=True, return_inverse=True)
    distance = room.squared_distance(cells[shuffled], room.exit_cells[target])
    # lexsort is stable: equal distances keep the shuffled order.
    return shuffled[np.lexsort((distance, first_seen[inverse]))]


def move_levels(room: Room, order: IntArray, cells: IntArray) -> list[IntArray]:
    """Split the order of movement into levels that can move at once, with the same result as one by one.

    `cells` are the padded cells of all people, by index, at the start of the phase; each level keeps the order.
    """
    width = room.width
    highest = [0] * (room.height * width)
    rows = [down * width - REACH for down in range(-REACH, REACH + 1)]
    span = 2 * REACH + 1
    levels: list[list[int]] = []
    for person, cell in zip(order.tolist(), cells[order].tolist(), strict=True):
        level = max(max(highest[cell + row : cell + row + span]) for row in rows)
        highest[cell] = level + 1
        if level == len(levels):
            levels.append([])
        levels[level].append(person)
    return [np.array(level, dtype=np.int64) for level in levels]


def walk_one_by_one(room: Room, people: ByteArray, cells: IntArray, targets: IntArray) -> IntArray:
    """Move people towards their exit cells, one after the other.

    Each goes to the free neighbouring cell that is nearest (Euclidean) to its exit cell, the first in the published
    order of moves on ties, and stays if none is nearer than where it stands.

    `people` is not changed; `cells`, and what is returned, are n padded cells, first mover first.
    """
    is_occupied = bytearray((room.blocked | people).tobytes())
    width = room.width
    moves = [move for move, allowed in zip(MOVES, room.allowed_moves.tolist(), strict=True) if allowed]
    steps = [(down, right, down * width + right) for _, down, right in moves]
    exits = [divmod(cell, width) for cell in room.exit_cells.tolist()]
    destinations: list[int] = []
    for cell, target in zip(cells.tolist(), targets.tolist(), strict=True):
        row, col = divmod(cell, width)
        down_to, right_to = exits[target][0] - row, exits[target][1] - col
        best, goal = down_to * down_to + right_to * right_to, cell
        for down, right, step in steps:
            if not is_occupied[cell + step]:
                distance = (down_to - down) ** 2 + (right_to - right) ** 2
                if distance < best:
                    best, goal = distance, cell + step
        is_occupied[cell], is_occupied[goal] = 0, 1
        destinations.append(goal)
    return np.array(destinations, dtype=np.int64)
