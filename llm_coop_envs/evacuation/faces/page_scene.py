"""The evacuation on the web page: the room from above, and what one person sees in it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llm_coop_envs.core.scenario import Event
from llm_coop_envs.evacuation.faces.scene import ESCAPED, INSIDE, PERSONA_WORDS, EvacuationScene, exit_cells_of
from llm_coop_envs.evacuation.faces.scene_sight import cells_seen, exits_seen
from llm_coop_envs.evacuation.metrics import round_rows
from llm_coop_envs.render.scenes.on_page import PageFace, Plain


def _fixed_data(scene: EvacuationScene) -> Plain:
    room = scene.room
    cells = exit_cells_of(room)
    rows, cols = room.row_col(np.flatnonzero(room.desks))
    return {
        "rows": room.rows,
        "cols": room.cols,
        "exits": [
            {"name": name, "cells": [(row, col) for row, col, exit_ in cells if exit_ == number]}
            for number, name in enumerate(room.exit_names)
        ],
        "desks": list(zip(rows.tolist(), cols.tolist(), strict=True)),
        "hears": scene.hearing_radius,
        "rounds": scene.rounds,
    }


def _moving_data(scene: EvacuationScene) -> Plain:
    return {
        "at": scene.positions.tolist(),
        "from": scene.stood.tolist(),
        "status": scene.status.tolist(),
        "heading": scene.headings.tolist(),
        "out": list(scene.out),
    }


def _sight(scene: EvacuationScene, person: int) -> Plain:
    if scene.status[person] != INSIDE:
        return {"cells": [], "lines": ["out" if scene.status[person] == ESCAPED else "disabled"]}
    seen = exits_seen(scene, person)
    lines = [f"{view.name}: {view.distance:.1f} cells away, {view.people:.1f} people towards it" for view in seen]
    return {"cells": cells_seen(scene, person), "lines": lines}


def _personas(start: Event) -> list[str]:
    return [PERSONA_WORDS.get((strong, confident), "") for strong, confident in start["shown"]]


def _moments(events: Sequence[Event]) -> list[tuple[int, str]]:
    moments = []
    first = False
    for row in round_rows(events):
        if row["escaped"] and not first:
            first = True
            moments.append((row["round"], "the first are out"))
        changed = row["changed_after_message"]
        if changed:
            moments.append((row["round"], f"{changed} changed exit after a message"))
    return moments


PAGE = PageFace(
    kind="room",
    still=_fixed_data,
    moving=_moving_data,
    sight=_sight,
    personas=_personas,
    moments=_moments,
    hearers=lambda start: "neighbours",
)
