"""Following an evacuation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.evacuation.room import MOVES
from llm_coop_envs.render.scenes.base import DISABLED, ESCAPED, INSIDE, OPENED, EvacuationScene, RoomPlan
from llm_coop_envs.render.scenes.tracking import Event, Growing, Tracker, frozen

#: Over how many rounds a trail goes back.
TRAIL = 8


class EvacuationTracker(Tracker[EvacuationScene]):
    """Follows an evacuation: moves one by one in the sequential engine, else round by round.

    Args:
        start: the episode's `start` event.
    """

    def __init__(self, start: Event) -> None:
        super().__init__(start)
        self._plan = plan_of(start["room"])
        settings = self.settings
        count = len(self.agents)
        self._exits = len(self._plan.exit_names)
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

    def scene(self) -> EvacuationScene:
        """The scene of the moment."""
        settings = self.settings
        return EvacuationScene(
            **self.common(),
            room=self._plan,
            rounds=settings["rounds"],
            positions=self._kept("positions", self._positions),
            status=self._kept("status", self._status),
            headings=self._kept("headings", self._headings),
            overtaken=self._kept("overtaken", self._overtaken),
            planners=self._kept("planners", self._planners),
            personas=self._personas,
            selfish=settings["personas"] == "selfish",
            stood=self._stood,
            trails=self._trails.view(TRAIL),
            curve=self._curve.view(),
            curve_from=self._curve_from,
            out=tuple(self._out),
            chosen=self._kept("chosen", self._chosen),
            hearing_radius=settings["hearing_radius"] if settings["talk"] else None,
            count_self=settings["count_self"],
            count_desks=settings["count_desks"],
        )

    def _kept(self, name: str, now: NDArray[Any]) -> NDArray[Any]:
        """A read-only copy, shared with the scene before if nothing changed: most steps change little."""
        before = self._shared.get(name)
        if before is None or not np.array_equal(before, now):
            before = self._shared[name] = frozen(now)
        return before

    def _enter(self) -> None:
        self._chosen[:] = -1
        self._planners[:] = False
        self._overtaken[:] = False
        self._stood = frozen(self._positions)

    def _choose(self, who: int, phase: str, choice: int) -> None:
        if phase == "exit":
            self._headings[who] = self._chosen[who] = choice
            # Records without `opening` events tell who plans only by what they do.
            self._planners[who] = True
        elif self._follows_moves:
            _, down, right = MOVES[choice - self._exits]
            self._positions[who] += (down, right)

    def _settle(self, event: Event) -> None:
        self._take_out(event)
        self._place(event)
        self._curve.append(self._out)
        where = self._positions.copy()
        where[self._status != INSIDE] = -1
        self._trails.append(where)

    def _other(self, event: Event) -> None:
        if event["type"] == "opening":
            self._take_out(event)
            self._planners[event["planners"]] = True
            self._overtaken[event["overtaken"]] = True
            self.doing = OPENED
        elif event["type"] == "recap":
            self._take_out(event)
            self._place(event)
            self._out = list(event["out"])
            self._stood = frozen(np.array(event["stood"], dtype=np.int64).reshape(-1, 2))
            self._status[event["gone"]] = ESCAPED
            self._trails = Growing((len(self.agents), 2), np.int64)
            self._curve = Growing((self._exits,), np.int64)
            self._curve.append(self._out)
            # What is known is how things stood when the running round opened.
            self._curve_from = max(0, event["round"] - 1)
            self.doing = OPENED

    def _take_out(self, event: Event) -> None:
        for person, cell in event["escaped"]:
            if self._status[person] == INSIDE:
                self._status[person] = ESCAPED
                self._out[self._plan.exit_groups[cell]] += 1
        self._status[event["disabled"]] = DISABLED

    def _place(self, event: Event) -> None:
        for person, where in enumerate(event["positions"]):
            if where is not None:
                self._positions[person] = where
        self._headings[:] = [-1 if exit_ is None else exit_ for exit_ in event["headings"]]
        self._planners[:] = False
        self._planners[event["planners"]] = True
        self._overtaken[:] = False
        self._overtaken[event["overtaken"]] = True


def plan_of(room: Event) -> RoomPlan:
    """The room of a `start` event."""
    names = tuple(room["exit_names"])
    return RoomPlan(
        rows=room["rows"],
        cols=room["cols"],
        exit_names=names,
        exit_cells=tuple((row, col) for _, row, col in room["exits"]),
        exit_groups=tuple(names.index(name) for name, _, _ in room["exits"]),
        desks=tuple((row, col) for row, col in room["desks"]),
    )
