"""The emergency evacuation as an environment: the order of one round, and what is observed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from llm_coop_envs.core.channels import within
from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.evacuation.crowd import Crowd
from llm_coop_envs.evacuation.features import FeatureMaker, feature_names
from llm_coop_envs.evacuation.movement import free_moves, open_moves
from llm_coop_envs.evacuation.picture import draw
from llm_coop_envs.evacuation.room import MOVES, STAY, IntArray
from llm_coop_envs.evacuation.settings import CLOSE, EvacuationSettings
from llm_coop_envs.evacuation.slots import EvacuationSlots, SlotMaker
from llm_coop_envs.interface.actions import Indices
from llm_coop_envs.interface.hooks import Event, Over, Stage
from llm_coop_envs.interface.messages import Message
from llm_coop_envs.interface.question import Options
from llm_coop_envs.interface.slots import Heard

EXIT, MOVE = "exit", "move"
_CROWD = 256


class EvacuationEnv(ScenarioEnv):
    """People leave a room through exits of different width; nobody knows how many will make for the same exit.

    Source: Wu et al. 2024 ("Shall We Team Up", EMNLP Findings) as the authors' program plays it; where the paper says
    something else there is a setting (`EvacuationSettings` names each source).

    **Round.** (1) People on an exit cell leave, one person per cell and round. (2) The others are shuffled. Everybody
    re-plans in the first round, then each with probability 0.2. (3) Those who re-plan talk in this order and are heard
    within 5 cells by the others who re-plan (phase `talk`); messages last one round. (4) They choose an exit, all at
    once (phase `exit`), and head for its nearest cell until they choose again. (5) Everybody moves (phase `move`): one
    after the other, grouped by target cell, nearest first, in exact parallel levels; with the simultaneous engine all
    at once, with conflicts drawn by lot (`conflicts`). With `control="exit"` the environment walks instead. Play ends
    when nobody is inside, or after 50 rounds, when those still inside are lost.

    **Choice.** `Discrete(exits + 9)`: exits (bottom, left, right in the published room), then the moves right, down,
    left, up, stay, down-right, down-left, up-left, up-right (the published order). The mask allows exits in the phase
    `exit`, and free (sequential) or open (simultaneous) cells in the phase `move`. With `control="exit"` there are
    exits alone. An unusable choice is flagged and replaced by staying, or by the exit headed for (at first the nearest
    one).

    **Reward.** -1 for each round that a person begins inside. Whoever is disabled or still inside at the end loses as
    much again as for all rounds. Wu et al. name no reward; settings change all of them.

    **Features** (float32, in [-1, 1]): own cell, last step, direction of the target, per exit the mean distance, the
    mean number of people seen towards it and whether it is headed for, the nearest exit's distance, the number of
    people in the 3 x 3 cells around, whether it re-plans, is overtaken, strong, confident, the round, and which moves
    are free; named and scaled in `features`. Numbers of people are -1 for whoever sees none.

    **State.** Per person row, column, declared exit, whether overtaken; then the round, all scaled to [0, 1].

    **Events.** `start`: room, positions, traits; `opening` when a round begins: who got out by which cell at its
    beginning, who re-plans, overtaken and disabled people; `round` when it is over: the same, positions, headings.

    `reset(options={"positions": [[row, column], ...]})` starts from given cells.

    Version history:
        v0: first version.
    """

    metadata: dict[str, Any] = {**ScenarioEnv.metadata, "name": "evacuation_v0", "render_fps": 20}
    settings_type = EvacuationSettings
    slots_type = EvacuationSlots
    role = "evacuee"
    tells_who_left = False  # people know those whom they see
    act_phases: ClassVar[tuple[str, ...]] = (EXIT, MOVE)
    home = Path(__file__).parent
    kept = ("_due", "_out", "_out_by_exit", "_disabled", "_option_orders")
    settings: EvacuationSettings

    def _setup(self) -> None:
        settings = self.settings
        self.n_players = settings.people
        self._room = settings.room
        self._exits = len(self._room.exit_names)
        self._walks = settings.control == "exit"
        if self._walks:
            self.phases = tuple(phase for phase in self.phases if phase != MOVE)
        self.feature_names = feature_names(self._room)
        self._feature_bounds = (-np.ones(len(self.feature_names)), np.ones(len(self.feature_names)))
        # Per person row, column, exit (0: none yet), overtaken; then the round.
        size = 4 * self.n_players + 1
        self._state_bounds = (np.zeros(size), np.ones(size))
        self._declare_only = np.zeros((self.n_players, self._exits + len(MOVES)), dtype=np.int8)
        self._declare_only[:, : self._exits] = 1
        self._closed = -1

    def _choice_space(self) -> spaces.Discrete[Any]:
        return spaces.Discrete(self._exits if self._walks else self._exits + len(MOVES))

    def _ordered(self, order: str) -> None:
        """Close an exit, or open all. Nobody can choose a closed exit or step onto its cells."""
        verb, _, name = order.partition(" ")
        self._closed = self._room.exit_names.index(name) if verb == CLOSE else -1
        self._slots_fresh = False
        if self._started:
            self._crowd.close(self._closed)

    def _begin(self, options: Mapping[str, Any]) -> None:
        self._take(Crowd(self.settings, self.np_random, self._start_cells(options.get("positions"))))
        self._due = "round"
        self._out: list[tuple[int, int]] = []
        self._out_by_exit = [0] * self._exits
        self._disabled: list[int] = []
        self._option_orders: IntArray | None = None

    # The order of one round.

    def _next_stage(self) -> Stage | Over:
        crowd = self._crowd
        while True:
            self._slots_fresh = False
            if self._due == "round":
                over = self._open_round()
                if over is not None:
                    return over
                self._due = EXIT
                self.conversation.forget()
                if self.settings.talks_in(self.round):
                    return self._open_talks()
            if self._due == EXIT:
                self._due = MOVE
                if self.settings.ever_talks and not self.settings.hear_later_speakers:
                    self.conversation.keep_order()
                if len(crowd.planners):
                    return Stage(EXIT, [crowd.planners])
            if self._due == MOVE:
                self._due = "settle"
                crowd.send_undecided()
                if not self._walks:
                    self._shuffle_options()
                    return Stage(MOVE, crowd.move_levels())
                crowd.walk()
            self._close_round()
            self._due = "round"

    def _open_round(self) -> Over | None:
        crowd, settings = self._crowd, self.settings
        played = self.round
        if settings.removal_lag and played <= settings.rounds:
            self._let_out()
        if not len(crowd.queue):
            if self._out:
                self._record_departures()
            return Over("nobody is left inside")
        if played == settings.last_round:
            self._rewards[crowd.queue] += settings.lost
            if settings.removal_lag and not settings.extra_round:
                self._record_departures()
            return Over("time is up")
        self.round += 1
        gone = self.depart()
        crowd.remove(gone)
        disabled = crowd.open_round(self.np_random, self.settings_of().replan_probability, first=self.round == 1)
        self._miscount()
        self._disabled = disabled.tolist()
        if self._disabled:
            self._rewards[disabled] += settings.lost
            self.leave(disabled)
        if self.record:
            self.emit(
                "opening",
                escaped=[list(pair) for pair in self._out],
                **self._planners_and_overtaken(),
                disabled=self._disabled,
                **({"taken_out": gone.tolist()} if len(gone) else {}),
            )
        if self.settings.listeners:
            headed = crowd.heading[crowd.inside]
            counts = np.bincount(headed[headed >= 0], minlength=self._exits).tolist()
            for name, people in zip(self._room.exit_names, counts, strict=True):
                self.happened("crowded_exit", number=people, name=name)
        return None

    def _miscount(self) -> None:
        """Apply the settings' perception errors to the numbers of people seen towards the exits."""
        seen = self._crowd.seen
        for i in self._crowd.queue.tolist() if self._noisy else ():
            error = self.error(i, self.round, self.round, self._exits)
            if error is not None:
                seen[i] = np.maximum(0.0, np.round(seen[i], 2) * (1.0 + error))

    def _planners_and_overtaken(self) -> Event:
        crowd = self._crowd
        return {"planners": crowd.planners.tolist(), "overtaken": np.flatnonzero(crowd.overtaken).tolist()}

    def _hears(self, listener: int, message: Message) -> bool:
        settings = self.settings
        if not super()._hears(listener, message):
            return False
        if settings.hear_later_speakers or settings.talk_mode != "sequential":
            return True
        order = self._crowd.planners.tolist()
        return bool(order.index(message.speaker) < order.index(listener))

    def _open_talks(self) -> Stage:
        speakers = self._crowd.planners.tolist()
        positions = self._room.positions(self._crowd.cells)
        return self._talk_stage([speakers], within(positions, self.settings_of().hearing_radius, speakers, speakers))

    def _close_round(self) -> None:
        self._rewards[self._crowd.queue] += self.settings.reward_inside
        if not self.settings.removal_lag:
            self._let_out()
        self._record_round()

    def _let_out(self) -> None:
        self._out = self._crowd.leave_by_exits()
        if self._out:
            leavers = np.array([person for person, _ in self._out], dtype=np.intp)
            self._rewards[leavers] += self.settings.reward_out
            self.leave(leavers)
            for _, cell in self._out:
                self._out_by_exit[self._room.exit_group[cell]] += 1

    def _record_departures(self) -> None:
        """Record a last round in which people only leave."""
        self.round += 1
        self._crowd.clear_plans()
        self._record_round(played=False)

    def _record_round(self, *, played: bool = True) -> None:
        if self.record:
            crowd = self._crowd
            cells = zip(self._room.positions(crowd.cells).tolist(), crowd.inside.tolist(), strict=True)
            self.emit(
                "round",
                played=played,
                escaped=[list(pair) for pair in self._out],
                positions=[cell if is_inside else None for cell, is_inside in cells],
                headings=[None if exit_ < 0 else exit_ for exit_ in crowd.heading.tolist()],
                **self._planners_and_overtaken(),
                disabled=self._disabled,
            )
        self._out, self._disabled = [], []

    def _shuffle_options(self) -> None:
        if self.settings.option_order == "shuffled":
            fixed = np.tile(np.arange(len(MOVES)), (self.n_players, 1))
            self._option_orders = self._crowd.option_rng.permuted(fixed, axis=1)

    # Choices.

    def _apply(self, phase: str, persons: Indices, choices: NDArray[Any]) -> None:
        self._slots_fresh = False
        if phase == EXIT:
            self._crowd.declare(persons, choices)
        else:
            self._crowd.move(persons, choices - self._exits)

    def _legal(self) -> NDArray[np.int8] | None:
        if self.phase == EXIT:
            if self._closed < 0:
                return None if self._walks else self._declare_only
            declare: NDArray[np.int8] = self._declare_only[:, : self._choices.n_choices].copy()
            declare[:, self._closed] = 0
            return declare
        legal = np.zeros((self.n_players, self._exits + len(MOVES)), dtype=np.int8)
        crowd, movers = self._crowd, self._who  # only the rows of people on turn are used
        cells, together = crowd.cells[movers], self.settings.engine == "simultaneous"
        moves = open_moves(crowd.room, cells) if together else free_moves(crowd.room, crowd.people, cells)
        legal[movers, self._exits :] = moves
        return legal

    def _fallback(self, persons: Indices) -> NDArray[Any]:
        if self.phase == MOVE:
            return np.full(len(persons), self._exits + STAY)
        heading = self._crowd.heading[persons]
        nearest = self._room.nearest_exit[self._room.table_index(self._crowd.cells[persons])]
        exits = np.where(heading < 0, nearest, heading)
        return np.where(exits == self._closed, 0 if self._closed else 1, exits)

    # What is seen.

    def _features(self) -> NDArray[np.float32]:
        rows = self._feature_maker.matrix(self.round)
        if self._hides:
            self._feature_maker.hide_people(rows, self.blind)
        if self._forgets:
            self._feature_maker.hide_last_move(rows, self.forgetful)
        return rows

    def _question(self, index: int) -> Options:
        question = self._fresh_slot_maker(index).question(index, self.phase)
        if self.phase != EXIT or self._closed < 0:
            return question
        names = tuple(option.name for option in question.options)
        offered = tuple(option for option in question.options if option.choice != self._closed)
        return replace(question, options=offered, known=names)

    def _fresh_slot_maker(self, index: int) -> SlotMaker:
        """Return the slot maker, refreshed so that it knows a person's present situation."""
        maker = self._slot_maker
        if not self._slots_fresh or not maker.knows(index):
            # In a large crowd few people are on turn in a step of sequential moves, and mostly only they are observed.
            few = self.n_players > _CROWD and not self._slots_fresh and index in self.on_turn
            maker.refresh(self._option_orders, self.on_turn if few else self._everyone)
            self._slots_fresh = True
        return maker

    def _slots(self, index: int, common: dict[str, Any]) -> EvacuationSlots:
        maker = self._fresh_slot_maker(index)
        closed = "" if self._closed < 0 else self._room.exit_names[self._closed]
        return maker.make(index, common, round_=self.round, heard=self._heard_nearest_first(index), closed=closed)

    def _heard_nearest_first(self, index: int) -> tuple[Heard, ...]:
        if self.conversation.silent:
            return ()
        heard = self.conversation.heard(index)
        if len(heard) > 1:
            room, spoken_from = self._room, self._crowd.from_cells
            speakers = np.array([message.speaker for message in heard])
            distance = room.squared_distance(spoken_from[speakers], spoken_from[index])
            heard = [heard[k] for k in np.argsort(distance, kind="stable").tolist()]
        return tuple([m.as_heard(self.possible_agents, False) for m in heard])

    def _state_vector(self) -> NDArray[np.float64]:
        crowd, room = self._crowd, self._room
        row, col = room.row_col(crowd.cells)
        scaled = row / (room.rows - 1), col / (room.cols - 1), (crowd.heading + 1) / self._exits
        return np.concatenate([*scaled, crowd.overtaken, [self.round / (self.settings.last_round + 1)]])

    def _picture(self) -> str:
        return draw(self._crowd, self._out_by_exit)

    # Recording and snapshots.

    def _start_event(self) -> Event:
        crowd, settings = self._crowd, self.settings
        attributes = None
        if crowd.attributes is not None:
            attributes = {name: values.tolist() for name, values in vars(crowd.attributes).items()}
        return {
            "room": {
                "rows": settings.rows,
                "cols": settings.cols,
                "exits": [list(cell) for cell in settings.exit_list],
                "exit_names": list(self._room.exit_names),
                "desks": [list(cell) for cell in settings.desk_list],
            },
            "positions": self._room.positions(crowd.cells).tolist(),
            "physical": crowd.physical.tolist(),
            "mental": crowd.mental.tolist(),
            # What the text says, after the published mix-up: whether strong, whether confident.
            "shown": [list(persona) for persona in self._slot_maker.personas],
            "attributes": attributes,
        }

    def recap(self) -> list[Event]:
        """Return the present state as one event of type `recap`, which is never recorded."""
        crowd, room = self._crowd, self._room
        gone = np.flatnonzero(~crowd.inside)
        disabled = crowd.disabled_so_far()
        recap = {
            "type": "recap",
            "step": self.cycles,
            "round": self.round,
            "escaped": [],
            "disabled": disabled,
            "gone": np.setdiff1d(gone, disabled).tolist(),
            "out": list(self._out_by_exit),
            "positions": room.positions(crowd.cells).tolist(),
            "stood": room.positions(crowd.from_cells).tolist(),
            "headings": crowd.heading.tolist(),
            **self._planners_and_overtaken(),
        }
        return [recap]

    def _snapshot(self) -> dict[str, Any]:
        return {**super()._snapshot(), "crowd": self._crowd.snapshot()}

    def _restore(self, data: Mapping[str, Any]) -> None:
        super()._restore(data)
        self._take(Crowd.from_snapshot(self.settings, data["crowd"]))

    def _take(self, crowd: Crowd) -> None:
        self._crowd = crowd
        self._feature_maker = FeatureMaker(self.settings, crowd)
        self._slot_maker = SlotMaker(self.settings, crowd)
        self._slots_fresh = False

    def _start_cells(self, positions: Any) -> IntArray | None:
        if positions is None:
            return None
        room, count = self._room, self.n_players
        if not isinstance(positions, Sequence):
            raise SettingsError("positions", positions, "must be a list of cells (row, column)")
        cells = [tuple(cell) if isinstance(cell, Sequence) else cell for cell in positions]
        free = set(map(tuple, room.positions(room.start_cells).tolist()))
        for cell in cells:
            if cell not in free:
                raise SettingsError("positions", cell, "is no free cell (row, column) inside the room")
        if len(cells) != count or len(set(cells)) != count:
            raise SettingsError("positions", len(set(cells)), f"must be {count} different cells, one per person")
        return room.cells(cells)
