"""What one person of a scene sees, by the same rules as its observation."""

from __future__ import annotations

import numpy as np

from llm_coop_envs.evacuation.faces.scene import INSIDE, EvacuationScene, exit_cells_of
from llm_coop_envs.evacuation.slots import ExitView
from llm_coop_envs.evacuation.vision import view_of


def target_of(scene: EvacuationScene, person: int) -> tuple[int, int] | None:
    """Return the nearest cell of the exit that a person heads for; `None` while it heads for none."""
    heading = int(scene.headings[person])
    row, col = scene.positions[person].tolist()
    cells = [(r, c) for r, c, exit_ in exit_cells_of(scene.room) if exit_ == heading]
    return min(cells, key=lambda cell: (cell[0] - row) ** 2 + (cell[1] - col) ** 2, default=None)


def cells_seen(scene: EvacuationScene, person: int) -> list[tuple[int, int]]:
    """Return the cells that a person sees towards the exit it heads for."""
    target = target_of(scene, person)
    if target is None or scene.status[person] != INSIDE:
        return []
    row, col = scene.positions[person].tolist()
    return sorted(view_of(scene.room).visible(scene.room.cell(row, col), scene.room.cell(*target)))


def exits_seen(scene: EvacuationScene, person: int) -> list[ExitView]:
    """Return what a person saw of every exit when the round began: mean distance to its cells, people towards them."""
    room = scene.room
    cells = room.cells(scene.stood)
    grid = np.zeros(room.height * room.width, dtype=np.uint8)
    grid[cells[scene.status == INSIDE]] = 1
    if scene.count_desks:
        grid |= room.desks
    watcher = cells[person : person + 1]
    people = view_of(room).people_towards(grid, watcher, count_self=scene.count_self)[0].tolist()
    distance = room.mean_distance[room.table_index(watcher)][0].tolist()
    return [ExitView(*values) for values in zip(room.exit_names, distance, people, strict=True)]
