"""Random crowds for property tests."""

import numpy as np
from hypothesis import strategies as st

from llm_coop_envs.evacuation.room import build_room, wall_exits


@st.composite
def crowds(draw, fullest=1.0):
    """(room, padded cells of the people, exit cells they head for): small rooms, up to full, some with desks."""
    rows, cols = draw(st.integers(4, 12)), draw(st.integers(4, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    inside = [(r, c) for r in range(1, rows - 1) for c in range(1, cols - 1)]
    widths = (min(3, cols - 2), min(2, rows - 2), 1)
    desks = tuple(cell for cell in inside if rng.random() < draw(st.sampled_from([0.0, 0.2])))
    exits, diagonals = wall_exits(rows, cols, widths), draw(st.booleans())
    room = build_room(rows, cols, exits, desks[: len(inside) - 1], diagonals=diagonals)
    people = max(1, int(len(room.start_cells) * draw(st.floats(0.1, fullest))))
    cells = rng.choice(room.start_cells, people, replace=False)
    return room, cells, rng.integers(0, len(room.exit_cells), people)


def grid_of(room, cells):
    grid = np.zeros(room.height * room.width, dtype=np.uint8)
    grid[cells] = 1
    return grid
