"""The slots: everything that one person in the room may know, as plain values.

The fields are the slots of the published prompts (authors' code of "Shall We Team Up", Wu et al. 2024): a prompt pack
shows some of them at each question, `observation.jinja` shows all. Except for counts taken when the round begins,
nothing depends on people outside the reach of a move. So people who move in one level of the sequential engine see
what they would see moving one by one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from llm_coop_envs.evacuation.crowd import Crowd
from llm_coop_envs.evacuation.movement import free_moves, open_moves
from llm_coop_envs.evacuation.room import MOVES, STAY, IntArray
from llm_coop_envs.evacuation.settings import EvacuationSettings
from llm_coop_envs.interface.question import Option, Options
from llm_coop_envs.interface.slots import Heard, Slots, blank_slots

LETTERS = "abcdefghi"
_MOVE_NAMES = {(down, right): name for name, down, right in MOVES}
# Size of the cache of lists of moves, 3 kB each. Lists recur in small rooms; in large ones a bigger cache costs the
# garbage collector more than making them anew.
_MOST_OFFERED = 500
_ALL_MOVES = tuple(name for name, _, _ in MOVES)
#: Other ways to type a move: the initials, the number pad's digit around 5, and the name without "and".
ALIASES = {
    "up": ("u", "8"),
    "down": ("d", "2"),
    "left": ("l", "4"),
    "right": ("r", "6"),
    "stay": ("s", "5"),
    "up and left": ("ul", "7", "up left"),
    "up and right": ("ur", "9", "up right"),
    "down and left": ("dl", "1", "down left"),
    "down and right": ("dr", "3", "down right"),
}


class ExitView(NamedTuple):
    """An exit as a person sees it.

    Attributes:
        name: the exit's name.
        distance: mean Euclidean distance to the exit's cells, 2 decimals.
        people: how many are seen towards it, the mean over its cells, 2 decimals; taken when the round began. `None`
            for whoever learns nothing of others.
    """

    name: str
    distance: float
    people: float | None


@dataclass(frozen=True, kw_only=True)
class MoveOption(Option):
    """One legal step.

    Attributes:
        row: the row of the cell it leads to.
        col: the column of that cell.
        taken: whether somebody else stands there now (offered in the simultaneous engine only).
    """

    row: int
    col: int
    taken: bool

    @property
    def spellings(self) -> tuple[str, ...]:
        """The aliases, and the cell as prompts write it."""
        return (*self.aliases, f"({self.row}, {self.col})")


@dataclass(frozen=True, kw_only=True)
class EvacuationSlots(Slots):
    """Everything that one person may know.

    Attributes:
        asked: what is to be answered now: `"talk"`, `"exit"`, `"move"`, or empty if nothing.
        options: the question's options, in the order in which they are listed; empty where none are asked for.
        rows: rows of the room, walls included.
        cols: columns of the room, walls included.
        rounds: after how many rounds it is too late.
        round: the round, from 1.
        walks: whether people walk to the chosen exit by themselves (nobody is asked for moves).
        together: whether all move at the same time.
        diagonals: whether people can step diagonally.
        strong: the physical words of the persona: strong or not; `None` without personas.
        confident: the mental words of the persona: confident or afraid; `None` without personas.
        helpful: whether the persona is willing to help others (false in the third published arm only).
        left: why this person is no longer in the room: `"out"`, `"hurt"`, `"gone"` (a change took it out); empty
            while it is inside.
        moved: whether this person has gone to another cell since people were counted.
        row: own row.
        col: own column.
        previous: the cell before the last actual move; `None` if there was none, or it is not remembered.
        exit_names: the exits' names, in their fixed order.
        exits: the exits, in that order.
        closed: the exit that a regulator has closed for this round; empty for none.
        nearest_distance: Euclidean distance to the nearest exit cell, 2 decimals.
        around: how many people are around, when the round began; `None` for whoever learns nothing of others.
        around_kind: `"near"`: in the 3 x 3 cells, oneself included; `"visible"`: all in sight.
        counts_self: whether the people seen include oneself.
        counts_desks: whether the people seen include desks, and there are desks.
        plans: whether this person talks and chooses an exit in this round.
        overtaken: whether this person was knocked over in this round.
        past_exits: the own choices of exits so far, oldest first; as many of them as are remembered.
        target: the exit this person heads for, or `None`.
        target_cell: the cell of that exit it heads for, or `None`.
        direction: where that cell lies, in the words of the moves, or `None`.
        hearing_radius: how far one is heard, in cells.
        heard: what this person has heard in this round, nearest speaker first.
    """

    CONSTANT = Slots.CONSTANT | {
        "rows", "cols", "rounds", "walks", "together", "diagonals", "strong", "confident", "helpful", "exit_names",
        "around_kind", "counts_self", "counts_desks", "hearing_radius",
    }  # fmt: skip

    asked: str
    options: tuple[Option, ...]
    rows: int
    cols: int
    rounds: int
    round: int
    walks: bool
    together: bool
    diagonals: bool
    strong: bool | None
    confident: bool | None
    helpful: bool
    left: str
    moved: bool
    row: int
    col: int
    previous: tuple[int, int] | None
    exit_names: tuple[str, ...]
    exits: tuple[ExitView, ...]
    closed: str
    nearest_distance: float
    around: int | None
    around_kind: str
    counts_self: bool
    counts_desks: bool
    plans: bool
    overtaken: bool
    past_exits: tuple[str, ...]
    target: str | None
    target_cell: tuple[int, int] | None
    direction: str | None
    hearing_radius: float
    heard: tuple[Heard, ...]

    @property
    def moves(self) -> tuple[MoveOption, ...]:
        """The legal steps if the question is a move; otherwise empty."""
        return cast("tuple[MoveOption, ...]", self.options) if self.asked == "move" else ()


def shown_persona(settings: EvacuationSettings, physical: int, mental: int) -> tuple[bool | None, bool | None]:
    """Return whether a person's text says strong, and whether it says confident; `None` without personas.

    With `persona_swap`, as in the authors' code, each trait picks the words of the other.
    """
    if settings.personas == "none":
        return None, None
    if settings.persona_swap:
        physical, mental = mental, physical
    return physical == 0, mental == 0


class SlotMaker:
    """Makes slots; whatever can be computed for all people at once is, on arrays.

    Attributes:
        personas: for each person whether its text says strong, and confident.
    """

    def __init__(self, settings: EvacuationSettings, crowd: Crowd) -> None:
        self._settings = settings
        self._crowd = crowd
        self._room = crowd.room
        names = self._room.exit_names
        exits = tuple(Option(choice=k, name=name) for k, name in enumerate(names))
        self._exits_asked = Options(name="exit", options=exits)
        self._offered: dict[tuple[Any, ...], Options] = {}
        self._planners: IntArray | None = None
        self.personas = [
            shown_persona(settings, physical, mental)
            for physical, mental in zip(crowd.physical.tolist(), crowd.mental.tolist(), strict=True)
        ]
        self._cells = [(row, col) for _, row, col in settings.exit_list]
        self._fixed: dict[str, Any] = {
            **{name: getattr(settings, name) for name in ("rows", "cols", "rounds")},
            "exit_names": names,
            "walks": settings.control == "exit",
            "together": settings.engine == "simultaneous",
            "diagonals": settings.diagonals,
            "helpful": settings.personas != "selfish",
            "around_kind": settings.crowd_count,
            "counts_self": settings.count_self,
            "counts_desks": settings.count_desks and bool(settings.desk_list),
        }

    def refresh(self, orders: IntArray | None, persons: IntArray) -> None:
        """Read the present situation of some people.

        Args:
            orders: in which order each person's moves are listed, (people, 9), or `None` if that is fixed.
            persons: the people, by index.
        """
        crowd, room = self._crowd, self._room
        self._place = {index: k for k, index in enumerate(persons.tolist())}
        cells, previous = crowd.cells[persons], crowd.previous[persons]
        table_index = room.table_index(cells)
        rows, cols = room.row_col(cells)
        self._rows, self._cols = rows.tolist(), cols.tolist()
        self._at, self._stood = cells.tolist(), crowd.from_cells[persons].tolist()
        before_row, before_col = room.row_col(previous)
        self._previous = list(zip(before_row.tolist(), before_col.tolist(), strict=True))
        self._moved = (previous >= 0).tolist()
        self._distance = np.round(room.mean_distance[table_index], 2).tolist()
        self._seen = np.round(crowd.seen[persons], 2).tolist()
        self._nearest = np.round(room.nearest_distance[table_index], 2).tolist()
        self._around = crowd.around[persons].tolist()
        self._overtaken = crowd.overtaken[persons].tolist()
        self._heading, self._target = crowd.heading[persons].tolist(), crowd.target[persons].tolist()
        if crowd.planners is not self._planners:  # a new array whenever they change: not for every step of a round
            self._planners, self._planning = crowd.planners, set(crowd.planners.tolist())
        free = free_moves(crowd.room, crowd.people, cells)
        allowed = open_moves(crowd.room, cells) if self._settings.engine == "simultaneous" else free
        bits = 1 << np.arange(len(MOVES))
        self._free, self._allowed = (free @ bits).tolist(), (allowed @ bits).tolist()
        self._orders = None if orders is None else [tuple(order) for order in orders[persons].tolist()]

    def knows(self, index: int) -> bool:
        """Whether a person was among those of the last `refresh`."""
        return index in self._place

    def make(
        self, index: int, common: dict[str, Any], *, round_: int, heard: tuple[Heard, ...], closed: str
    ) -> EvacuationSlots:
        """Make the slots of one person; `common` holds the fields of `interface.slots.Slots`."""
        names = self._room.exit_names
        phase = common["phase"] if common["on_turn"] else ""
        question = common["question"]
        k = self._place[index]
        row, col = self._rows[k], self._cols[k]
        heading = self._heading[k]
        target = None if heading < 0 else self._cells[self._target[k]]
        strong, confident = self.personas[index]
        memory, past = common["memory"], self._crowd.history[index]
        past = past if memory is None else past[max(0, len(past) - memory) :]
        seen = self._seen[k] if common["informed"] else [None] * len(names)
        slots = blank_slots(EvacuationSlots)
        vars(slots).update(
            common,
            **self._fixed,
            asked=phase,
            options=question.options if isinstance(question, Options) else (),
            round=round_,
            hearing_radius=self._settings.in_round(round_).hearing_radius,
            strong=strong,
            confident=confident,
            left=self._why_left(index, (row, col)),
            moved=self._stood[k] != self._at[k],
            row=row,
            col=col,
            previous=self._previous[k] if self._moved[k] and memory != 0 else None,
            exits=tuple(map(ExitView, names, self._distance[k], seen)),
            closed=closed,
            nearest_distance=self._nearest[k],
            around=self._around[k] if common["informed"] else None,
            plans=index in self._planning,
            overtaken=self._overtaken[k],
            past_exits=tuple([names[choice] for choice in past]),
            target=None if target is None else names[heading],
            target_cell=target,
            direction=None if target is None else _direction(target[0] - row, target[1] - col),
            heard=heard,
        )
        return slots

    def _why_left(self, index: int, cell: tuple[int, int]) -> str:
        """Why a person is no longer in the room; empty while it is inside."""
        if self._crowd.inside[index]:
            return ""
        # Nobody stays on an exit cell beyond the round in which it is reached.
        if cell in self._cells:
            return "out"
        return "hurt" if index in self._crowd.disabled_so_far() else "gone"

    def question(self, index: int, phase: str) -> Options:
        """Return the question for a person in an act phase."""
        if phase == "exit":
            return self._exits_asked
        k = self._place[index]
        order = None if self._orders is None else self._orders[k]
        key = (self._at[k], self._allowed[k], self._free[k], order)
        offered = self._offered.get(key)
        if offered is None:
            if len(self._offered) > _MOST_OFFERED:
                self._offered.clear()
            offered = self._offered[key] = self._list_moves(k, order or range(len(MOVES)))
        return offered

    def _list_moves(self, k: int, order: range | tuple[int, ...]) -> Options:
        exits = len(self._room.exit_names)
        row, col, free, allowed = self._rows[k], self._cols[k], self._free[k], self._allowed[k]
        options: list[MoveOption] = []
        for move in order:
            if allowed >> move & 1:
                name, down, right = MOVES[move]
                is_taken = move != STAY and not free >> move & 1
                options.append(
                    MoveOption(
                        choice=exits + move,
                        name=name,
                        letter=LETTERS[len(options)],
                        aliases=ALIASES[name],
                        towards=(down, right),
                        row=row + down,
                        col=col + right,
                        taken=is_taken,
                    )
                )
        return Options(name="move", options=tuple(options), known=_ALL_MOVES)


def _direction(down: int, right: int) -> str:
    """Return a direction in the words of the moves (authors' code), such as `"up and left"`; `"stay"` for (0, 0)."""
    return _MOVE_NAMES[(down > 0) - (down < 0), (right > 0) - (right < 0)]
