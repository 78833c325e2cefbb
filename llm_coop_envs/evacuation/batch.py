"""The evacuation in batches: thousands of rooms stepped at once, by compiled code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.settings import OWN
from llm_coop_envs.errors import SettingsError, SnapshotError
from llm_coop_envs.evacuation.compiled_arrays import (
    BLOCKED,
    CELLS,
    CELLS_WORK,
    EXIT,
    GAMES,
    MOVE,
    PEOPLE,
    PEOPLE_WORK,
    PERSON,
    ROUND,
    RULES,
    STEPS,
    TRAITS,
    VIEW_SIDE,
    VIEW_WORDS,
    CrowdArrays,
    RoomTables,
    Work,
)
from llm_coop_envs.evacuation.compiled_rules import DIGITS
from llm_coop_envs.evacuation.env import EvacuationEnv
from llm_coop_envs.evacuation.features import PEOPLE_SCALE
from llm_coop_envs.evacuation.injury import ancestor_attributes
from llm_coop_envs.evacuation.room import MOVES, STAY, VIEW_RADIUS
from llm_coop_envs.evacuation.settings import EvacuationSettings
from llm_coop_envs.evacuation.stepping import mask_choices, play_copies
from llm_coop_envs.evacuation.vision import view_of
from llm_coop_envs.util.compiled_stream import WORDS, draws_as_numpy
from llm_coop_envs.util.draws import CONFLICTS
from llm_coop_envs.util.extras import need
from llm_coop_envs.util.many_streams import generator_states, side_states
from llm_coop_envs.util.opening import DAMAGED
from llm_coop_envs.util.packing import pack_value, unpack_value
from llm_coop_envs.wrappers.batch import BatchEnv, Copies, Flags, Played, Rows


class EvacuationBatch(BatchEnv):
    """Copies of an evacuation without talk; see `BatchEnv`, and `EvacuationEnv` for choices, rewards and features.

    With `control="move"` copies come to the phases of a round at different times: `turn` and the columns of phases say
    where each is.

    Args:
        env: the evacuation.
        copies: how many of them.

    Raises:
        MissingExtra: the compiler is not installed.
        SettingsError: the settings ask for something that cannot be played in a batch.
    """

    def __init__(self, env: EvacuationEnv, copies: int) -> None:
        super().__init__(env, copies)
        need("numba", "Stepping evacuations in a batch", "rl")
        if not draws_as_numpy():
            reason = "draws random numbers in another way than a batch does; play copies of parallel_env one by one"
            raise SettingsError("numpy", np.__version__, reason)
        self._settings: EvacuationSettings = env.settings
        self._room = self._settings.room
        self._choices = int(env._choice_space().n)
        env.begin(0)
        self._plan = self._make_plan(env)
        self._crowds = self._make_crowds()
        self._work = self._make_work()
        self._no_choices = np.zeros(self._shape, dtype=np.int64)

    def _make_plan(self, env: EvacuationEnv) -> RoomTables:
        settings, room, scales = self._settings, self._room, env._feature_maker
        towards, around, sets = view_of(room).views()
        sets[:, sets.shape[1] // 2] &= settings.count_self
        if settings.crowd_count == "near":
            sets = np.vstack([sets, _near()])
            around = np.full(len(towards), len(sets) - 1)
        desks = room.desks if settings.count_desks else np.zeros_like(room.desks)
        sizes = np.bincount(room.exit_group)
        totals = np.arange(sizes.max() * sets.shape[1] + 1)
        down = np.arange(1 - room.rows, room.rows) / (room.rows - 1)
        right = np.arange(1 - room.cols, room.cols) / (room.cols - 1)
        at = (np.stack(room.row_col(room.inside)) / scales.extent).T
        distances = np.column_stack([room.mean_distance, room.nearest_distance]) / scales.diagonal
        below = [(row + 1, col) for row, col in settings.desk_list] if settings.start == "below_desks" else []
        last = settings.last_round + 1
        return RoomTables(
            rules=self._make_rules(env._horizon or 0),
            cells=self._make_cells(),
            start_cells=room.cells(below),
            steps=self._make_steps(),
            exit_cells=room.exit_cells.copy(),
            targets=room.target_cell.copy(),
            ways=self._make_ways(),
            nearest_exit=room.nearest_exit.copy(),
            views=np.column_stack([towards, around]),
            view_starts=np.append(0, np.cumsum(sizes)),
            view_masks=_as_words(sets, VIEW_WORDS, 3 * VIEW_SIDE),
            desks=_as_words(desks.reshape(room.height, -1) != 0, -(-room.width // 64) + 1, 64).T.copy(),
            traits=self._make_traits(scales.persona),
            site_features=np.column_stack([at, distances]).astype(np.float32),
            down=down.astype(np.float32),
            right=right.astype(np.float32),
            round_shares=(np.arange(last + 1) / last).astype(np.float32),
            seen_shares=np.minimum(totals / sizes[:, None] / PEOPLE_SCALE, 1.0).astype(np.float32),
            around_shares=(np.arange(sets.shape[1] + 1) / scales.around_scale).astype(np.float32),
        )

    def _make_steps(self) -> NDArray[Any]:
        steps = np.zeros(len(MOVES), dtype=STEPS)
        steps["cells"], steps["allowed"] = self._room.moves, self._room.allowed_moves
        return steps

    def _make_ways(self) -> NDArray[np.int64]:
        """The moves that lead nearer to each exit cell; see `RoomTables`."""
        room = self._room
        ways = np.zeros((len(room.inside), len(room.exit_cells)), dtype=np.int64)
        for exit_, cell in enumerate(room.exit_cells):
            away = room.squared_distance(room.inside[:, None] + room.moves, cell)
            is_nearer = (away < away[:, [STAY]]) & (room.allowed_moves == 1)
            order = np.argsort(np.where(is_nearer, away, np.iinfo(np.int64).max), axis=1, kind="stable")
            in_order = np.take_along_axis(is_nearer, order, axis=1)
            ways[:, exit_] = np.where(in_order, (order + 1) << 4 * np.arange(len(MOVES)), 0).sum(axis=1)
        return ways

    def _make_rules(self, horizon: int) -> Any:
        settings, room = self._settings, self._room
        computed = {
            "width": room.width,
            "exits": len(room.exit_names),
            "horizon": horizon,
            "walks": settings.control == "exit",
            "together": settings.engine == "simultaneous",
            "sees_desks": settings.count_desks and bool(settings.desk_list),
            # Where it is inert, nobody is overtaken unless a normal number below -8 is drawn: one in 10**15.
            "can_be_hurt": settings.injury == "active",
            "hides_people": settings.information == OWN,
            "hides_last_move": settings.memory == 0,
        }
        rules = np.recarray(1, RULES)
        for name in RULES.names or ():
            rules[name] = computed[name] if name in computed else getattr(settings, name)
        return rules[0]

    def _make_cells(self) -> NDArray[Any]:
        room = self._room
        cells = np.zeros(room.height * room.width, dtype=CELLS)
        cells["row"], cells["col"] = room.row_col(np.arange(len(cells)))
        cells["index"][room.inside] = np.arange(len(room.inside))
        cells["exit_at"] = room.exit_at
        cells["ground"] = room.blocked * BLOCKED
        cells["may_start"][room.start_cells] = True
        return cells

    def _make_traits(self, persona: NDArray[Any]) -> NDArray[Any]:
        traits = np.zeros(self._settings.people, dtype=TRAITS)
        for name, values in vars(ancestor_attributes(self._settings.people)).items():
            traits[name] = values
        traits["strong"], traits["confident"] = persona.T
        return traits

    def _make_crowds(self) -> CrowdArrays:
        people, grid = (self.copies, self._settings.people), len(self._plan.cells)
        return CrowdArrays(
            game=np.zeros(self.copies, dtype=GAMES),
            people=np.zeros(people, dtype=PEOPLE),
            queue=np.zeros(people, dtype=np.int32),
            seen=np.zeros((*people, self._plan.rules.exits + 1), dtype=np.float32),
            grid=np.zeros((self.copies, grid), dtype=np.uint8),
            streams=np.zeros((self.copies, 2, WORDS), dtype=np.uint64),
        )

    def _make_work(self) -> Work:
        people, plan = self._settings.people, self._plan
        cells = np.zeros(len(plan.cells), dtype=CELLS_WORK)
        cells["occupant"] = cells["winner"] = -1
        return Work(
            people=np.zeros(people, dtype=PEOPLE_WORK),
            cells=cells,
            order=np.zeros(people, dtype=np.int32),
            keys=np.zeros(people, dtype=np.int64),
            sorting=np.zeros(people, dtype=np.int64),
            places=np.zeros(DIGITS, dtype=np.int64),
            ranks=np.full(len(plan.exit_cells), -1, dtype=np.int64),
            heads=np.zeros_like(plan.desks),
            solid=np.zeros_like(plan.desks),
            window=np.zeros(VIEW_WORDS, dtype=np.uint64),
            totals=np.zeros(len(plan.exit_cells), dtype=np.int64),
        )

    def _begin(self, copies: Copies) -> None:
        streams = self._crowds.streams
        states = generator_states(self._episode_seeds(copies))
        streams[copies, 0, :4] = states
        if self._plan.rules.together:
            streams[copies, 1, :4] = side_states(states, CONFLICTS)
        streams[copies, :, 4] = 0
        self._run(copies, self._no_choices, self.observations)

    def _play(self, choices: NDArray[Any]) -> Played:
        self.observations = np.empty_like(self.observations)
        # Of another layout or one that is read-only the compiler would make another program.
        return self._run(self._everyone, np.require(choices, requirements=["C", "W"]), self.observations)

    def _run(self, copies: Copies, choices: NDArray[Any], observations: Rows) -> Played:
        rewards, over = np.zeros(self._shape), np.zeros(self.copies, dtype=np.bool_)
        illegal, terminations, truncations = (np.zeros(self._shape, dtype=np.bool_) for _ in range(3))
        played = rewards, illegal, terminations, truncations, over
        is_new = choices is self._no_choices
        play_copies(self._plan, self._crowds, self._work, copies, is_new, choices, (observations, *played))
        return Played(*played)

    def masks(self) -> NDArray[np.int8] | None:
        """As `BatchEnv.masks`."""
        masks = np.empty((*self._shape, self._choices), dtype=np.int8)
        mask_choices(self._plan, self._crowds, masks)
        masks.setflags(write=False)
        return masks

    @property
    def turn(self) -> NDArray[np.int8]:
        """(copies, people) 1 for each person on turn."""
        turn: NDArray[np.int8] = (self._crowds.people["level"] == self._crowds.game["step"][:, None]).astype(np.int8)
        return turn

    @property
    def present(self) -> Flags:
        """(copies, people) whether each person is inside."""
        present: Flags = self._crowds.people["inside"].copy()
        return present

    def _phase_flags(self) -> NDArray[np.int8]:
        phases = [EXIT] if self._plan.rules.walks else [EXIT, MOVE]
        flags: NDArray[np.int8] = (self._crowds.game["phase"][:, None] == phases).astype(np.int8)
        return flags

    def _state(self) -> NDArray[np.float64]:
        people, room = self._crowds.people, self._room
        row, col = room.row_col(people["cell"])
        scaled = row / (room.rows - 1), col / (room.cols - 1), (people["heading"] + 1) / len(room.exit_names)
        rounds = self._crowds.game["round"] / (self._settings.last_round + 1)
        return np.column_stack([*scaled, people["overtaken"], rounds])

    def get_state(self) -> dict[str, Any]:
        """As `BatchEnv.get_state`."""
        crowds = {name: _pack_records(array) for name, array in self._crowds._asdict().items()}
        return {**super().get_state(), "crowds": crowds}

    def _read_state(self, state: Mapping[str, Any]) -> dict[str, Any]:
        values, crowds = super()._read_state(state), self._make_crowds()
        try:
            for name, array in crowds._asdict().items():
                for field in array.dtype.names or (...,):
                    saved = state["crowds"][name]
                    array[field] = unpack_value(saved if field is ... else saved[field])
        except DAMAGED as error:
            raise SnapshotError("the state belongs to another batch: it has another room") from error
        if not self._is_possible(crowds):
            raise SnapshotError("the state is damaged: people are where nobody can be")
        return {**values, "_crowds": crowds}

    def _is_possible(self, crowds: CrowdArrays) -> bool:
        """Whether people are where they can be. Compiled code takes these numbers for places in memory."""
        game, people, queue, grid = crowds.game, crowds.people, crowds.queue, crowds.grid
        plan, inside, of_copy = self._plan, people["inside"], np.arange(self.copies)[:, None]
        cells = len(plan.cells)
        for numbers, low, high in (
            (people["cell"], 0, cells - 1),
            (people["previous"], -1, cells - 1),
            (people["heading"], -1, plan.rules.exits - 1),
            (people["target"], 0, len(plan.exit_cells) - 1),
            (queue, 0, len(plan.traits) - 1),
            (game["count"], 1, len(plan.traits)),
            (game["round"], 1, plan.rules.last_round),
            (game["due"], EXIT, ROUND),
            (game["phase"], EXIT, MOVE),
        ):
            if numbers.min() < low or numbers.max() > high:
                return False
        # Everybody inside is in the queue once, and alone on a cell; walls are where they were.
        queued, standing = np.zeros(inside.shape, dtype=np.int64), np.zeros(grid.shape, dtype=np.int64)
        np.add.at(queued, (of_copy, queue), np.arange(len(plan.traits)) < game["count"][:, None])
        np.add.at(standing, (of_copy, people["cell"]), inside)
        return bool(
            np.isin(people["cell"], self._room.inside).all()
            and (queued == inside).all()
            and (standing == (grid == PERSON)).all()
            and (grid & plan.cells["ground"] == plan.cells["ground"]).all()
        )


def _pack_records(array: NDArray[Any]) -> Any:
    """An array as JSON data, of records field by field."""
    names = array.dtype.names
    return pack_value(array) if names is None else {name: pack_value(array[name]) for name in names}


def _near() -> Flags:
    """The 3 x 3 cells in the middle of a view."""
    view = np.zeros((VIEW_SIDE, VIEW_SIDE), dtype=np.bool_)
    view[VIEW_RADIUS - 1 : VIEW_RADIUS + 2, VIEW_RADIUS - 1 : VIEW_RADIUS + 2] = True
    return view.reshape(-1)


def _as_words(flags: Flags, count: int, bits: int) -> NDArray[np.uint64]:
    """Rows of flags as rows of so many words, each with so many bits."""
    columns = np.arange(flags.shape[1])
    packed = np.zeros((len(flags), count), dtype=np.uint64)
    for word in range(count):
        inside = columns // bits == word
        values = np.uint64(1) << (columns[inside] % bits).astype(np.uint64)
        packed[:, word] = flags[:, inside].astype(np.uint64) @ values
    return packed
