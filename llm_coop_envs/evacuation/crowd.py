"""The people in the room: their state, as arrays, and the steps of one round.

The order inside a round is that of the authors' code of "Shall We Team Up" (Wu et al. 2024):

1. People on exit cells leave.
2. The list of the others is shuffled; it starts from the order of the round before.
3. It is drawn who re-plans; these people talk and choose exits.
4. Everybody moves.
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
    """The state of all people in one episode.

    Attributes:
        room: the room; disabled people may block cells of it.
        cells: each person's padded cell; the last one for those who have left.
        previous: the padded cell before the last actual move, -1 if there was none (authors' code: staying does not
            count).
        inside: whether each is in the room.
        heading: the exit each heads for, -1 before it is known.
        target: the exit cell each heads for, as an index into `room.exit_cells`.
        history: each person's choices of exits so far.
        queue: the people inside, in the shuffled order of this round.
        planners: the people who talk and choose an exit in this round, in that order.
        overtaken: whether each is knocked over in this round.
        counts: in how many rounds each was knocked over.
        people: 1 where somebody stands, over padded cells.
        from_cells: each person's padded cell when the round began.
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
        """Remove everybody who stands on an exit cell.

        Returns:
            Pairs (person, index of its exit cell), in the order of the exit cells.
        """
        exit_index = self.room.exit_at[self.cells[self.queue]]
        is_on_exit = exit_index >= 0
        if not is_on_exit.any():
            return []
        leavers, exit_index = self.queue[is_on_exit], exit_index[is_on_exit]
        order = np.argsort(exit_index)
        self.remove(leavers)
        return list(zip(leavers[order].tolist(), exit_index[order].tolist(), strict=True))

    def close(self, exit_: int) -> None:
        """Block the cells of one exit and open all others; -1 opens all exits."""
        blocked = self.room.blocked.copy()
        blocked[self.room.exit_cells] = self.room.exit_group == exit_
        self.room = replace(self.room, blocked=blocked)

    def open_round(self, rng: np.random.Generator, replan_probability: float, *, first: bool) -> IntArray:
        """Shuffle the queue, draw the planners, apply the injury rule, and update what people see.

        Args:
            rng: consumed by one shuffle and, unless everybody plans, one uniform number per person inside.
            replan_probability: the chance of each to plan.
            first: whether this is the first round.

        Returns:
            The people who are disabled now; they are removed from the room.
        """
        rng.shuffle(self.queue)
        if first and self._settings.all_plan_first:
            self.planners = self.queue.copy()
        else:
            self.planners = self.queue[rng.random(len(self.queue)) < replan_probability]
        disabled = self._apply_injuries()
        self._update_sight()
        return disabled

    def clear_plans(self) -> None:
        """Clear planners and overtaken people, for a round that ends before anybody plays."""
        self.planners = self.planners[:0]
        self.overtaken = np.zeros(len(self.cells), dtype=np.bool_)

    def declare(self, persons: IntArray, exits: IntArray) -> None:
        """Set the exits that people head for.

        The target is the exit's cell that is nearest now, and stays it until they choose again.
        """
        self.heading[persons] = exits
        self.target[persons] = self.room.target_cell[self.room.table_index(self.cells[persons]), exits]
        for person, choice in zip(persons.tolist(), exits.tolist(), strict=True):
            self.history[person].append(choice)

    def send_undecided(self) -> None:
        """Send people inside who have never chosen an exit to the nearest one."""
        undecided = self.queue[self.heading[self.queue] < 0]
        if len(undecided):
            table_index = self.room.table_index(self.cells[undecided])
            self.heading[undecided] = self.room.nearest_exit[table_index]
            self.target[undecided] = self.room.target_cell[table_index, self.heading[undecided]]

    def move_levels(self) -> list[IntArray]:
        """Return the groups of people that move at the same time, one after the other."""
        movers = self._movers()
        if self._settings.engine == "simultaneous":
            return [np.sort(movers)] if len(movers) else []
        return move_levels(self.room, move_order(self.room, movers, self.cells, self.target), self.cells)

    def move(self, persons: IntArray, moves: IntArray) -> None:
        """Carry out the moves of one level: indices into `room.MOVES`, each of them legal."""
        self._arrive(persons, self.cells[persons] + self.room.moves[moves])

    def walk(self) -> None:
        """Walk everybody one step towards its exit cell."""
        movers = self._movers()
        if self._settings.engine == "simultaneous":
            self._arrive(movers, walking_wishes(self.room, self.people, self.cells[movers], self.target[movers]))
        else:
            order = move_order(self.room, movers, self.cells, self.target)
            self._arrive(order, walk_one_by_one(self.room, self.people, self.cells[order], self.target[order]))

    def disabled_so_far(self) -> list[int]:
        """Return the people who are disabled for good."""
        if self.attributes is None:
            return []
        disabled: list[int] = np.flatnonzero((self.counts == self.attributes.count_limit) & ~self.inside).tolist()
        return disabled

    def snapshot(self) -> dict[str, Any]:
        """Return everything that changes, and the attributes, as JSON data."""
        attributes = self.attributes
        changing = {name: pack_value(getattr(self, name)) for name in _KEPT}
        return {**changing, "attributes": None if attributes is None else pack_value(vars(attributes))}

    @classmethod
    def from_snapshot(cls, settings: EvacuationSettings, data: Mapping[str, Any]) -> Crowd:
        """Restore the crowd that `snapshot` described."""
        crowd = cls(settings, np.random.default_rng(0), unpack_value(data["cells"]))
        for name in _KEPT:
            setattr(crowd, name, unpack_value(data[name]))
        crowd.people[:] = 0
        crowd.people[crowd.cells[crowd.inside]] = 1
        if data["attributes"] is not None:
            crowd.attributes = Attributes(**unpack_value(data["attributes"]))
        crowd._keep_disabled(np.array(crowd.disabled_so_far(), dtype=np.int64))
        return crowd

    def _movers(self) -> IntArray:
        if self._settings.injury != "active":
            # Authors' code: overtaken people neither talk nor plan, but still move.
            return self.queue
        return self.queue[~self.overtaken[self.queue]]

    def _arrive(self, persons: IntArray, wishes: IntArray) -> None:
        """Move people to the cells they wish for; the simultaneous engine first settles conflicts."""
        if self._settings.engine == "simultaneous":
            # Everybody inside takes part: a person who may not move still occupies its cell.
            wished = self.cells.copy()
            wished[persons] = wishes
            persons = np.sort(self.queue)
            wishes = settle_moves(self.room, self.cells[persons], wished[persons], self._conflict_rng)
        origins = self.cells[persons]
        moved = wishes != origins
        self.previous[persons[moved]] = origins[moved]
        self.people[origins[moved]] = 0
        self.people[wishes[moved]] = 1
        self.cells[persons] = wishes

    def remove(self, persons: IntArray) -> None:
        """Remove people from the room, the queue and the planners."""
        self.inside[persons] = False
        self.people[self.cells[persons]] = 0
        self.queue = self.queue[self.inside[self.queue]]
        self.planners = self.planners[self.inside[self.planners]]

    def _keep_disabled(self, disabled: IntArray) -> None:
        """Keep disabled people visible and block their cells, with `disabled_block`."""
        if self._settings.disabled_block and len(disabled):
            cells = self.cells[disabled]
            self.people[cells] = 1
            blocked = self.room.blocked.copy()
            blocked[cells] = 1
            self.room = replace(self.room, blocked=blocked)

    def _apply_injuries(self) -> IntArray:
        """Update who is overtaken, and remove and return the people who are disabled now."""
        attributes = self.attributes
        self.overtaken = np.zeros(len(self.cells), dtype=np.bool_)
        if attributes is None:
            return self.queue[:0]
        # The authors' code applies the rule to those about to plan only, its ancestor to everybody.
        exposed = self.queue if self._settings.injury == "active" else self.planners
        press = pressure(self.room, self.cells, attributes.level, present=self.queue, persons=exposed)
        self.counts[exposed], over, gone = crush(
            press, attributes.pressure_limit[exposed], self.counts[exposed], attributes.count_limit[exposed]
        )
        self.overtaken[exposed] = over
        self.remove(exposed[gone])
        self._keep_disabled(exposed[gone])
        self.planners = self.planners[~self.overtaken[self.planners]]
        return exposed[gone]

    def _update_sight(self) -> None:
        """Count the people whom everybody inside sees, as they stand when the round begins."""
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
