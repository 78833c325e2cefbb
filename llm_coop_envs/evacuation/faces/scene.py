"""Scenes of an evacuation, and the tracker that makes them from events."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.settings import PERCEPTION
from llm_coop_envs.evacuation.room import MOVES, Room, build_room
from llm_coop_envs.evacuation.settings import EvacuationSettings
from llm_coop_envs.render.scenes.base import OPENED, IntArray, Scene
from llm_coop_envs.render.scenes.tracking import Event, Growing, Tracker, frozen

INSIDE, ESCAPED, DISABLED = 0, 1, 2
#: A persona's two parts, strong and confident, in words.
PERSONA_WORDS: dict[tuple[bool | None, bool | None], str] = {
    (True, True): "strong, confident",
    (True, False): "strong, afraid",
    (False, True): "not strong, confident",
    (False, False): "not strong, afraid",
}
#: Length of a trail, in rounds.
TRAIL = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class EvacuationScene(Scene):
    """A moment of an evacuation. Per-person arrays are in index order.

    Attributes:
        room: the room.
        rounds: after how many rounds whoever is inside is lost.
        positions: (people, 2) row and column; where they were last for those who have left.
        status: (people,) `INSIDE`, `ESCAPED` or `DISABLED`.
        headings: (people,) the exit each heads for, -1 while unknown.
        overtaken: (people,) who is knocked over.
        planners: (people,) who talks and chooses in this round.
        personas: (strong, confident) as the texts say; each part `None` without personas.
        selfish: whether the personas are unwilling to help.
        stood: (people, 2) positions when the round began: from there they look and speak.
        trails: (rounds, people, 2) positions at the ends of the last rounds, oldest first; -1 once out.
        curve: (rounds so far + 1, exits) how many were out by each exit, from `curve_from` on, round by round.
        curve_from: the round of the curve's first row: 0, unless only a later part of the episode is known.
        out: how many are out by each exit now.
        chosen: (people,) the exit chosen in this round, -1 for none.
        hearing_radius: how far one is heard, in cells; `None` without talk.
        count_self: whether the people seen include the watcher.
        count_desks: whether they include desks.
        hidden: whether it shows only what some people know: where others head for is not among it.
        seen_by_all: whether everybody sees and remembers all that the room shows.
    """

    room: Room
    rounds: int
    positions: IntArray
    status: IntArray
    headings: IntArray
    overtaken: NDArray[np.bool_]
    planners: NDArray[np.bool_]
    personas: tuple[tuple[bool | None, bool | None], ...]
    selfish: bool
    stood: IntArray
    trails: IntArray
    curve: IntArray
    curve_from: int
    out: tuple[int, ...]
    chosen: IntArray
    hearing_radius: float | None
    count_self: bool
    count_desks: bool
    hidden: bool = False
    seen_by_all: bool = True

    def known_to(self, players: Collection[int]) -> EvacuationScene | None:
        """Return the part of the scene that some people in the room know; `None` if a treatment limits what people see.

        Of the others it shows the positions. Messages out of earshot, headings and personas of others are hidden.
        """
        if not self.seen_by_all:
            return None
        others = np.array([person not in players for person in range(len(self.agents))])
        return replace(
            self,
            said=tuple(
                message for message in self.said if any(message.speaker == i or message.heard_by(i) for i in players)
            ),
            headings=np.where(others, -1, self.headings),
            chosen=np.where(others, -1, self.chosen),
            planners=self.planners & ~others,
            personas=tuple((None, None) if others[i] else own for i, own in enumerate(self.personas)),
            hidden=True,
        )


class EvacuationTracker(Tracker[EvacuationScene]):
    """Follows an evacuation: moves one by one in the sequential engine, else round by round."""

    def __init__(self, start: Event) -> None:
        super().__init__(start)
        settings, room = self.settings, start["room"]
        exits, desks = (tuple(tuple(cell) for cell in room[name]) for name in ("exits", "desks"))
        self._room = build_room(room["rows"], room["cols"], exits, desks)
        count = len(self.agents)
        self._exits = len(self._room.exit_names)
        self._follows_moves = settings["engine"] == "sequential"
        self._personas = tuple((strong, confident) for strong, confident in start["shown"])
        self._positions = np.array(start["positions"], dtype=np.int64).reshape(count, 2)
        self._stood = frozen(self._positions)
        self._status = np.full(count, INSIDE, dtype=np.int64)
        self._headings = np.full(count, -1, dtype=np.int64)
        self._chosen = np.full(count, -1, dtype=np.int64)
        self._planners = np.zeros(count, dtype=np.bool_)
        self._overtaken = np.zeros(count, dtype=np.bool_)
        self._out = [0] * self._exits
        self._trails = Growing((count, 2), np.int64)
        self._trails.append(self._positions)
        self._curve = Growing((self._exits,), np.int64)
        self._curve.append(self._out)
        self._curve_from = 0
        self._shared: dict[str, NDArray[Any]] = {}
        settings_by_round = [settings, *(change["settings"] for change in settings.get("changes", ()))]
        usual = {name: getattr(EvacuationSettings, name) for name in PERCEPTION}
        self._seen_by_all = all(
            settings_.get(name, value) == value for settings_ in settings_by_round for name, value in usual.items()
        )

    def scene(self) -> EvacuationScene:
        """Return the scene of the present moment."""
        settings = self.settings
        return EvacuationScene(
            **self.common(),
            room=self._room,
            **self._frozen_copies("positions", "status", "headings", "overtaken", "planners", "chosen"),
            personas=self._personas,
            selfish=settings["personas"] == "selfish",
            stood=self._stood,
            trails=self._trails.view(TRAIL),
            curve=self._curve.view(),
            curve_from=self._curve_from,
            out=tuple(self._out),
            seen_by_all=self._seen_by_all,
            hearing_radius=settings["hearing_radius"] if settings["talk"] else None,
            **{name: settings[name] for name in ("rounds", "count_self", "count_desks")},
        )

    def _frozen_copies(self, *names: str) -> dict[str, Any]:
        """Return read-only copies of arrays, shared with the previous scene if unchanged; most steps change little."""
        for name in names:
            now = getattr(self, f"_{name}")
            if name not in self._shared or not np.array_equal(self._shared[name], now):
                self._shared[name] = frozen(now)
        return self._shared

    def _enter(self) -> None:
        self._chosen[:] = -1
        self._planners[:] = False
        self._overtaken[:] = False
        self._stood = frozen(self._positions)

    def _choose(self, person: int, phase: str, choice: int) -> None:
        if phase == "exit":
            self._headings[person] = self._chosen[person] = choice
            # Records without `opening` events show planners only by their choices.
            self._planners[person] = True
        elif self._follows_moves:
            _, down, right = MOVES[choice - self._exits]
            self._positions[person] += (down, right)

    def _settle(self, event: Event) -> None:
        self._apply_departures(event)
        self._apply_positions(event)
        self._curve.append(self._out)
        positions = self._positions.copy()
        positions[self._status != INSIDE] = -1
        self._trails.append(positions)

    def _other(self, event: Event) -> None:
        if event["type"] == "opening":
            self._apply_departures(event)
            self._planners[event["planners"]] = True
            self._overtaken[event["overtaken"]] = True
            self.doing = OPENED
        elif event["type"] == "recap":
            self._apply_departures(event)
            self._apply_positions(event)
            self._out = list(event["out"])
            self._stood = frozen(np.array(event["stood"], dtype=np.int64).reshape(-1, 2))
            self._status[event["gone"]] = ESCAPED
            self._trails = Growing((len(self.agents), 2), np.int64)
            self._curve = Growing((self._exits,), np.int64)
            self._curve.append(self._out)
            # A recap describes the moment when the running round opened.
            self._curve_from = max(0, event["round"] - 1)
            self.doing = OPENED

    def _apply_departures(self, event: Event) -> None:
        for person, cell in event["escaped"]:
            if self._status[person] == INSIDE:
                self._status[person] = ESCAPED
                self._out[self._room.exit_group[cell]] += 1
        self._status[event["disabled"]] = DISABLED

    def _apply_positions(self, event: Event) -> None:
        for person, cell in enumerate(event["positions"]):
            if cell is not None:
                self._positions[person] = cell
        self._headings[:] = [-1 if exit_ is None else exit_ for exit_ in event["headings"]]
        self._planners[:] = False
        self._planners[event["planners"]] = True
        self._overtaken[:] = False
        self._overtaken[event["overtaken"]] = True


@lru_cache(maxsize=32)
def exit_cells_of(room: Room) -> tuple[tuple[int, int, int], ...]:
    """Return (row, column, exit) of every exit cell, in the order that decides ties."""
    rows, cols = room.row_col(room.exit_cells)
    return tuple(zip(rows.tolist(), cols.tolist(), room.exit_group.tolist(), strict=True))
