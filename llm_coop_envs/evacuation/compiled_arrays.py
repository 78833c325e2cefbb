"""Many evacuations as arrays, for compiled code: the room and the settings, people, and room to work in.

People, copies and cells are records, because the compiler takes long for every array that is passed on.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from llm_coop_envs.evacuation.room import VIEW_RADIUS

#: What stands on a cell, as bits.
PERSON, BLOCKED = 1, 2
#: What is due next in a copy; the first two are the phases.
EXIT, MOVE, SETTLE, ROUND = 0, 1, 2, 3
#: The cells around a person that it may see, row by row, and three rows of them to a word of 64 bits.
VIEW_SIDE = 2 * VIEW_RADIUS + 1
VIEW_WORDS = VIEW_SIDE // 3


def _records(**fields: str) -> np.dtype[Any]:
    """Records with fields of these kinds, each kind with the names of its fields."""
    return np.dtype([(name, kind) for kind, names in fields.items() for name in names.split()], align=True)


#: The settings as numbers, see `EvacuationSettings`; `horizon` is 0 for none.
RULES = _records(
    f8="replan_probability reward_inside reward_out lost",
    i8="width rows cols exits rounds last_round horizon",
    bool="walks together removal_lag extra_round all_plan_first sees_desks can_be_hurt disabled_block "
    "hides_people hides_last_move",
)
#: A cell of the padded grid: its index in tables of the room's T cells, row and column, its index among exit cells
#: (-1: none), `BLOCKED` or 0, and whether somebody may start on it.
CELLS = _records(i4="index row col exit_at", u1="ground", bool="may_start")
#: A move: the difference of padded cells, and whether the settings allow it.
STEPS = _records(i4="cells", bool="allowed")
#: What never changes of a person, see `injury.Attributes` and `features.FeatureMaker.persona`.
TRAITS = _records(f8="level pressure_limit count_limit", f4="strong confident")
#: A person, see `crowd.Crowd`; `level` is the step of this phase in which it is on turn, -1 for none.
PEOPLE = _records(f8="reward", i4="cell previous heading target counts level", bool="inside plans overtaken")
#: A copy: the number inside, round and steps of the episode, what is due after this phase, the phase, which of its
#: steps comes next, and how many it has.
GAMES = _records(i8="count round cycles due phase step steps")
#: Room to work in for each person, and for each cell: the first has 0 between calls, the others -1.
PEOPLE_WORK, CELLS_WORK = _records(f8="press", i8="wish fate"), _records(i4="highest occupant winner")


class RoomTables(NamedTuple):
    """The room and the settings; P people, E exit cells, G exits, T cells of the room.

    Tables of float32 hold what `features.FeatureMaker` makes of their index.

    Attributes:
        rules: one of `RULES`.
        cells: (grid,) `CELLS`.
        start_cells: padded cells that are dealt in each episode; empty where cells are drawn.
        steps: (9,) `STEPS`.
        exit_cells: (E,) padded cells.
        targets: (T, G) the index of each exit's nearest cell.
        ways: (T, E) the moves that lead nearer to an exit cell, counted from 1, four bits for each, the nearest lowest.
        nearest_exit: (T,) the exit of the nearest exit cell.
        views: (T, E + 1) which of `view_masks` is seen towards each exit cell, exit by exit, and which are the cells
            around.
        view_starts: (G + 1,) where the columns of each exit begin.
        view_masks: (views, VIEW_WORDS) the cells of a view.
        desks: (words, rows of the padded grid) the desks that count as people, by column.
        traits: (P,) `TRAITS`.
        site_features: (T, 3 + G) row, column, distances of the exits and of the nearest exit cell.
        down: (2 rows - 1,) of rows down, the fewest first.
        right: (2 cols - 1,) of columns to the right, the fewest first.
        round_shares: (rounds + 2,) of rounds.
        seen_shares: (G, numbers) of people seen towards all cells of an exit together.
        around_shares: (numbers,) of people in the cells around.
    """

    rules: Any
    cells: Any
    start_cells: Any
    steps: Any
    exit_cells: Any
    targets: Any
    ways: Any
    nearest_exit: Any
    views: Any
    view_starts: Any
    view_masks: Any
    desks: Any
    traits: Any
    site_features: Any
    down: Any
    right: Any
    round_shares: Any
    seen_shares: Any
    around_shares: Any


class CrowdArrays(NamedTuple):
    """The people of one copy, or of C copies with one more axis in front.

    Attributes:
        game: one of `GAMES`.
        people: (P,) `PEOPLE`.
        queue: (P,) of which the first `count` are the people inside, in this round's order.
        seen: (P, G + 1) features: people seen towards the exits, people around.
        grid: (grid,) what stands on the padded cells, in bits.
        streams: (2, 5) the episode's generator, and that of conflicts.
    """

    game: Any
    people: Any
    queue: Any
    seen: Any
    grid: Any
    streams: Any


class Work(NamedTuple):
    """Room to work in; nothing in it outlives a call.

    Attributes:
        people: (P,) `PEOPLE_WORK`.
        cells: (grid,) `CELLS_WORK`.
        order: (P,) people.
        keys: (P,) numbers to be sorted.
        sorting: (P,) room for them while they are.
        places: (128,) where numbers of each digit come.
        ranks: (E,) the order of groups; -1 between calls.
        heads: (words, rows of the padded grid) where somebody stands, by column.
        solid: (words, rows of the padded grid) the same with desks that count.
        window: (VIEW_WORDS,) the cells around a person.
        totals: (E,) the people whom a person sees towards each exit cell.
    """

    people: Any
    cells: Any
    order: Any
    keys: Any
    sorting: Any
    places: Any
    ranks: Any
    heads: Any
    solid: Any
    window: Any
    totals: Any
