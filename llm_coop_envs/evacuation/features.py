"""The observation as numbers: the same facts as the slots, scaled to [-1, 1]."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from llm_coop_envs.evacuation.crowd import Crowd
from llm_coop_envs.evacuation.movement import free_moves
from llm_coop_envs.evacuation.room import MOVES, STAY, Room
from llm_coop_envs.evacuation.settings import EvacuationSettings

# More than a view fan has cells (97 at most), and more than can be seen all around.
PEOPLE_SCALE = 100.0
VISIBLE_SCALE = 400.0
NEAR_SCALE = 9.0

_WAYS = [move for move in range(len(MOVES)) if move != STAY]


def feature_names(room: Room) -> tuple[str, ...]:
    """Return the names of the feature columns.

    * `row`, `col`: own cell, 0 to 1.
    * `last_down`, `last_right`: the last actual move, -1, 0 or 1.
    * `target_down`, `target_right`: how far the exit cell one heads for lies away, as a share of the room; 0 without
      one.
    * per exit `distance_*` (mean, as a share of the room's diagonal), `people_*` (people seen towards it / 100, 1 at
      most; -1 for whoever sees none), `heading_*` (0 or 1).
    * `nearest_distance`: to the nearest exit cell, as a share of the diagonal.
    * `around`: people around, divided by 9 (3 x 3 cells) or by 400 (all in sight); -1 for whoever sees none.
    * `plans`, `overtaken`: 0 or 1. `strong`, `confident`: the persona, 1 or -1, 0 without personas.
    * `round`: as a share of all rounds.
    * per move but staying `free_*`: whether that neighbouring cell is free.
    """
    exits = [f"{feature}_{name}" for feature in ("distance", "people", "heading") for name in room.exit_names]
    ways = ["free_" + MOVES[move][0].replace(" ", "_") for move in _WAYS]
    start = ("row", "col", "last_down", "last_right", "target_down", "target_right")
    return (*start, *exits, "nearest_distance", "around", "plans", "overtaken", "strong", "confident", "round", *ways)


class FeatureMaker:
    """Builds the feature matrix.

    Attributes:
        extent: (2, 1) what rows and columns are divided by.
        diagonal: what distances are divided by.
        around_scale: what the number of people around is divided by.
        persona: (people, 2) whether strong, whether confident.
    """

    def __init__(self, settings: EvacuationSettings, crowd: Crowd) -> None:
        self._settings = settings
        self._crowd = crowd
        room = crowd.room
        names = feature_names(room)
        self._at = {name: column for column, name in enumerate(names)}
        self._width = len(names)
        exits = len(room.exit_names)
        self._people = slice(6 + exits, 6 + 2 * exits)
        self.extent = np.array([[room.rows - 1], [room.cols - 1]], dtype=np.float64)
        self.diagonal = float(np.hypot(room.rows - 1, room.cols - 1))
        self.around_scale = NEAR_SCALE if settings.crowd_count == "near" else VISIBLE_SCALE
        self.persona = np.zeros((settings.people, 2))
        if settings.personas != "none":
            traits = np.column_stack([crowd.physical, crowd.mental])
            self.persona[:] = 1 - 2 * (traits[:, ::-1] if settings.persona_swap else traits)

    def matrix(self, round_: int) -> npt.NDArray[np.float32]:
        """Return the features of all people, (people, features)."""
        crowd, room, at = self._crowd, self._crowd.room, self._at
        exits = len(room.exit_names)
        out = np.zeros((len(crowd.cells), self._width), dtype=np.float32)
        position = np.stack(room.row_col(crowd.cells))
        out[:, :2] = (position / self.extent).T
        moved = crowd.previous >= 0
        out[:, 2:4] = ((position - np.stack(room.row_col(crowd.previous))) * moved).T
        heads = crowd.heading >= 0
        goal = np.stack(room.row_col(room.exit_cells[crowd.target]))
        out[:, 4:6] = ((goal - position) / self.extent * heads).T
        table_index = position[0] * room.cols + position[1]
        column = 6
        out[:, column : column + exits] = room.mean_distance[table_index] / self.diagonal
        # With a perception error people may see more than there are.
        out[:, self._people] = np.minimum(crowd.seen / PEOPLE_SCALE, 1.0)
        headed = np.flatnonzero(heads)
        out[headed, column + 2 * exits + crowd.heading[headed]] = 1.0
        out[:, at["nearest_distance"]] = room.nearest_distance[table_index] / self.diagonal
        out[:, at["around"]] = crowd.around / self.around_scale
        out[crowd.planners, at["plans"]] = 1.0
        out[:, at["overtaken"]] = crowd.overtaken
        out[:, at["strong"] : at["strong"] + 2] = self.persona
        out[:, at["round"]] = round_ / (self._settings.last_round + 1)
        out[:, -len(_WAYS) :] = free_moves(room, crowd.people, crowd.cells)[:, _WAYS]
        return out

    def hide_people(self, rows: npt.NDArray[np.float32], is_hidden: npt.NDArray[np.bool_]) -> None:
        """Replace the numbers of people by -1 in the rows where `is_hidden`."""
        rows[is_hidden, self._people] = rows[is_hidden, self._at["around"]] = -1.0

    def hide_last_move(self, rows: npt.NDArray[np.float32], is_hidden: npt.NDArray[np.bool_]) -> None:
        """Set the last actual move to 0 in the rows where `is_hidden`."""
        rows[is_hidden, 2:4] = 0.0
