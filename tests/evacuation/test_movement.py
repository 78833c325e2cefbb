import numpy as np
import pytest
from crowds import crowds, grid_of
from hypothesis import given, settings
from hypothesis import strategies as st

from llm_coop_envs.evacuation.movement import (
    REACH,
    free_moves,
    move_levels,
    move_order,
    open_moves,
    people_near,
    walk_one_by_one,
)
from llm_coop_envs.evacuation.room import MOVES, STAY, build_room, wall_exits

ROOM = build_room(9, 9, wall_exits(9, 9), ((2, 2),))


def test_moves_on_offer():
    cells = ROOM.cells([(1, 1), (1, 2), (7, 4)])
    free = free_moves(ROOM, grid_of(ROOM, cells), cells)
    assert set(free.ravel().tolist()) == {0, 1}
    names = [[MOVES[k][0] for k in np.flatnonzero(row)] for row in free]
    # (1, 1): walls around, a desk at (2, 2), a person at (1, 2).
    assert names[0] == ["down", "stay"]
    assert names[1] == ["right", "stay", "down and right", "down and left"]
    # The bottom exit's three cells are open to all, from the side and from the corner.
    assert names[2] == [name for name, _, _ in MOVES]
    assert open_moves(ROOM, cells)[0].tolist() == [1, 1, 0, 0, 1, 0, 0, 0, 0]


def test_people_near_counts_oneself():
    cells = ROOM.cells([(1, 1), (1, 2), (3, 3)])
    assert people_near(grid_of(ROOM, cells), ROOM, cells).tolist() == [2, 2, 1]


def test_order_groups_by_first_appearance_then_distance_then_shuffle():
    exits = ROOM.exit_cells
    left, bottom = 1, 0
    cells = ROOM.cells([(3, 7), (3, 1), (5, 4), (7, 2), (3, 5), (7, 6)])
    targets = np.array([left, left, bottom, bottom, left, bottom])
    # Shuffled: 2 (bottom) comes first, so the bottom group moves first.
    shuffled = np.array([2, 0, 5, 3, 1, 4])
    order = move_order(ROOM, shuffled, cells, targets)
    assert ROOM.row_col(exits[[bottom, left]])[0].tolist() == [8, 3]
    # Bottom cell (8, 3): person 3 at (7, 2) is nearest, then 2 and 5, equally far, in shuffled order.
    assert ROOM.squared_distance(cells[[2, 5]], exits[[0, 0]]).tolist() == [10, 10]
    assert order.tolist() == [3, 2, 5, 1, 4, 0]
    assert move_order(ROOM, shuffled[:0], cells, targets).tolist() == []


def test_two_people_interact_up_to_a_chebyshev_distance_of_two():
    assert REACH == 2
    for gap, levels in ((1, 2), (2, 2), (3, 1)):
        for down, right in ((0, gap), (gap, 0), (gap, gap), (gap, -1), (-1, gap)):
            cells = ROOM.cells([(4, 4), (4 + down, 4 + right)])
            assert len(move_levels(ROOM, np.array([0, 1]), cells)) == levels


def one_by_one(room, order, cells, choose):
    cells, grid = cells.copy(), grid_of(room, cells)
    for person in order.tolist():
        allowed = free_moves(room, grid, cells[person : person + 1])[0]
        grid[cells[person]] = 0
        cells[person] += room.moves[choose(person, allowed)]
        grid[cells[person]] = 1
    return cells


@given(crowds(), st.integers(0, 2**32 - 1))
@settings(max_examples=150)
def test_playing_levels_gives_exactly_the_one_by_one_result(crowd, salt):
    room, cells, _ = crowd
    order = np.random.default_rng(salt).permutation(len(cells))
    draws = np.random.default_rng(salt).integers(0, 2**31, len(cells))

    def choose(person, allowed):
        options = np.flatnonzero(allowed)
        return options[draws[person] % len(options)]

    expected = one_by_one(room, order, cells, choose)
    levels = move_levels(room, order, cells)
    assert sorted(np.concatenate(levels).tolist()) == list(range(len(cells)))
    now, grid = cells.copy(), grid_of(room, cells)
    for level in levels:
        start = now.copy()
        allowed = free_moves(room, grid, start[level])
        for person, row in zip(level.tolist(), allowed, strict=True):
            now[person] = start[person] + room.moves[choose(person, row)]
        grid[start[level]] = 0
        grid[now[level]] = 1
    assert now.tolist() == expected.tolist()
    assert len(set(now.tolist())) == len(now)


@given(crowds())
@settings(max_examples=60)
def test_levels_are_as_early_as_they_can_be(crowd):
    room, cells, _ = crowd
    order = np.arange(len(cells))
    level_of = {p: k for k, level in enumerate(move_levels(room, order, cells)) for p in level.tolist()}
    row, col = room.row_col(cells)
    for person in range(len(cells)):
        near = [p for p in range(person) if max(abs(row[p] - row[person]), abs(col[p] - col[person])) <= 2]
        assert level_of[person] == max((level_of[p] + 1 for p in near), default=0)


@given(crowds(), st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_walking_is_greedy_one_by_one(crowd, salt):
    room, cells, targets = crowd
    order = np.random.default_rng(salt).permutation(len(cells))

    def choose(person, allowed):
        goal = room.exit_cells[targets[person]]
        own_distance = room.squared_distance(cells[person], goal)
        best, chosen = own_distance, STAY
        for move in np.flatnonzero(allowed):
            away = room.squared_distance(cells[person] + room.moves[move], goal)
            if away < best:
                best, chosen = away, move
        return chosen

    expected = one_by_one(room, order, cells, choose)
    walked = cells.copy()
    walked[order] = walk_one_by_one(room, grid_of(room, cells), cells[order], targets[order])
    assert walked.tolist() == expected.tolist()


def test_walking_ties_go_to_the_first_published_move():
    # Down-right and up-right are equally near to an exit straight ahead if right is taken.
    room = build_room(9, 9, (("right", 4, 8),), ())
    cells = room.cells([(4, 5), (4, 4)])
    walked = walk_one_by_one(room, grid_of(room, cells), cells[1:], np.array([0]))
    assert walked.tolist() == [room.cell(5, 5)]


@pytest.mark.parametrize("people", [1, 30])
def test_walkers_reach_the_exit(people):
    room = build_room(12, 12, wall_exits(12, 12), ())
    cells = np.random.default_rng(0).choice(room.start_cells, people, replace=False)
    targets = np.zeros(people, dtype=np.int64)
    for _ in range(12):
        cells = walk_one_by_one(room, grid_of(room, cells), cells, targets)
    assert room.exit_cells[0] in cells
