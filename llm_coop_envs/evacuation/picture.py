"""The room drawn as lines of text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from llm_coop_envs.evacuation.crowd import Crowd

WALL, DESK, EXIT, PERSON, FREE = "#", "=", "E", "o", "."


def draw(crowd: Crowd, out_by_exit: Sequence[int]) -> str:
    """Draw the room as text, with the number of people inside and out by each exit."""
    room = crowd.room
    signs = np.where(room.blocked, WALL, FREE)
    signs[room.desks > 0] = DESK
    signs[room.exit_cells] = EXIT
    signs[crowd.people > 0] = PERSON
    lines = ["".join(row) for row in signs[room.inside].reshape(room.rows, room.cols).tolist()]
    counts = ", ".join(f"{name} {count}" for name, count in zip(room.exit_names, out_by_exit, strict=True))
    return "\n".join([*lines, f"inside {len(crowd.queue)}; out: {counts}"])
