"""What one person of an evacuation sees, from a scene: by the scenario's own rules, as its texts say it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from llm_coop_envs.evacuation.room import Room, build_room
from llm_coop_envs.evacuation.vision import view_of
from llm_coop_envs.render.scenes.base import INSIDE, EvacuationScene, RoomPlan


@dataclass(frozen=True, kw_only=True)
class Towards:
    """What a person knows of one exit.

    Attributes:
        name: the exit.
        distance: mean distance to its cells.
        people: mean number of people seen towards them.
    """

    name: str
    distance: float
    people: float


def target_of(scene: EvacuationScene, person: int) -> tuple[int, int] | None:
    """The cell of the exit that a person heads for which is nearest to it; `None` while it heads for none."""
    heading = int(scene.headings[person])
    if heading < 0:
        return None
    row, col = scene.positions[person].tolist()
    cells = [
        cell for cell, group in zip(scene.room.exit_cells, scene.room.exit_groups, strict=True) if group == heading
    ]
    return min(cells, key=lambda cell: (cell[0] - row) ** 2 + (cell[1] - col) ** 2)


def fan(scene: EvacuationScene, person: int) -> list[tuple[int, int]]:
    """The cells that a person looks over towards the exit it heads for."""
    target = target_of(scene, person)
    if target is None or scene.status[person] != INSIDE:
        return []
    room = _room(scene.room)
    row, col = scene.positions[person].tolist()
    return sorted(view_of(room).visible(room.cell(row, col), room.cell(*target)))


def towards(scene: EvacuationScene, person: int) -> list[Towards]:
    """What a person saw of every exit when the round began."""
    room = _room(scene.room)
    cells = room.cells(scene.stood)
    inside = scene.status == INSIDE
    grid = np.zeros(room.height * room.width, dtype=np.uint8)
    grid[cells[inside]] = 1
    if scene.count_desks:
        grid |= room.desks
    here = cells[person : person + 1]
    seen = view_of(room).people_towards(grid, here, count_self=scene.count_self)[0]
    distance = room.mean_distance[room.place(here)][0]
    return [
        Towards(name=name, distance=float(far), people=float(count))
        for name, far, count in zip(scene.room.exit_names, distance, seen, strict=True)
    ]


@lru_cache(maxsize=8)
def _room(plan: RoomPlan) -> Room:
    names = (plan.exit_names[group] for group in plan.exit_groups)
    exits = tuple((name, row, col) for name, (row, col) in zip(names, plan.exit_cells, strict=True))
    return build_room(plan.rows, plan.cols, exits, plan.desks)
