"""The people in the room and what happens to them in one round, on arrays.

The order inside a round is that of the authors' code of "Shall We Team Up" (Wu et al. 2024): people on exit cells
leave, the list of those left is shuffled (it keeps its order from round to round), it is drawn who re-plans, these
talk and choose exits, then everybody moves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from llm_coop_envs.evacuation.conflicts import settle_moves, walking_wishes
from llm_coop_envs.evacuation.injury import Attributes, ancestor_attributes, crush, pressure, published_attributes
from llm_coop_envs.evacuation.movement import move_levels, move_order, people_near, walk_one_by_one
from llm_coop_envs.evacuation.placement import cells_below_desks, random_cells, traits
from llm_coop_envs.evacuation.room import FloatArray, IntArray
from llm_coop_envs.evacuation.settings import EvacuationSettings
from llm_coop_envs.evacuation.vision import view_of
from llm_coop_envs.util.draws import CONFLICTS, OPTIONS, key_of, side_generator
from llm_coop_envs.util.packing import pack_value, unpack_value

_KEPT = (
    *("cells", "previous", "inside", "heading", "target", "history", "queue", "planners", "overtaken", "counts"),
    *("from_cells", "seen", "around", "_conflict_rng", "option_rng"),
)


class Crowd:
    """The people of one episode.

    Attributes:
        room: the room; disabled people may block cells of it.
        cells: each person's padded cell; the last one for those who have left.
        previous: the padded cell before the last actual move, -1 if there was none (authors' code: staying does not
            count).
        inside: who is in the room.
        heading: the exit each heads for, -1 before it is known.
        target: the exit cell each heads for, as an index into `room.exit_cells`.
        history: each person's choices of exits so far.
        queue: those inside, in the shuffled order of this round.
        planners: who talks and chooses in this round, in that order.
        overtaken: who is knocked over in this round.
        counts: in how many rounds each was knocked over.
        people: 1 where somebody stands, over padded cells.
        from_cells: where everybody stood when the round began.
        seen: (people, exits) numbers of people seen towards the exits when the round began.
        around: the numbers of people around when the round began.

    Args:
        settings: the settings.
        rng: the episode's generator.
        positions: padded cells to start from instead of drawing them.
    """

    def __init__(
        self, settings: EvacuationSettings, rng: np.random.Generator, positions: IntArray | None = None
    ) -> None:
        self._settings = settings
        self.room = settings.room
        self._view = view_of(self.room)
        count = settings.people
        fresh: np.random.Generator = unpack_value(pack_value(rng))
        self._conflict_rng = side_generator(key_of(rng), CONFLICTS)
        self.option_rng = side_generator(key_of(rng), OPTIONS)
        if positions is not None:
            self.cells = positions
        elif settings.start == "below_desks":
            self.cells = cells_below_desks(self.room, settings.desk_list, rng)
        else:
            self.cells = random_cells(self.room, count, rng)
        self.physical, self.mental = traits(count)
        self.attributes: Attributes | None = None
        if settings.injury == "inert":
            self.attributes = published_attributes(self.physical, fresh)
        elif settings.injury == "active":
            self.attributes = ancestor_attributes(count)
        self.previous = np.full(count, -1, dtype=np.int64)
        self.inside = np.ones(count, dtype=np.bool_)
        self.heading = np.full(count, -1, dtype=np.int64)
        self.target = np.zeros(count, dtype=np.int64)
        self.history: list[list[int]] = [[] for _ in range(count)]
        self.queue = np.arange(count, dtype=np.int64)
        self.planners = self.queue[:0]
        self.overtaken = np.zeros(count, dtype=np.bool_)
        self.counts = np.zeros(count, dtype=np.int64)
        self.people = np.zeros(self.room.height * self.room.width, dtype=np.uint8)
        self.people[self.cells] = 1
        self.from_cells = self.cells.copy()
        self.seen: FloatArray = np.zeros((count, len(self.room.exit_names)))
        self.around = np.zeros(count, dtype=np.int64)

    def leave_by_exits(self) -> list[tuple[int, int]]:
        """Let everybody who stands on an exit cell out: (person, index of that cell), in the order of the cells."""
        at = self.room.exit_at[self.cells[self.queue]]
        found = at >= 0
        if not found.any():
            return []
        who, at = self.queue[found], at[found]
        order = np.argsort(at)
        self._remove(who)
        return list(zip(who[order].tolist(), at[order].tolist(), strict=True))

    def close(self, exit_: int) -> None:
        """Let nobody onto an exit's cells until this is called again; -1 opens all exits."""
        blocked = self.room.blocked.copy()
        blocked[self.room.exit_cells] = self.room.exit_group == exit_
        self.room = replace(self.room, blocked=blocked)

    def take_out(self, who: IntArray) -> None:
        """Let people vanish from the room."""
        self._remove(who)

    def open_round(self, rng: np.random.Generator, replan_probability: float, *, first: bool) -> IntArray:
        """Shuffle, draw who re-plans, apply the injury rule, and look around.

        Args:
            rng: consumed by one shuffle and, unless everybody plans, one uniform number per person inside.
            replan_probability: the chance of each to plan.
            first: whether this is the first round.

        Returns:
            Those who are disabled now; they have left the room.
        """
        rng.shuffle(self.queue)
        if first and self._settings.all_plan_first:
            self.planners = self.queue.copy()
        else:
            self.planners = self.queue[rng.random(len(self.queue)) < replan_probability]
        disabled = self._crush()
        self._look()
        return disabled

    def rest(self) -> None:
        """Nobody plans and nobody is overtaken: there is no round to play."""
        self.planners = self.planners[:0]
        self.overtaken = np.zeros(len(self.cells), dtype=np.bool_)

    def declare(self, who: IntArray, exits: IntArray) -> None:
        """Let people head for exits: for the exit's cell that is nearest now, until they choose again."""
        self.heading[who] = exits
        self.target[who] = self.room.target_cell[self.room.place(self.cells[who]), exits]
        for person, choice in zip(who.tolist(), exits.tolist(), strict=True):
            self.history[person].append(choice)

    def set_off(self) -> None:
        """Let those inside who have never chosen head for the nearest exit."""
        lost = self.queue[self.heading[self.queue] < 0]
        if len(lost):
            place = self.room.place(self.cells[lost])
            self.heading[lost] = self.room.nearest_exit[place]
            self.target[lost] = self.room.target_cell[place, self.heading[lost]]

    def move_levels(self) -> list[IntArray]:
        """Who moves at the same time, step by step."""
        movers = self._movers()
        if self._settings.engine == "simultaneous":
            return [np.sort(movers)] if len(movers) else []
        return move_levels(self.room, move_order(self.room, movers, self.cells, self.target), self.cells)

    def move(self, who: IntArray, moves: IntArray) -> None:
        """Carry out the moves of one level, indices into `room.MOVES`, each allowed."""
        self._arrive(who, self.cells[who] + self.room.moves[moves])

    def walk(self) -> None:
        """Let everybody walk a step towards its exit cell."""
        movers = self._movers()
        if self._settings.engine == "simultaneous":
            self._arrive(movers, walking_wishes(self.room, self.people, self.cells[movers], self.target[movers]))
        else:
            order = move_order(self.room, movers, self.cells, self.target)
            self._arrive(order, walk_one_by_one(self.room, self.people, self.cells[order], self.target[order]))

    def disabled_so_far(self) -> list[int]:
        """Who has been disabled for good."""
        if self.attributes is None:
            return []
        lost: list[int] = np.flatnonzero((self.counts == self.attributes.count_limit) & ~self.inside).tolist()
        return lost

    def snapshot(self) -> dict[str, Any]:
        """Everything that changes, and the attributes, as JSON data."""
        held = self.attributes
        changing = {name: pack_value(getattr(self, name)) for name in _KEPT}
        return {**changing, "attributes": None if held is None else pack_value(vars(held))}

    @classmethod
    def from_snapshot(cls, settings: EvacuationSettings, data: Mapping[str, Any]) -> Crowd:
        """The crowd that `snapshot` described."""
        crowd = cls(settings, np.random.default_rng(0), unpack_value(data["cells"]))
        for name in _KEPT:
            setattr(crowd, name, unpack_value(data[name]))
        crowd.people[:] = 0
        crowd.people[crowd.cells[crowd.inside]] = 1
        if data["attributes"] is not None:
            crowd.attributes = Attributes(**unpack_value(data["attributes"]))
        crowd._lie_down(np.array(crowd.disabled_so_far(), dtype=np.int64))
        return crowd

    def _movers(self) -> IntArray:
        if self._settings.injury != "active":
            # Authors' code: whoever is overtaken neither talks nor plans, but still moves.
            return self.queue
        return self.queue[~self.overtaken[self.queue]]

    def _arrive(self, who: IntArray, wishes: IntArray) -> None:
        """Put people where they wish to be, as far as the engine lets them."""
        if self._settings.engine == "simultaneous":
            # All those inside take part: who may not move is in the way of others.
            wished = self.cells.copy()
            wished[who] = wishes
            who = np.sort(self.queue)
            wishes = settle_moves(self.room, self.cells[who], wished[who], self._conflict_rng)
        before = self.cells[who]
        moved = wishes != before
        self.previous[who[moved]] = before[moved]
        self.people[before[moved]] = 0
        self.people[wishes[moved]] = 1
        self.cells[who] = wishes

    def _remove(self, who: IntArray) -> None:
        self.inside[who] = False
        self.people[self.cells[who]] = 0
        self.queue = self.queue[self.inside[self.queue]]
        self.planners = self.planners[self.inside[self.planners]]

    def _lie_down(self, disabled: IntArray) -> None:
        """Let disabled people stay in sight and block their cells, if the settings say so."""
        if self._settings.disabled_block and len(disabled):
            cells = self.cells[disabled]
            self.people[cells] = 1
            blocked = self.room.blocked.copy()
            blocked[cells] = 1
            self.room = replace(self.room, blocked=blocked)

    def _crush(self) -> IntArray:
        held = self.attributes
        self.overtaken = np.zeros(len(self.cells), dtype=np.bool_)
        if held is None:
            return self.queue[:0]
        # Authors' code asks only those who are about to plan; the ancestor asks everybody.
        who = self.queue if self._settings.injury == "active" else self.planners
        press = pressure(self.room, self.cells, held.level, present=self.queue, who=who)
        self.counts[who], over, gone = crush(press, held.pressure_limit[who], self.counts[who], held.count_limit[who])
        self.overtaken[who] = over
        self._remove(who[gone])
        self._lie_down(who[gone])
        self.planners = self.planners[~self.overtaken[self.planners]]
        return who[gone]

    def _look(self) -> None:
        inside = np.flatnonzero(self.inside)
        cells = self.cells[inside]
        settings = self._settings
        grid = self.people | self.room.desks if settings.count_desks and settings.desk_list else self.people
        self.from_cells = self.cells.copy()
        self.seen[inside] = self._view.people_towards(grid, cells, count_self=settings.count_self)
        if settings.crowd_count == "near":
            self.around[inside] = people_near(self.people, self.room, cells)
        else:
            self.around[inside] = self._view.people_around(self.people, cells) - (not settings.count_self)
