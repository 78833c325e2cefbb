import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference_fan import fan

from llm_coop_envs.evacuation import vision
from llm_coop_envs.evacuation.placement import random_cells
from llm_coop_envs.evacuation.room import build_room, published_desks, wall_exits
from llm_coop_envs.evacuation.vision import RoomVision, view_of

PLAIN = build_room(33, 33, wall_exits(33, 33), ())
DESKS = build_room(33, 33, wall_exits(33, 33), published_desks())


@pytest.mark.parametrize(("exit_cell", "cells"), [((32, 16), 89), ((16, 0), 89), ((32, 15), 83), ((15, 0), 83)])
def test_cells_seen_from_the_middle(exit_cell, cells):
    seen = view_of(PLAIN).visible(PLAIN.cell(16, 16), PLAIN.cell(*exit_cell))
    assert len(seen) == cells
    assert (16, 16) in seen
    assert max(np.hypot(r - 16, c - 16) for r, c in seen) == pytest.approx(10.44, abs=0.005)


@pytest.mark.parametrize("room", [PLAIN, DESKS], ids=["plain", "desks"])
def test_every_fan_of_a_part_of_the_published_room_is_the_plain_one(room):
    desks = set(published_desks()) if room is DESKS else set()
    exits = wall_exits(33, 33)
    rng = np.random.default_rng(1)
    for cell in rng.choice(room.start_cells, 60, replace=False).tolist():
        row, col = (int(part[0]) for part in room.row_col(np.array([cell])))
        for _, exit_row, exit_col in exits:
            seen = view_of(room).visible(cell, room.cell(exit_row, exit_col))
            assert seen == fan((row, col), (exit_row, exit_col), 33, 33, desks)


@pytest.mark.parametrize("way", [(1, 1), (1, -1), (-1, 1), (-1, -1)])
def test_fans_exactly_on_the_diagonal_where_rounding_decides(way):
    rows = 61
    exit_cell = (60 if way[0] > 0 else 0, 60 if way[1] > 0 else 0)
    room = build_room(rows, rows, (("corner", *exit_cell),), ())
    for size in range(1, 60):
        watcher = exit_cell[0] - way[0] * size, exit_cell[1] - way[1] * size
        assert view_of(room).visible(room.cell(*watcher), room.cell(*exit_cell)) == fan(watcher, exit_cell, rows, rows)


@st.composite
def crowded_rooms(draw):
    rows, cols = draw(st.integers(5, 30)), draw(st.integers(5, 30))
    inside = [(r, c) for r in range(1, rows - 1) for c in range(1, cols - 1)]
    desks = draw(st.lists(st.sampled_from(inside), max_size=len(inside) // 3, unique=True))
    free = [cell for cell in inside if cell not in desks]
    people = draw(st.lists(st.sampled_from(free), min_size=1, max_size=min(12, len(free)), unique=True))
    return rows, cols, tuple(desks), people


@given(crowded_rooms(), st.booleans())
@settings(max_examples=60)
def test_counts_are_those_of_the_plain_fan(case, count_self):
    rows, cols, desks, people = case
    room = build_room(rows, cols, wall_exits(rows, cols), desks)
    cells = room.cells(people)
    grid = np.zeros(room.height * room.width, dtype=np.uint8)
    grid[cells] = 1
    counted = set(people)
    for extra in (False, True):
        if extra:
            grid = grid | room.desks
            counted |= set(desks)
        counts = RoomVision(room).people_towards(grid, cells, count_self=count_self)
        for person, cell in enumerate(people):
            for which, name in enumerate(room.exit_names):
                fans = [fan(cell, (r, c), rows, cols, set(desks)) for n, r, c in wall_exits(rows, cols) if n == name]
                expected = np.mean([len(seen & counted) - (not count_self) for seen in fans])
                assert counts[person, which] == pytest.approx(expected)


@given(crowded_rooms())
@settings(max_examples=40)
def test_people_all_around_are_those_along_all_rays(case):
    rows, cols, desks, people = case
    room = build_room(rows, cols, wall_exits(rows, cols), desks)
    cells = room.cells(people)
    grid = np.zeros(room.height * room.width, dtype=np.uint8)
    grid[cells] = 1
    counts = RoomVision(room).people_around(grid, cells)
    for person, (row, col) in enumerate(people):
        # Four fans along the axes overlap at their borders and cover all rays.
        far = [(row + 99, col), (row - 99, col), (row, col + 99), (row, col - 99)]
        seen = set().union(*(fan((row, col), goal, rows, cols, set(desks)) for goal in far))
        assert counts[person] == len(seen & set(people))


def test_somebody_on_the_exit_cell_itself_sees_nothing_towards_it():
    room = build_room(9, 9, (("right", 4, 8),), ())
    grid = np.zeros(room.height * room.width, dtype=np.uint8)
    cells = room.cells([(4, 8), (4, 7)])
    grid[cells] = 1
    for count_self in (True, False):
        counts = view_of(room).people_towards(grid, cells, count_self=count_self)
        assert counts[:, 0].tolist() == [0.0, 2.0 - (not count_self)]
    assert view_of(room).visible(room.cell(4, 8), room.cell(4, 8)) == frozenset()
    assert view_of(room).people_towards(grid, cells[:0], count_self=True).shape == (0, 1)


def test_what_is_kept_for_desks_can_be_thrown_away(monkeypatch):
    cells = random_cells(DESKS, 90, np.random.default_rng(2))
    grid = np.zeros(DESKS.height * DESKS.width, dtype=np.uint8)
    grid[cells] = 1
    expected = RoomVision(DESKS).people_towards(grid, cells, count_self=True)
    monkeypatch.setattr(vision, "_KEPT_ROWS", 50)
    small = RoomVision(DESKS)
    parts = [small.people_towards(grid, cells[at : at + 10], count_self=True) for at in range(0, 90, 10)]
    assert np.array_equal(np.concatenate(parts), expected)


def test_many_watchers_are_counted_in_portions(monkeypatch):
    cells = random_cells(PLAIN, 90, np.random.default_rng(2))
    grid = np.zeros(PLAIN.height * PLAIN.width, dtype=np.uint8)
    grid[cells] = 1
    expected = view_of(PLAIN).people_towards(grid, cells, count_self=True)
    monkeypatch.setattr(vision, "_PAIRS", 7 * 7)
    assert np.array_equal(view_of(PLAIN).people_towards(grid, cells, count_self=True), expected)


def test_looking_takes_a_few_megabytes_whatever_the_crowd():
    room = build_room(330, 330, wall_exits(330, 330, (30, 30, 10)), ())
    view, grid = view_of(room), np.zeros(room.height * room.width, dtype=np.uint8)
    peaks = []
    for people in (500, 5000):
        cells = random_cells(room, people, np.random.default_rng(2))
        tracemalloc.start()
        view.people_towards(grid, cells, count_self=True)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 4_000_000
