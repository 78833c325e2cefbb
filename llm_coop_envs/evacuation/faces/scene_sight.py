"""What one person of an evacuation sees, from a scene: by the scenario's own rules, as its texts say it."""

from __future__ import annotations

import numpy as np

from llm_coop_envs.evacuation.faces.scene import INSIDE, EvacuationScene, exit_places
from llm_coop_envs.evacuation.slots import ExitView
from llm_coop_envs.evacuation.vision import view_of


def target_of(scene: EvacuationScene, person: int) -> tuple[int, int] | None:
    """The cell of the exit that a person heads for which is nearest to it; `None` while it heads for none."""
    heading = int(scene.headings[person])
    row, col = scene.positions[person].tolist()
    cells = [(r, c) for r, c, exit_ in exit_places(scene.room) if exit_ == heading]
    return min(cells, key=lambda cell: (cell[0] - row) ** 2 + (cell[1] - col) ** 2, default=None)


def cells_seen(scene: EvacuationScene, person: int) -> list[tuple[int, int]]:
    """The cells that a person looks over towards the exit it heads for."""
    target = target_of(scene, person)
    if target is None or scene.status[person] != INSIDE:
        return []
    row, col = scene.positions[person].tolist()
    return sorted(view_of(scene.room).visible(scene.room.cell(row, col), scene.room.cell(*target)))


def exits_seen(scene: EvacuationScene, person: int) -> list[ExitView]:
    """What a person saw of every exit when the round began: mean distance to its cells, people towards them."""
    room = scene.room
    cells = room.cells(scene.stood)
    grid = np.zeros(room.height * room.width, dtype=np.uint8)
    grid[cells[scene.status == INSIDE]] = 1
    if scene.count_desks:
        grid |= room.desks
    here = cells[person : person + 1]
    people = view_of(room).people_towards(grid, here, count_self=scene.count_self)[0].tolist()
    distance = room.mean_distance[room.place(here)][0].tolist()
    return [ExitView(*known) for known in zip(room.exit_names, distance, people, strict=True)]
