"""An environment on arrays: clock, turns, talk, flags and recording, with the hooks that a scenario fills in.

Players are indices 0..n-1. Nothing here knows observation dictionaries or texts: `core.env.ScenarioEnv` derives from
`ArrayEnv` and adds those.
"""

from __future__ import annotations

import functools
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from numpy.typing import NDArray

from llm_coop_envs.core.actions import ILLEGAL_CHOICE, MISSING_ACTION, ChoiceReader, Indices
from llm_coop_envs.core.changes import Change, check_patterns
from llm_coop_envs.core.channels import Audience, Conversation
from llm_coop_envs.core.delivery import DELIVER, check_delivery
from llm_coop_envs.core.draws import Key, key_of
from llm_coop_envs.core.hooks import TALK as TALK
from llm_coop_envs.core.hooks import Event, Hooks, Over, Stage
from llm_coop_envs.core.listeners import MENTION, News, Notices
from llm_coop_envs.core.messages import Message
from llm_coop_envs.core.packing import packed, unpacked
from llm_coop_envs.core.perception import Perception
from llm_coop_envs.core.presence import leaving_rounds
from llm_coop_envs.core.regulator import ORDER, PHASES, REPORT, SEAT, EmptySeat, Regulator, Release, Ruling
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import ResetNeeded

#: The attributes of a running episode that a snapshot keeps as they are.
_KEPT = (
    *("cycles", "round", "phase", "over", "_truncated", "_np_random", "_rewards", "_alive", "_flags"),
    *("_levels", "_level", "_orders"),
)


