"""Settings of the emergency evacuation, their checks and their presets, each number with its source.

Sources: "Shall We Team Up" (Wu et al. 2024, EMNLP Findings) for the text, its Table 2 and appendices, and the
authors' published code, which differs from the text in places: the defaults follow the code, and a field says so
where the text says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from llm_coop_envs.core.settings import PERCEPTION, ScenarioSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.evacuation.room import (
    Cell,
    ExitCell,
    Room,
    build_room,
    cells_without_way_out,
    published_desks,
    wall_exits,
)
from llm_coop_envs.util.checks import check_choice, check_number, suggestion

#: The largest room, in cells along a wall.
MAX_SIDE = 2000


#: What a regulator may order, before the name of an exit.
CLOSE, RECOMMEND = "close", "recommend"


@dataclass(frozen=True, kw_only=True)
class EvacuationSettings(ScenarioSettings):
    """Who has to get out of which room, and by which rules.

    Listeners may listen to `crowded_exit`, how many of those inside head for an exit when a round begins. People who
    are no longer `present` neither get out nor are lost to the rules, and bring no reward; measures count them as never
    out.

    With `information="own"` nobody sees how many people are around and towards the exits; of others it is known only
    which cells beside one's own they block. `observation_noise` is a share of the number of people seen towards an
    exit. `memory` counts the own earlier choices of an exit; 0 leaves out the cell before the last move, too.

    Attributes:
        people: how many people are in the room (Wu et al. 2024: 100; 400 in appendix C).
        rows: rows of the room, walls included (33, authors' code).
        cols: columns of the room, walls included (33, authors' code).
        exit_widths: cells of the bottom, left and right exit (3, 3, 1, authors' code); see `room.wall_exits`.
        exits: exit cells of your own as (name, row, column), which replace `exit_widths`. Cells on the wall; their
            order decides ties and the order of counting out; exits are shown in the order of first appearance.
        desks: `"none"`, `"published"` (the 264 desks of the authors' obstacle option) or cells (row, column) of your
            own.
        start: `"random"` (published) or `"below_desks"`: one person below each desk (the authors' fixed-agent
            option).
        diagonals: whether people can step diagonally (published; Wu et al. 2024 test a room without such steps too).
        engine: `"sequential"` (published: one after the other) or `"simultaneous"` (all at once; see `conflicts`). The
            sequential engine has an exact parallel form, in which each move is visible to the next.
        control: `"move"` (published: players choose every step) or `"exit"` (players choose exits, and the environment
            walks). With `"exit"`, rounds in which nobody re-plans pass without a step.
        rounds: rounds after which whoever is still inside is lost (50, Wu et al. 2024). As in the authors' results,
            people who have reached an exit cell in the last round still count as out.
        extra_round: play the round after the last one too, as the authors' code does (51 steps). Nothing that happens
            in it can count any more.
        removal_lag: people leave the room one round after they reached an exit cell (authors' code). They block the
            cell until then; otherwise they leave at the end of the same round.
        replan_probability: chance of each person to talk and choose an exit anew in a round (0.2, Wu et al. 2024).
        all_plan_first: everybody re-plans in the first round (authors' code; the text has 20 % in all rounds).
            Without it people set off for the nearest exit until they first choose.
        hearing_radius: how far one is heard, Euclidean, in cells (5, Wu et al. 2024).
        hear_later_speakers: people choose an exit after hearing later speakers of the round, too (authors' code).
            Only those who re-plan hear anything.
        count_self: the numbers of people seen towards the exits include the watcher (authors' code).
        count_desks: they include desks (authors' code).
        crowd_count: who counts as around: `"near"`, people in the 3 x 3 cells (authors' code), or `"visible"`, all who
            can be seen (the text).
        personas: `"two_by_two"` (published: strong or weak, confident or afraid), `"selfish"` (also unwilling to help;
            third arm of Wu et al. 2024) or `"none"`.
        persona_swap: swap the words of physical and mental traits (authors' code, by mistake).
        option_order: `"fixed"` (authors' code) or `"shuffled"` (the text): the order in which moves are listed.
        injury: `"inert"` (authors' code: a rule that never strikes), `"off"`, or `"active"`; see `injury`.
        disabled_block: whether disabled people (`injury="active"`) stay in sight and block their cell; else they are
            gone.
        reward_inside: added for each round a person begins inside (-1). Neither text nor code of Wu et al. rewards
            anybody; people are told that whoever is not out in time dies.
        reward_out: added when a person has got out (0).
        reward_lost: added when a person is disabled, or is still inside at the end. `None`: once more what all rounds
            inside bring, but never more than -1 a round (so -50), which makes leaving in the last round better than
            not leaving. With 0 both bring the same.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        # Wu et al. 2024, Table 2, the three arms.
        "team_up": {},
        "no_talk": {"talk": False},
        "selfish": {"personas": "selfish"},
        # Authors' code: the options for obstacles and for fixed agents.
        "desks": {"desks": "published"},
        "desks_seated": {"desks": "published", "start": "below_desks", "people": 264},
        # Robustness section: no diagonal steps.
        "no_diagonals": {"diagonals": False},
        # Appendix C.
        "crowd_400": {"people": 400},
        # First version of the paper, Figure 8b: 47 people in 11 x 11; its exits are not published, these are ours.
        "small": {"rows": 11, "cols": 11, "people": 47},
        # First version of the paper, appendix B: the preliminary test with one person.
        "single": {
            "rows": 10,
            "cols": 10,
            "people": 1,
            "talk": False,
            "exits": (("left", 5, 0), ("bottom", 9, 4), ("right", 8, 9)),
        },
    }

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "people": (1, math.inf),
        "rows": (3, MAX_SIDE),
        "cols": (3, MAX_SIDE),
        "rounds": (1, math.inf),
        "replan_probability": (0, 1),
        "hearing_radius": (0, math.inf),
        "reward_inside": (-math.inf, math.inf),
        "reward_out": (-math.inf, math.inf),
    }
    sections: ClassVar[Mapping[str, str]] = {
        "people": "The room",
        "diagonals": "The rules of movement",
        "hearing_radius": "What a person hears and sees",
        "personas": "Personas and options",
        "injury": "Injuries and rewards",
    }
    forms: ClassVar[Mapping[str, str]] = {
        "exits": "Sequence[Sequence[str | int]] | Mapping[str, Sequence[Sequence[int]]] | None",
        "desks": 'Literal["none", "published"] | Sequence[Sequence[int]]',
    }
    happenings: ClassVar[Mapping[str, str]] = {"crowded_exit": "how many inside head for an exit when a round begins"}
    small: ClassVar[Mapping[str, int]] = {"people": 2}
    changeable: ClassVar[Mapping[str, bool]] = {
        "replan_probability": False,
        "hearing_radius": False,
        "present": True,
        **dict.fromkeys(PERCEPTION, True),
    }
    allowed: ClassVar[Mapping[str, Collection[str]]] = {
        "start": ("random", "below_desks"),
        "engine": ("sequential", "simultaneous"),
        "control": ("move", "exit"),
        "crowd_count": ("near", "visible"),
        "personas": ("two_by_two", "selfish", "none"),
        "option_order": ("fixed", "shuffled"),
        "injury": ("inert", "off", "active"),
    }

    people: int = 100
    rows: int = 33
    cols: int = 33
    exit_widths: tuple[int, int, int] = (3, 3, 1)
    exits: tuple[ExitCell, ...] | None = None
    desks: str | tuple[Cell, ...] = "none"
    start: str = "random"
    diagonals: bool = True
    engine: str = "sequential"
    control: str = "move"
    rounds: int = 50
    extra_round: bool = False
    removal_lag: bool = True
    replan_probability: float = 0.2
    all_plan_first: bool = True
    hearing_radius: float = 5.0
    hear_later_speakers: bool = True
    count_self: bool = True
    count_desks: bool = True
    crowd_count: str = "near"
    personas: str = "two_by_two"
    persona_swap: bool = True
    option_order: str = "fixed"
    injury: str = "inert"
    disabled_block: bool = False
    reward_inside: float = -1.0
    reward_out: float = 0.0
    reward_lost: float | None = None

    def __post_init__(self) -> None:
        """Check every field, then whether the room can be built and holds everybody."""
        super().__post_init__()
        check_number(self, "reward_lost", optional=True)
        if self.disabled_block and self.injury != "active":
            raise SettingsError("disabled_block", True, "has no effect unless people are disabled; set injury='active'")
        object.__setattr__(self, "exit_widths", self._checked_widths())
        object.__setattr__(self, "exits", self._checked_exits())
        object.__setattr__(self, "desks", self._checked_desks())
        self._check_space()

    def reduced(self) -> dict[str, Any]:
        """Return the smaller settings of a trial run; with `start="below_desks"` one desk per person is kept."""
        values = super().reduced()
        if self.start == "below_desks":
            values["desks"] = self.desk_list[: values.get("people", self.people)]
        return values

    @cached_property
    def exit_list(self) -> tuple[ExitCell, ...]:
        """All exit cells with their names. Of two equally near cells of an exit the first in this list counts."""
        return self.exits or wall_exits(self.rows, self.cols, self.exit_widths)

    @cached_property
    def desk_list(self) -> tuple[Cell, ...]:
        """All cells with a desk."""
        if isinstance(self.desks, str):
            return published_desks() if self.desks == "published" else ()
        return self.desks

    @property
    def room(self) -> Room:
        """The room these settings describe; the same object for the same geometry."""
        return build_room(self.rows, self.cols, self.exit_list, self.desk_list, diagonals=self.diagonals)

    @property
    def lost(self) -> float:
        """What is added when a person is disabled, or is still inside at the end."""
        return min(self.reward_inside, -1.0) * self.rounds if self.reward_lost is None else self.reward_lost

    @property
    def last_round(self) -> int:
        """The last round that is played."""
        return self.rounds + self.extra_round

    def check_order(self, order: str) -> None:
        """Require `"silence"`, or `"close EXIT"` or `"recommend EXIT"` with the name of an exit; one has to stay open.

        Raises:
            SettingsError: it is none of these.
        """
        verb, _, name = order.partition(" ")
        if verb not in (CLOSE, RECOMMEND):
            super().check_order(order)
            return
        names = self.room.exit_names
        if name not in names:
            raise SettingsError("regulator.orders", order, f"names no exit; {suggestion(name, names)}")
        if verb == CLOSE and len(names) == 1:
            raise SettingsError("regulator.orders", order, "closes the only exit")

    def _checked_widths(self) -> tuple[int, int, int]:
        widths = self.exit_widths
        if not _is_list(widths) or len(widths) != 3 or not all(type(w) is int and w >= 0 for w in widths):
            raise SettingsError("exit_widths", widths, "must be three whole numbers, 0 or more: bottom, left, right")
        if self.exits is not None:
            if tuple(widths) != (3, 3, 1):
                raise SettingsError("exit_widths", widths, "contradicts exits; give one of the two")
            return (3, 3, 1)
        if not any(widths):
            raise SettingsError("exit_widths", widths, "leaves no exit; one width must be 1 or more")
        room_for = (self.cols - 2, self.rows - 2, self.rows - 3)
        for side, width, capacity in zip(("bottom", "left", "right"), widths, room_for, strict=True):
            if width > capacity:
                reason = f"the {side} exit has room for {capacity} cells in {self.rows} x {self.cols}"
                raise SettingsError("exit_widths", widths, reason)
        return (widths[0], widths[1], widths[2])

    def _checked_exits(self) -> tuple[ExitCell, ...] | None:
        exits = self.exits
        if exits is None:
            return None
        if isinstance(exits, Mapping):
            if not all(_is_list(cells) and all(_is_list(cell) for cell in cells) for cells in exits.values()):
                raise SettingsError("exits", exits, "must map each exit's name to a list of (row, column)")
            exits = tuple((name, *cell) for name, cells in exits.items() for cell in cells)
        if not _is_list(exits) or not exits:
            raise SettingsError("exits", exits, "must be a mapping or a list with at least one exit cell")
        checked: list[ExitCell] = []
        for entry in exits:
            self._check_exit_cell(entry)
            name, row, col = entry
            checked.append((name, row, col))
        if len({cell[1:] for cell in checked}) < len(checked):
            raise SettingsError("exits", exits, "names a cell twice")
        return tuple(checked)

    def _check_exit_cell(self, entry: Any) -> None:
        """Require (name, row, column) of a cell of the outer wall that can be entered."""
        if not _is_list(entry) or len(entry) != 3 or not isinstance(entry[0], str) or not _is_cell(entry[1:]):
            raise SettingsError("exits", entry, "must be (name, row, column)")
        name, row, col = entry
        if not name.strip() or not name.isprintable():
            raise SettingsError("exits", entry, "must have a name of printable characters")
        inside = 0 <= row < self.rows and 0 <= col < self.cols
        if not inside or not (row in (0, self.rows - 1) or col in (0, self.cols - 1)):
            raise SettingsError("exits", entry, f"must be a cell of the wall of the {self.rows} x {self.cols} room")
        if not self.diagonals and row in (0, self.rows - 1) and col in (0, self.cols - 1):
            raise SettingsError("exits", entry, "is a corner, which nobody can enter without diagonal steps")

    def _checked_desks(self) -> str | tuple[Cell, ...]:
        desks = self.desks
        if isinstance(desks, str):
            check_choice(self, "desks", ("none", "published"))
        elif not _is_list(desks) or not all(_is_list(desk) and len(desk) == 2 and _is_cell(desk) for desk in desks):
            raise SettingsError("desks", desks, "must be 'none', 'published' or a list of (row, column)")
        else:
            desks = tuple((row, col) for row, col in desks)
        cells = published_desks() if desks == "published" else () if isinstance(desks, str) else desks
        for row, col in cells:
            if not (0 < row < self.rows - 1 and 0 < col < self.cols - 1):
                value = desks if isinstance(desks, str) else (row, col)
                where = f"inside the walls of the {self.rows} x {self.cols} room"
                raise SettingsError("desks", value, f"a desk at row {row}, column {col} is not {where}")
        if len(set(cells)) < len(cells):
            raise SettingsError("desks", desks, "names a cell twice")
        return desks

    def _check_space(self) -> None:
        free = (self.rows - 2) * (self.cols - 2) - len(self.desk_list)
        if self.people > free:
            raise SettingsError("people", self.people, f"the room has only {free} free cells; make it larger")
        if self.desk_list:
            closed = cells_without_way_out(
                self.rows, self.cols, self.exit_list, self.desk_list, diagonals=self.diagonals
            )
            if closed:
                some = f"such as row {closed[0][0]}, column {closed[0][1]}"
                raise SettingsError("desks", self.desks, f"{len(closed)} cells have no way to an exit, {some}")
        if self.extra_round and not self.removal_lag:
            raise SettingsError("extra_round", True, "only makes sense with removal_lag=True, as in the authors' code")
        if self.control == "exit" and not self.all_plan_first:
            reason = "must be true with control='exit': else an episode could pass without a question"
            raise SettingsError("all_plan_first", False, reason)
        if self.start == "below_desks":
            count = len(self.desk_list)
            if self.people != count:
                raise SettingsError("people", self.people, f"start='below_desks' needs one person per desk ({count})")
            desk_cells = set(self.desk_list)
            for row, col in self.desk_list:
                if (row + 1, col) in desk_cells or row + 1 >= self.rows - 1:
                    raise SettingsError("start", self.start, f"there is no free cell below the desk at ({row}, {col})")


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _is_cell(value: Sequence[object]) -> bool:
    return all(type(part) is int for part in value)
