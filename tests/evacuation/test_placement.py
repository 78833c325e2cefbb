import numpy as np
import pytest

from llm_coop_envs.evacuation.placement import cells_below_desks, random_cells, traits
from llm_coop_envs.evacuation.room import build_room, published_desks, wall_exits

ROOM = build_room(33, 33, wall_exits(33, 33), ())

# Published initial states: the first five people, sums of rows and columns, and how many have which exit nearest by
# its mean distance (bottom, left, right).
PUBLISHED = {
    0: ([(28, 21), (16, 8), (10, 1), (5, 26), (21, 30)], (1659, 1761), (26, 35, 39)),
    1: ([(15, 16), (24, 31), (1, 4), (27, 31), (8, 10)], (1637, 1678), (27, 34, 39)),
    2: ([(27, 8), (3, 9), (13, 26), (14, 3), (11, 19)], (1616, 1567), (26, 40, 34)),
    3: ([(26, 2), (5, 7), (5, 26), (28, 19), (1, 3)], (1597, 1615), (27, 36, 37)),
    4: ([(23, 31), (29, 16), (14, 20), (9, 12), (20, 26)], (1520, 1695), (23, 34, 43)),
}


@pytest.mark.parametrize("seed", PUBLISHED)
def test_published_positions(seed):
    first, sums, nearest = PUBLISHED[seed]
    cells = random_cells(ROOM, 100, np.random.default_rng(seed))
    row, col = ROOM.row_col(cells)
    assert list(zip(row.tolist(), col.tolist(), strict=True))[:5] == first
    assert (row.sum(), col.sum()) == sums
    # The published count was made left exit first, which decides exact ties.
    left_first = ROOM.mean_distance[ROOM.table_index(cells)][:, [1, 0, 2]].argmin(axis=1)
    left, bottom, right = np.bincount(left_first, minlength=3).tolist()
    assert (bottom, left, right) == nearest


def one_by_one(rows, cols, people, rng, free):
    placed = []
    while len(placed) < people:
        cell = int(rng.integers(rows)), int(rng.integers(cols))
        if cell in free and cell not in placed:
            placed.append(cell)
    return placed


@pytest.mark.parametrize(("rows", "cols", "people"), [(33, 33, 400), (9, 14, 84), (7, 7, 25)])
def test_drawing_many_at_once_uses_the_stream_as_one_by_one(rows, cols, people):
    room = build_room(rows, cols, wall_exits(rows, cols), ())
    free = {(r, c) for r in range(1, rows - 1) for c in range(1, cols - 1)}
    rng, twin = np.random.default_rng(3), np.random.default_rng(3)
    cells = random_cells(room, people, rng)
    expected = one_by_one(rows, cols, people, twin, free)
    assert list(zip(*(part.tolist() for part in room.row_col(cells)), strict=True)) == expected
    assert rng.bit_generator.state == twin.bit_generator.state


def test_nobody_starts_on_a_desk():
    room = build_room(33, 33, wall_exits(33, 33), published_desks())
    cells = random_cells(room, 400, np.random.default_rng(0))
    assert len(set(cells.tolist())) == 400
    assert not room.desks[cells].any()
    assert not room.blocked[cells].any()


def test_one_person_below_each_desk_dealt_from_the_end():
    desks = published_desks()
    room = build_room(33, 33, wall_exits(33, 33), desks)
    cells = cells_below_desks(room, desks, np.random.default_rng(5))
    cells_below = [(row + 1, col) for row, col in desks]
    np.random.default_rng(5).shuffle(cells_below)
    assert list(zip(*(part.tolist() for part in room.row_col(cells)), strict=True)) == cells_below[::-1]


def test_traits_are_spread_evenly():
    physical, mental = traits(100)
    assert physical[:8].tolist() == [0, 0, 1, 1, 0, 0, 1, 1]
    assert mental[:8].tolist() == [0, 1, 0, 1, 0, 1, 0, 1]
    assert np.unique(np.column_stack([physical, mental]), axis=0, return_counts=True)[1].tolist() == [25] * 4