class ArrayEnv(Perception):
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
        self.n_players = 0
        self._setup()
        if type(self)._state_vector is Hooks._state_vector:
            ends = [np.broadcast_to(bound, len(self.feature_names)) for bound in self._feature_bounds]
            self._state_bounds = (np.tile(ends[0], self.n_players), np.tile(ends[1], self.n_players))
        self.possible_agents = self._player_names
        self._choices = ChoiceReader(self._choice_space(), self.n_players)
        self.regulator = self._make_regulator(settings)
        self._seat = EmptySeat() if self.regulator is None else self.regulator
        for order in self._seat.orders[1:]:
            settings.check_order(order)
        self.phases = (*self.phases, *self._seat.phases)
        for k, change in enumerate(settings.changes):
            check_patterns(f"changes[{k}].players", change.players, self.possible_agents)
        for k, listener in enumerate(settings.listeners):
            check_patterns(f"listeners[{k}].players", listener.players, self.possible_agents)
        _ = self._without  # who cannot leave as wanted is said now
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

    def _make_regulator(self, settings: ScenarioSettings) -> Regulator | None:
        if settings.regulator is None:
            return None
        length, discrete = settings.message_length, self._choices.discrete
        return Regulator(settings.regulator, self._player_names, message_length=length, discrete=discrete)

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
    def choice_space(self) -> spaces.Discrete | spaces.Box:
        """The space of one player's choice (a fresh copy)."""
        space = self._choice_space()
        if isinstance(space, spaces.Box) and REPORT in self.phases:  # 0 and 1 are the answers there
            return spaces.Box(min(space.low[0], 0), max(space.high[0], 1), (1,), np.float64)
        return space

    @property
    def feature_bounds(self) -> tuple[Any, Any]:
        """Lower and upper bounds of the features; each a number or one per feature."""
        return self._feature_bounds

    def read_choice(self, raw: object, agent: str = "") -> float | int:
        """One submitted choice as a number; anything else becomes -1 (discrete) or NaN (continuous)."""
        if agent == SEAT and self.regulator is not None:
            return self.regulator.reader.number(raw)
        return self._choices.number(raw)

    def blank_choices(self) -> NDArray[Any]:
        """An array for `advance`, one place per seat, in which every choice is missing."""
        return self._seat.append_to(self._choices.blank(), -1)

    def features(self) -> NDArray[np.float32]:
        """The numeric observations, (players, features), named by `feature_names`."""
        return self._features()

    def masks(self) -> NDArray[np.int8] | None:
        """Legal choices, (players, choices); `None` for continuous choices. Read-only."""
        if self._masks is None:
            deciding = not self.over and self.phase not in (TALK, *PHASES[:2])
            legal = None
            if deciding:
                legal = self._legal() if self.phase != REPORT else self._choices.first(2)
            self._masks = self._choices.masks(
                legal,
                self._who if deciding else self._who[:0],
                everyone=len(self._who) == self.n_players,
            )
        return self._masks

    def regulator_features(self) -> NDArray[np.float32]:
        """The regulator's numeric observation; see `Regulator.features`."""
        assert self.regulator is not None, "asked only where there is a regulator"
        return self.regulator.features(self._state_vector())

    def regulator_bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Lower and upper bounds of the regulator's features."""
        assert self.regulator is not None, "asked only where there is a regulator"
        return self.regulator.bounds(*self._state_bounds)

    def regulator_mask(self) -> NDArray[np.int8]:
        """The regulator's legal answers, (choices,)."""
        assert self.regulator is not None, "asked only where there is a regulator"
        return self.regulator.mask(over=self.over)

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
    ) -> None:
        """Play one step on arrays.

        Args:
            choices: one per player (those off turn are ignored): integers, or floats for continuous choices.
            messages: what players on turn say, by index; in talk phases only.
            missing: players on turn who submitted nothing usable; they are flagged so.

        Raises:
            ResetNeeded: before `begin` or `reset`, and after the end of an episode.
        """
        if not self._started or self.over:
            raise ResetNeeded("the episode is over or not begun; call reset() first")
        self._rewards[:] = 0.0
        self._flags = {}
        on_turn = self._who
        if self._notices:
            self._notices.told(on_turn.tolist(), self._open_talk_number())
        done = True
        if self.regulator is not None:
            done = self._apply_ruling(self._regulate(self.regulator, choices, messages or {}, missing))
        elif self.phase == TALK:
            self._deliver(on_turn.tolist(), messages or {})
        else:
            usable = self._usable(choices, on_turn, missing)
            if self.record:
                self._record_choices(on_turn, usable)
            self._apply(self.phase, on_turn, usable)
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
        """What the `start` event of the running episode says, the seed apart."""
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

    # For the scenarios.

    def emit(self, kind: str, **data: Any) -> None:
        """Record an event."""
        self.events.append({"type": kind, "step": self.cycles, "round": self.round, **data})

    def happened(
        self, what: str, *, number: float = 0.0, name: str = "", concerned: Iterable[int] | None = None
    ) -> None:
        """Tell those who listen that something happened.

        Args:
            what: one of the settings' `happenings`.
            number: its number.
            name: whom or what it is about.
            concerned: whom it concerns; by default everybody who is told what others do.
        """
        if self._notices is None:
            return
        if concerned is None and self._hides:
            concerned = np.flatnonzero(~self.blind).tolist()
        if self._without is not None:
            meant = range(self.n_players) if concerned is None else concerned
            concerned = [i for i in meant if self._without[i] > self.round]
        told = self._notices.happened(News(what, number, name, self._open_talk_number()), concerned)
        if self.record and told:
            self.emit("news", what=what, number=number, name=name, agents=[self.possible_agents[i] for i in told])

    def leave(self, who: Indices) -> None:
        """Take players out of the game for good."""
        self._alive[who] = False
        self._all_alive = False
        self._departed = True

    @functools.cached_property
    def _without(self) -> NDArray[np.int64] | None:
        """The first round without each player; `None` if nobody ever leaves by a change."""
        return leaving_rounds(self.settings, self._player_names)

    @property
    def _player_names(self) -> list[str]:
        return [f"{self._role}_{i}" for i in range(self.n_players)]

    def present_in(self, round_: int) -> Indices:
        """The players whom no change has taken out of the game by a round."""
        return self._everyone if self._without is None else np.flatnonzero(self._without > round_)

    def depart(self) -> Indices:
        """Take out of the game who is not present from this round on; who that is, of those still playing."""
        if self._without is None:
            return self._everyone[:0]
        gone = np.flatnonzero(self._alive & (self._without <= self.round))
        if len(gone):
            self.leave(gone)
        return gone

    @property
    def is_started(self) -> bool:
        """Whether there is an episode, running or over."""
        return self._started

    def _talk_stage(self, orders: Sequence[Sequence[int]], audience: Audience) -> Stage:
        """A talk phase: each order is one talk, in which everyone in it speaks once; none where talk has ended."""
        self._orders = [list(order) for order in orders] if self.settings.talks_in(self.round) else []
        if self.settings.changes:
            self._orders = [[i for i in order if self.settings_of(i).talk] for order in self._orders]
        self._audience = audience
        return Stage(TALK, self._open_talk())

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

    def _following_stage(self) -> Stage | Over:
        """The scenario's next stage; with a regulator an order comes before the first one of a round."""
        if self.regulator is None:
            return self._next_stage()
        if self.regulator.waiting:
            stage = self.regulator.release_stage()
            if stage.phase == TALK and self.regulator.orders_silence:
                self._orders, stage = [], Stage(TALK, [])
            return stage
        following = self.regulator.hold_stage(self._next_stage(), self.round)
        if isinstance(following, Stage) and following.phase == ORDER:
            self._ordered("")
        return following

    # With a regulator.

    def _regulate(
        self, regulator: Regulator, choices: NDArray[Any], messages: Mapping[int, object], missing: Sequence[int]
    ) -> Ruling:
        """Hand the submissions of this step to the regulator."""
        on_turn = self._who.tolist()
        if self.phase == TALK:
            return regulator.hold_messages(on_turn, messages)
        if self.phase == REPORT:
            return regulator.take_reports(on_turn, choices, missing)
        if self.phase in PHASES:
            return regulator.answer(choices, missing, self.np_random)
        usable = self._usable(choices, self._who, missing).tolist()
        questions = [self._question(i) for i in on_turn]
        return regulator.hold_choices(self.phase, on_turn, usable, self._flags, questions)

    def _apply_ruling(self, ruling: Ruling) -> bool:
        """Carry out what the regulator decided. Returns whether the level that began the step is over."""
        assert self.regulator is not None, "no regulator decides"
        self._flags.update(ruling.flags)
        if self.phase == ORDER:
            self._ordered(self.regulator.order)
        if self.record:
            for event in ruling.events:
                self.emit("regulation", **event)
        if ruling.turn is not None:
            self.phase, seats = ruling.turn
            self._who = np.asarray(seats, dtype=np.intp)
            return False
        if ruling.release is not None:
            self._release(self.regulator, ruling.release)
        return True

    def _release(self, regulator: Regulator, release: Release) -> None:
        """Let submissions be heard or count that the regulator has not stopped."""
        self.phase, flags = release.phase, dict(self._flags)
        if self.phase == TALK:
            spoken = {
                i: release.submitted[i] for i in release.players if i in release.submitted and i not in release.vetoed
            }
            self._deliver(list(spoken), spoken)
            self._flags = flags  # players who spoke in an earlier step got their flags then
            return
        usable = np.asarray(
            [
                self._instead(i, release.submitted[i]) if i in release.vetoed else release.submitted[i]
                for i in release.players
            ]
        )
        players = np.asarray(release.players, dtype=np.intp)
        if self.record:
            self._flags.update({i: replaced for i, replaced in release.flags.items() if replaced})
            self._record_choices(players, usable)
            self._flags = flags
        self._apply(release.phase, players, usable)
        for i, fine in release.fines.items():
            self._rewards[i] -= fine
        if regulator.settings.reward == "welfare":
            regulator.earn(self._welfare())

    def _tell_changes(self) -> None:
        """Record which changes hold, where others did before."""
        if not self.settings.changes:
            return
        holding = self.settings.in_force(self.round)
        if self.record and holding != self._told_changes:
            self.emit("change", changes=[change.to_json() for change in holding])
        self._told_changes = holding

    def _open_talk_number(self) -> int:
        """Which talk is going on; -1: none."""
        return self.conversation.number if self.phase == TALK else -1

    def _open_talk(self) -> list[list[int]]:
        if not self._orders:
            return []
        together = self.settings.talk_mode == "simultaneous"
        return self.conversation.open(self._orders.pop(0), self._audience, together=together, round_=self.round)

    def _end(self, over: Over) -> None:
        self.over = True
        self._truncated = over.truncated
        self._masks = None
        if self.record:
            self.emit("end", reason=over.reason, truncated=over.truncated)

    def _deliver(self, speakers: list[int], messages: Mapping[int, object]) -> None:
        names = self.possible_agents
        gone: frozenset[int] = frozenset()
        if self._treats and self._without is not None:
            gone = frozenset(np.flatnonzero(self._without <= self.round).tolist())
        for i in speakers:
            treated = self.settings_of(i) if self._treats else None
            message, flags = self.conversation.say(i, messages.get(i), treated, players=self.n_players, gone=gone)
            if flags:
                self._flags[i] = flags
            # What is heard later, or otherwise than it was said, is nobody's news.
            if self._notices is not None and message is not None and message.delivered is None:
                named = self._notices.mentioned(message.text, i)
                if named:
                    self.happened(MENTION, name=names[i], concerned=named)
            if self.record and message is not None:
                hearers = None if message.hearers is None else [names[k] for k in message.hearers]
                self.emit(
                    "message",
                    agent=names[i],
                    text=message.text,
                    talk=message.sequence,
                    position=message.position,
                    hearers=hearers,
                    flags=list(flags),
                    **self._delivered(message),
                )

    def _delivered(self, message: Message) -> dict[str, Any]:
        """What a message's event says of what was heard, where that is not what was said."""
        found = message.delivered
        if found is None:
            return {}
        told: dict[str, Any] = {"treatment": found.treatment, "text": found.text}
        if found.round is not None:
            told["round"] = found.round
        for name in ("speaker", "instead"):
            who = getattr(found, name)
            if who is not None:
                told[name] = self.possible_agents[who]
        return {"delivered": told}

    def _usable(self, choices: NDArray[Any], who: Indices, missing: Sequence[int]) -> NDArray[Any]:
        """What those on turn chose; what cannot be used is replaced and flagged."""
        chosen = choices if who is self._everyone and len(choices) == self.n_players else choices[who]
        usable, bad = self._choices.settle(chosen, who, self.masks(), self._fallback, self._clean)
        if bad is not None:
            absent = set(missing)
            for i in who[bad].tolist():
                self._flags[i] = (MISSING_ACTION if i in absent else ILLEGAL_CHOICE,)
        return usable

    def _record_choices(self, who: Indices, usable: NDArray[Any]) -> None:
        names = self.possible_agents
        for i, value in zip(who.tolist(), usable.tolist(), strict=True):
            self.emit("choice", agent=names[i], phase=self.phase, choice=value, flags=list(self._flags.get(i, ())))

    # Snapshots.

    def save_episode(self) -> dict[str, Any]:
        """Everything about the running episode but its recorded events, as JSON-serialisable data."""
        _ = self.np_random  # made by now
        episode: dict[str, Any] = {
            "game": {name: packed(getattr(self, name)) for name in _KEPT},
            "key": [str(part) for part in self._key],
            "audience": packed(self._audience.heard_by),
            "conversation": self.conversation.get_state(),
            "own": self._snapshot(),
        }
        if self._notices is not None:
            episode["notices"] = self._notices.get_state()
        if self.regulator is not None:
            episode["regulator"] = {**self.regulator.get_state(), "who": [int(i) for i in self._who]}
        return episode

    def load_episode(self, state: Mapping[str, Any]) -> None:
        """Continue from what `save_episode` gave."""
        self._clear()
        for name in _KEPT:
            setattr(self, name, unpacked(state["game"][name]))
        self._audience = Audience(unpacked(state["audience"]))
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
        self._restore(state["own"])
        if self._notices is not None:
            self._notices.set_state(state["notices"])
        if self.regulator is not None:
            self.regulator.set_state(state["regulator"])
            self._who = np.asarray(state["regulator"]["who"], dtype=np.intp)
            self._ordered(self.regulator.order)
