import numpy as np
import pytest

from llm_coop_envs.evacuation.room import (
    MOVES,
    STAY,
    VIEW_RADIUS,
    build_room,
    cells_without_way_out,
    published_desks,
    wall_exits,
)


def test_the_published_exits_in_their_order():
    assert wall_exits(33, 33) == (
        ("bottom", 32, 15),
        ("left", 15, 0),
        ("bottom", 32, 16),
        ("left", 16, 0),
        ("bottom", 32, 17),
        ("left", 17, 0),
        ("right", 17, 32),
    )


def test_exits_of_other_rooms_and_widths():
    assert wall_exits(11, 11) == (
        ("bottom", 10, 4),
        ("left", 4, 0),
        ("bottom", 10, 5),
        ("left", 5, 0),
        ("bottom", 10, 6),
        ("left", 6, 0),
        ("right", 6, 10),
    )
    assert wall_exits(8, 12, (1, 0, 2)) == (("bottom", 7, 5), ("right", 4, 11), ("right", 5, 11))


def test_the_published_desks():
    desks = published_desks()
    assert len(desks) == len(set(desks)) == 264
    assert desks[:2] == ((2, 4), (2, 5))
    assert desks[-1] == (29, 28)
    assert {row for row, _ in desks} == {2, 4, 6, 8, 10, 12, 19, 21, 23, 25, 27, 29}
    assert {col for _, col in desks} == {*range(4, 15), *range(18, 29)}


def test_the_published_moves():
    assert [(down, right) for _, down, right in MOVES] == [
        (0, 1),
        (1, 0),
        (0, -1),
        (-1, 0),
        (0, 0),
        (1, 1),
        (1, -1),
        (-1, -1),
        (-1, 1),
    ]
    assert [name for name, _, _ in MOVES] == [
        "right",
        "down",
        "left",
        "up",
        "stay",
        "down and right",
        "down and left",
        "up and left",
        "up and right",
    ]
    assert MOVES[STAY][0] == "stay"
    assert VIEW_RADIUS == 10


@pytest.mark.parametrize(("rows", "cols"), [(33, 33), (9, 14)])
def test_tables(rows, cols):
    exits = wall_exits(rows, cols)
    room = build_room(rows, cols, exits, ((2, 3),))
    assert room.exit_names == ("bottom", "left", "right")
    assert len(room.start_cells) == (rows - 2) * (cols - 2) - 1
    for row in range(rows):
        for col in range(cols):
            index = row * cols + col
            cell = room.cell(row, col)
            assert room.inside[index] == cell
            assert room.table_index(np.array([cell]))[0] == index
            away = [np.hypot(row - r, col - c) for _, r, c in exits]
            assert room.nearest_distance[index] == pytest.approx(min(away))
            first = int(np.argmin(away))
            assert room.exit_names[room.nearest_exit[index]] == exits[first][0]
            for which, name in enumerate(room.exit_names):
                mine = [a if exits[k][0] == name else np.inf for k, a in enumerate(away)]
                assert room.target_cell[index, which] == np.argmin(mine)
                assert room.mean_distance[index, which] == pytest.approx(np.mean([a for a in mine if a < np.inf]))
            is_exit = (row, col) in [(r, c) for _, r, c in exits]
            wall = row in (0, rows - 1) or col in (0, cols - 1)
            assert room.blocked[cell] == ((wall and not is_exit) or (row, col) == (2, 3))
            assert (room.exit_at[cell] >= 0) == is_exit
    assert room.blocked.sum() == room.height * room.width - (rows - 2) * (cols - 2) + 1 - len(exits)
    assert room.desks.sum() == 1


def test_rooms_are_shared_and_read_only():
    room = build_room(9, 9, wall_exits(9, 9), ())
    assert build_room(9, 9, wall_exits(9, 9), ()) is room
    with pytest.raises(ValueError, match="read-only"):
        room.blocked[0] = 0


def test_cells_without_a_way_out():
    ring = tuple((r, c) for r in (3, 4, 5) for c in (3, 4, 5) if (r, c) != (4, 4))
    assert cells_without_way_out(9, 9, wall_exits(9, 9), ring) == [(4, 4)]
    assert cells_without_way_out(9, 9, wall_exits(9, 9), ring[1:]) == []
    # A corner is shut in by three desks: there is no way along the walls.
    corners = {(1, 1): (1, 1), (1, 7): (1, -1), (7, 1): (-1, 1), (7, 7): (-1, -1)}
    for (row, col), (down, right) in corners.items():
        desks = ((row + down, col), (row, col + right), (row + down, col + right))
        assert cells_without_way_out(9, 9, wall_exits(9, 9), desks) == [(row, col)]
    assert cells_without_way_out(33, 33, wall_exits(33, 33), published_desks()) == []
