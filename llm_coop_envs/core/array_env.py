"""An environment on arrays: clock, turns, talk, flags and recording, with the hooks that a scenario fills in.

Players are indices 0..n-1. Nothing here knows observation dictionaries or texts: `core.env.ScenarioEnv` derives from
`ArrayEnv` and adds those.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from numpy.typing import NDArray

from llm_coop_envs.core.channels import Audience, Conversation
from llm_coop_envs.core.instituted import Instituted
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import ResetNeeded, SettingsError
from llm_coop_envs.interface.actions import ChoiceReader, Indices, MoveReader
from llm_coop_envs.interface.hooks import TALK as TALK
from llm_coop_envs.interface.hooks import Event, Hooks, Over, Stage
from llm_coop_envs.interface.move_spaces import is_one_number, space_of
from llm_coop_envs.interface.moves import Shares
from llm_coop_envs.interface.question import Question, Unusable, Words
from llm_coop_envs.treatments.changes import Change, check_patterns
from llm_coop_envs.treatments.delivery import DELIVER, SPEAKER, check_delivery
from llm_coop_envs.treatments.listeners import Notices
from llm_coop_envs.treatments.regulator import PHASES, REPORT, SEAT
from llm_coop_envs.util.draws import Key, key_of, nature_generator
from llm_coop_envs.util.packing import pack_value, unpack_value

#: The attributes of a running episode that a snapshot keeps as they are.
_KEPT = (
    *("cycles", "round", "phase", "over", "_truncated", "_np_random", "_rewards", "_alive", "_flags"),
    *("_levels", "_level", "_orders"),
)


class ArrayEnv(Instituted):
    """One scenario, played with arrays of choices.

    Attributes:
        name: the scenario's name with its version, such as `"kbc_v0"`.
        settings: the scenario's settings.
        possible_agents: the players' names, in index order; after them the regulator's, if there is one.
        agents: the names of those still playing.
        phases: the names of the phases, talk first if there is talk.
        feature_names: the names of the feature columns.
        n_players: how many players there are.
        regulator: the regulator's seat; `None` without one.
        conversation: what has been said and can still be heard.
        cycles: how many steps were played in this episode.
        round: the round, as the scenario's papers count.
        phase: the phase of the step to come.
        over: whether the episode has ended.
        events: the record of the running episode, if `record` is set.
    """

    settings: Any
    phases: tuple[str, ...]

    def _prepare(
        self, name: str, settings: ScenarioSettings, role: str, *, max_cycles: int | None, record: bool
    ) -> None:
        self.name = name
        self.settings = settings
        self._role = role
        self.record = record
        # parallel_api_test assigns env.max_cycles, which must not lengthen the episode: hence a private name.
        self._horizon = max_cycles
        self._watched = False
        self.feature_names = ()
        self._feature_bounds: tuple[Any, Any] = (-np.inf, np.inf)
        self._state_bounds: tuple[Any, Any] = (np.zeros(0), np.zeros(0))
        self.n_players = sum(self._seats().values())
        self._setup()
        if type(self)._state_vector is Hooks._state_vector:
            ends = [np.broadcast_to(bound, len(self.feature_names)) for bound in self._feature_bounds]
            self._state_bounds = (np.tile(ends[0], self.n_players), np.tile(ends[1], self.n_players))
        self.possible_agents = self._player_names
        self._read_moves()
        self._acting = frozenset(self.ruled_phases or self.phases) - {TALK}
        self._establish()
        self._seat_regulator()
        if settings.private_messages and (self.regulator is not None or SPEAKER in settings.reach("delivery_by")):
            reason = "goes neither with a regulator, who rules on one message, nor with delivery_by: speaker"
            raise SettingsError("private_messages", settings.private_messages, reason)
        for k, change in enumerate(settings.changes):
            check_patterns(f"changes[{k}].players", change.players, self.possible_agents)
        for k, listener in enumerate(settings.listeners):
            check_patterns(f"listeners[{k}].players", listener.players, self.possible_agents)
        _ = self._without, self._joins  # impossible departures raise now
        self._notices = Notices(settings.listeners, self.possible_agents) if settings.listeners else None
        self.possible_agents += self._seat.names
        self.agents: list[str] = []
        self._everyone: Indices = np.arange(self.n_players, dtype=np.intp)
        self._all_seats: Indices = np.arange(len(self.possible_agents), dtype=np.intp)
        self._np_random: np.random.Generator | None = None
        self._started = False
        self.conversation = Conversation(settings.message_length)
        check_delivery(settings)
        self._treats = any(treatment != DELIVER for treatment in settings.reach("delivery"))
        self._perceive()
        self._clear()

    def _read_moves(self) -> None:
        """Make the readers of all phases; what cannot be asked raises now, not in the middle of an episode."""
        self._asking, self._readers, self._common_reader = {}, {}, None
        moves = self._moves()
        if moves and type(self)._choice_space is Hooks._choice_space:
            self.phases = tuple(phase for phase in self.phases if phase == TALK or phase in moves)
        for phase, question in moves.items():
            if phase not in self.phases or phase == TALK:
                raise SettingsError("moves", phase, f"is none of the act_phases of {type(self).__name__}")
            self._ask(phase, question)
        if any(phase != TALK and phase not in self._asking for phase in self.phases):
            self._common_reader = ChoiceReader(self._choice_space(), self.n_players)
            if not self._common_reader.discrete and type(self)._clean is Hooks._clean:
                self._check_missing()

    def _ask(self, phase: str, question: Question | Mapping[str, Question]) -> None:
        """Let a phase have a question of its own, or one for each role; a phase that is new comes last."""
        if phase not in self.phases:
            self.phases = (*self.phases, phase)
        by_role = {"": question} if isinstance(question, Question) else question
        self._asking[phase] = by_role
        for role, asked in by_role.items():
            if role and role not in self._roles:
                raise SettingsError("moves", role, f"is no role of {type(self).__name__}; name roles as _seats() does")
            if role and (isinstance(asked, Shares) or getattr(asked, "counted", False)):
                reason = (
                    "is asked of one role; say what it is without counted, and ask for shares in a phase of its own"
                )
                raise SettingsError("moves", asked.name, reason)
            space, is_number = space_of(asked), not role and is_one_number(asked)
            self._readers[phase] = ChoiceReader(space, self.n_players) if is_number else MoveReader(self.n_players)
            try:
                asked.stand_in()
            except Unusable:
                if not is_number or (type(self)._clean is Hooks._clean and not self._readers[phase].discrete):
                    self._check_missing()

    def _check_missing(self) -> None:
        if type(self)._missing is Hooks._missing:
            self._missing(np.arange(0))

    def _clear(self) -> None:
        self.cycles = 0
        self.round = 0
        self.phase = self.phases[0]
        self.over = False
        self._truncated = False
        self.events: list[Event] = []
        self._rewards: NDArray[np.float64] = np.zeros(self.n_players)
        self._alive: NDArray[np.bool_] = np.ones(self.n_players, dtype=np.bool_)
        self._all_alive = True
        self._departed = False
        self._flags: dict[int, tuple[str, ...]] = {}
        self._masks: NDArray[np.int8] | None = None
        self._levels: list[Indices] = []
        self._level = 0
        self._who = self._everyone[:0]
        self._orders: list[list[int]] = []
        self._audience = Audience(None)
        self._told_changes: list[Change] = []
        self._key: Key = (0, 0)
        self._paraphrases: dict[int, str] = {}
        self._stated: dict[int, dict[str, int]] = {}
        self._unreached: dict[int, tuple[str, ...]] = {}
        self._restart_mechanism()
        self.conversation.restart()
        if self._notices is not None:
            self._notices.clear()
        if self.regulator is not None:
            self.regulator.clear()
            self._ordered("")

    # The array view.

    @property
    def np_random(self) -> np.random.Generator:
        """The episode's one generator."""
        if self._np_random is None:
            rng, _ = seeding.np_random(None)
            self._np_random = rng
        return self._np_random

    def nature(self, purpose: str) -> np.random.Generator:
        """A generator for what nature draws for a purpose in this round: the same whatever was said or chosen before.

        Draw the weather from `self.nature("weather")` rather than from `np_random`, whose next number hangs on how many
        were drawn before. Record it as `self.emit("nature", purpose="weather", drawn=...)`, so that reports can check
        that arms of a comparison had the same.
        """
        return nature_generator(self._key, self.round, purpose)

    @property
    def rewards(self) -> NDArray[np.float64]:
        """Each seat's reward of the last step."""
        return self._seat.append_to(self._rewards.copy(), self._seat.reward)

    @property
    def alive(self) -> NDArray[np.bool_]:
        """Whether each seat is still in the game; the regulator is until it is over."""
        return self._seat.append_to(self._alive.copy(), True)

    @property
    def live(self) -> Indices:
        """The indices of the seats still in the game."""
        return self._all_seats if self._all_alive else np.flatnonzero(self.alive)

    @property
    def turn(self) -> NDArray[np.int8]:
        """1 for each seat whose submission counts in this step, else 0."""
        turn = np.zeros(len(self.possible_agents), dtype=np.int8)
        turn[self.on_turn] = 1
        return turn

    @property
    def on_turn(self) -> Indices:
        """The indices of the players on turn."""
        return self._who[:0] if self.over else self._who

    @property
    def truncated(self) -> bool:
        """Whether a clock ended the episode."""
        return self._truncated

    @property
    def choice_space(self) -> spaces.Space[Any]:
        """The space of one player's choice (a fresh copy): of the only phase with choices, or a Dict of all by name.

        Where unlike roles are asked for unlike things, it is a Dict of their spaces by role.
        """
        if any("" not in by_role for by_role in self._asking.values()):
            return spaces.Dict({role: self.choice_space_of(role) for role in self._seats()})
        return self.choice_space_of(self._role)

    def choice_space_of(self, role: str) -> spaces.Space[Any]:
        """The space of a choice of one role (a fresh copy)."""
        if self._asking:
            own = {phase: self._space_in(phase, role) for phase in self.phases if phase in self._choosing(role)}
            return next(iter(own.values())) if len(own) == 1 else spaces.Dict(own)
        space = self._choice_space()
        if isinstance(space, spaces.Box) and REPORT in self.phases:  # 0 and 1 are the answers there
            return spaces.Box(min(space.low[0], 0), max(space.high[0], 1), (1,), np.float64)
        return space

    def _choosing(self, role: str) -> frozenset[str]:
        """The phases in which players of a role choose."""
        others = {phase for phase, by_role in self._asking.items() if not by_role.keys() & {"", role}}
        return frozenset(self.phases) - {TALK, *PHASES[:2], *others}

    def _space_in(self, phase: str, role: str) -> spaces.Space[Any]:
        """The space of a role's choice in a phase, where phases have questions of their own."""
        by_role = self._asking.get(phase)
        if by_role is not None:
            return space_of(by_role.get("") or by_role[role])
        return spaces.Discrete(2) if phase == REPORT else self._choice_space()

    @property
    def questions(self) -> Mapping[str, Mapping[str, Question]]:
        """What is asked at most in each phase that has a question of its own: by role, or under "" of everybody."""
        return self._asking

    @property
    def phase_has_words(self) -> bool:
        """Whether the move of this phase is a text."""
        return any(isinstance(question, Words) for question in self._asking.get(self.phase, {}).values())

    @property
    def feature_bounds(self) -> tuple[Any, Any]:
        """Lower and upper bounds of the features; each a number or one per feature."""
        return self._feature_bounds

    def read_choice(self, raw: object, agent: str = "") -> Any:
        """One submitted choice, as `advance` takes it.

        Of options and numbers it is a number, and anything else becomes -1 (discrete) or NaN (continuous).
        """
        if agent == SEAT and self.regulator is not None:
            return self.regulator.reader.number(raw)
        if self._asking and isinstance(raw, Mapping):
            phases = self._choosing(agent.rpartition("_")[0] or self._role)
            if len(phases) > 1 and raw.keys() >= phases:
                raw = raw.get(self.phase)  # out of a point of the space of all phases
        return self._choices.number(raw)

    def blank_choices(self) -> NDArray[Any]:
        """An array for `advance`, one place per seat, in which every choice is missing."""
        return self._seat.append_to(self._choices.blank(), -1)

    def features(self) -> NDArray[np.float32]:
        """The numeric observations, (players, features), named by `feature_names`."""
        return self._features()

    def begin(self, seed: int | None = None, options: Mapping[str, Any] | None = None) -> None:
        """Start a new episode without building observations; the array form of `reset`.

        Args:
            seed: seeds the generator, as `numpy.random.default_rng(seed)`; `None` continues the running one.
            options: passed to the scenario, which ignores what it does not know.
        """
        if seed is not None:
            self._np_random, _ = seeding.np_random(seed)
        self._clear()
        self._started = True
        self.agents = self.possible_agents[:]
        self._key = self.conversation.key = key_of(self.np_random)
        self._begin(options or {})
        if self.record:
            self.emit("start", seed=seed, **self.opening())
        self._proceed()
        if self._watched:
            self._show()

    def advance(
        self,
        choices: NDArray[Any],
        messages: Mapping[int, object] | None = None,
        missing: Sequence[int] = (),
        paraphrases: Mapping[int, str] | None = None,
    ) -> None:
        """Play one step on arrays.

        Args:
            choices: one per player (those off turn are ignored): integers, floats for continuous choices, or objects
                where moves are more than a number.
            messages: what players on turn say, by index; in talk phases only.
            missing: players on turn who submitted nothing usable; they are flagged so.
            paraphrases: what players on turn say in other words of their own, by index; for `delivery_by: speaker`.

        Raises:
            ResetNeeded: before `begin` or `reset`, and after the end of an episode.
        """
        if not self._started or self.over:
            raise ResetNeeded("the episode is over or not begun; call reset() first")
        self._rewards[:] = 0.0
        self._flags = {}
        on_turn = self._who
        if self._notices:
            self._notices.mark_read(on_turn.tolist(), self._open_talk_number())
        if self.phase == TALK:
            self._take_paraphrases(on_turn.tolist(), paraphrases or {})
        done = True
        if self.regulator is not None:
            done = self._apply_ruling(self._regulate(self.regulator, choices, messages or {}, missing))
        elif self.phase == TALK:
            self._deliver(on_turn.tolist(), messages or {})
        else:
            usable = self._usable(choices, on_turn, missing)
            if self.record:
                self._record_choices(on_turn, usable)
            self._count(on_turn, usable)
        self.cycles += 1
        self._level += done
        self._masks = None
        if not done:
            pass  # the regulator has said who is on turn
        elif self._level < len(self._levels):
            self._who = self._levels[self._level]
        else:
            self._proceed()
        if not self.over and self.cycles == self._horizon:
            self._end(Over("max_cycles reached", truncated=True))
        if self.over:
            self.agents = []
        elif self._departed:
            names = self.possible_agents
            self.agents = [names[i] for i in self.live.tolist()]
        self._departed = False
        if self._watched:
            self._show()

    # For pictures.

    def opening(self) -> Event:
        """The `start` event of the running episode, without the seed."""
        return {
            "scenario": self.name,
            "settings": self.settings.to_json(),
            "agents": self.possible_agents[: self.n_players],
            **self._start_event(),
        }

    def recap(self) -> list[Event]:
        """Events that stand for what is still known of the past: for a picture of a game that was not recorded."""
        return []

    @abstractmethod
    def _show(self) -> None:
        """Show the situation; called after `begin` and `advance` while somebody watches."""

    @property
    def is_started(self) -> bool:
        """Whether there is an episode, running or over."""
        return self._started

    # Inside.

    def _proceed(self) -> None:
        """Go to the next talk or stage that has somebody on turn."""
        while True:
            stage: Stage | Over
            if self._orders and not self._seat.waiting:
                stage = Stage(TALK, self._open_talk())
            else:
                if self.phase == TALK:
                    self.conversation.close()
                stage = self._following_stage()
            if isinstance(stage, Over):
                self._end(stage)
                return
            self._tell_changes()
            self.conversation.now = self.round
            self.phase = stage.phase
            if stage.levels:
                break
        self._levels = [np.asarray(level, dtype=np.intp) for level in stage.levels]
        self._level = 0
        self._who = self._levels[0]
        self._masks = None

    def _tell_changes(self) -> None:
        """Record which changes hold, where others did before."""
        if not self.settings.changes:
            return
        holding = self.settings.in_force(self.round)
        if self.record and holding != self._told_changes:
            self.emit("change", changes=[change.to_json() for change in holding])
        self._told_changes = holding

    def _end(self, over: Over) -> None:
        self.over = True
        self._truncated = over.truncated
        self._masks = None
        if self.record:
            self.emit("end", reason=over.reason, truncated=over.truncated)

    # Snapshots.

    def save_episode(self) -> dict[str, Any]:
        """Everything about the running episode but its recorded events, as JSON-serialisable data."""
        _ = self.np_random  # made by now
        episode: dict[str, Any] = {
            "game": {name: pack_value(getattr(self, name)) for name in _KEPT},
            "key": [str(part) for part in self._key],
            "audience": pack_value(self._audience.heard_by),
            "conversation": self.conversation.get_state(),
            "own": self._snapshot(),
        }
        if self._paraphrases:  # of messages that a regulator holds
            episode["paraphrases"] = pack_value(self._paraphrases)
        if self._unreached:
            episode["unreached"] = pack_value(self._unreached)
        if self._stated:  # of choices that a regulator holds
            episode["stated"] = pack_value(self._stated)
        if self._notices is not None:
            episode["notices"] = self._notices.get_state()
        if self.regulator is not None:
            episode["regulator"] = {**self.regulator.get_state(), "who": [int(i) for i in self._who]}
        return {**episode, **self._save_mechanism()}

    def load_episode(self, state: Mapping[str, Any]) -> None:
        """Continue from what `save_episode` gave."""
        self._clear()
        for name in _KEPT:
            setattr(self, name, unpack_value(state["game"][name]))
        self._audience = Audience(unpack_value(state["audience"]))
        self._all_alive = bool(self._alive.all())
        self._who = self._levels[self._level] if self._level < len(self._levels) else self._everyone[:0]
        self.conversation.set_state(state["conversation"])
        self.conversation.now = self.round
        first, second = state.get("key", (0, 0))
        self._key = self.conversation.key = int(first), int(second)
        names = self.possible_agents
        self.agents = [] if self.over else [names[i] for i in self.live.tolist()]
        self._started = True
        self._told_changes = self.settings.in_force(self.round)
        self._load_mechanism(state)
        self._restore(state["own"])
        if "paraphrases" in state:
            self._paraphrases = unpack_value(state["paraphrases"])
        self._stated = unpack_value(state.get("stated", pack_value({})))
        self._unreached = unpack_value(state.get("unreached", pack_value({})))
        if self._notices is not None:
            self._notices.set_state(state["notices"])
        if self.regulator is not None:
            self.regulator.set_state(state["regulator"])
            self._who = np.asarray(state["regulator"]["who"], dtype=np.intp)
            self._ordered(self.regulator.order)
