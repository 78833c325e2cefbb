"""What seats submit in a step, and how it comes to count: at once, or when a regulator lets it go."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from llm_coop_envs.core.talking import Talking
from llm_coop_envs.interface.actions import ILLEGAL_CHOICE, MISSING_ACTION, ChoiceReader, Indices, MoveReader
from llm_coop_envs.interface.hooks import TALK, Hooks, Over, Stage
from llm_coop_envs.interface.moves import Shares
from llm_coop_envs.interface.question import Question
from llm_coop_envs.treatments.regulator import ORDER, PHASES, REPORT, EmptySeat, Regulator
from llm_coop_envs.treatments.ruling import Release, Ruling


class Regulated(Talking):
    """The part of `ArrayEnv` that reads choices, and that hands submissions to a regulator and applies its rulings."""

    phases: tuple[str, ...]
    ruled_phases: ClassVar[tuple[str, ...]] = ()  # with which regulators and mechanisms deal; empty for all
    over: bool
    regulator: Regulator | None
    _seat: EmptySeat
    _readers: dict[str, ChoiceReader | MoveReader]
    _common_reader: ChoiceReader | None
    _stated: dict[int, dict[str, int]]
    _masks: NDArray[np.int8] | None
    _who: Indices
    _rewards: NDArray[np.float64]
    _state_bounds: tuple[Any, Any]

    def _seat_regulator(self) -> None:
        """Make the regulator's seat, if the settings have one, and add its phases."""
        settings = self.settings
        self.regulator = None
        self._seat = EmptySeat()
        if settings.regulator is not None:
            powers, names = settings.regulator, self._player_names
            self._seat = self.regulator = Regulator(
                powers,
                names,
                message_length=settings.message_length,
                talked=settings.ever_talks,
                discrete=self._common_reader is None or self._common_reader.discrete,
                ruled=self.ruled_phases,
            )
            if self._common_reader is None:
                self._readers[REPORT] = ChoiceReader(spaces.Discrete(2), self.n_players)
            for order in powers.orders:
                settings.check_order(order)
            self.phases = (*self.phases, *self.regulator.phases)

    @property
    def _choices(self) -> ChoiceReader | MoveReader:
        """The reader of this phase's choices."""
        return self._reader_of(self.phase)

    def _reader_of(self, phase: str) -> ChoiceReader | MoveReader:
        """The reader of a phase's choices; in phases without any, that of some other phase."""
        if not self._readers and self._common_reader is not None:
            return self._common_reader
        return self._readers.get(phase) or self._common_reader or next(iter(self._readers.values()))

    @property
    def _required_regulator(self) -> Regulator:
        assert self.regulator is not None, "asked only where there is a regulator"
        return self.regulator

    def masks(self) -> NDArray[np.int8] | None:
        """Legal choices, (players, choices); `None` for continuous choices. Read-only."""
        if self._masks is None:
            deciding = not self.over and self.phase not in (TALK, *PHASES[:2])
            legal = None
            if deciding:
                legal = self._choices.first(2) if self.phase == REPORT else self._legal_choices()
            self._masks = self._choices.masks(
                legal,
                self._who if deciding else self._who[:0],
                everyone=len(self._who) == self.n_players,
            )
        return self._masks

    def regulator_features(self) -> NDArray[np.float32]:
        """The regulator's numeric observation; see `Regulator.features`."""
        return self._required_regulator.features(self._public_state())

    def regulator_bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Lower and upper bounds of the regulator's features."""
        low, high = self._state_bounds if self._has_own_state else (np.zeros(0), np.zeros(0))
        return self._required_regulator.bounds(low, high)

    @property
    def _has_own_state(self) -> bool:
        return type(self)._state_vector is not Hooks._state_vector

    def _public_state(self) -> NDArray[np.float64]:
        """What a regulator sees in numbers: the scenario's state; nothing where that is everybody's features."""
        return self._state_vector() if self._has_own_state else np.zeros(0)

    def _public_picture(self) -> str:
        """What a regulator sees in words: the scenario's picture; nothing where that is everybody's features."""
        return "" if type(self)._picture is Hooks._picture else self._picture()

    def regulator_mask(self) -> NDArray[np.int8]:
        """The regulator's legal answers, (choices,)."""
        return self._required_regulator.mask(over=self.over)

    def _usable(self, choices: NDArray[Any], on_turn: Indices, missing: Sequence[int]) -> NDArray[Any]:
        """The choices of the players on turn; one that cannot be used is replaced and flagged."""
        submitted = choices if on_turn is self._everyone and len(choices) == self.n_players else choices[on_turn]
        absent, reader = set(missing), self._choices
        question, stand_in, fallback = self._answering()
        if isinstance(reader, MoveReader):
            usable, bad = reader.settle(submitted, on_turn, absent, question, stand_in)
            if isinstance(self._common_question, Shares):
                usable = self._draw(on_turn, usable)
        else:
            usable, bad = reader.settle(submitted, on_turn, self.masks(), fallback, self._clean)
        if bad is not None:
            for i in on_turn[bad].tolist():
                self._flags[i] = (MISSING_ACTION if i in absent else ILLEGAL_CHOICE,)
        return usable

    def _answering(self) -> tuple[Callable[[int], Question], Callable[[int], Any], Callable[[Indices], NDArray[Any]]]:
        """What is asked in this phase, and what stands in for a move or for choices that cannot be used."""
        return self._question, self._stand_in, self._fallback

    def _legal_choices(self) -> NDArray[np.int8] | None:
        """The legal choices of this phase."""
        return self._legal()

    def _count(self, who: Indices, choices: NDArray[Any]) -> None:
        """Let legal choices count."""
        self._apply(self.phase, who, choices)

    def _draw(self, players: Indices, stated: NDArray[Any]) -> NDArray[np.int64]:
        """Draw an option for each player by the shares that it stated, which stand beside the choice in its event."""
        drawn = np.zeros(len(players), dtype=np.int64)
        for row, i in enumerate(players.tolist()):
            question = self._answering()[0](i)
            assert isinstance(question, Shares), "the question of such a phase is of its kind"
            drawn[row] = question.draw(stated[row], self._share_generator(i))
            if self.record:
                self._stated[i] = stated[row]
        return drawn

    def _share_generator(self, index: int) -> np.random.Generator:
        """What an option is drawn with by the shares that a player has stated."""
        return self.np_random

    def _record_choices(self, players: Indices, usable: NDArray[Any]) -> None:
        names = self.possible_agents
        for i, value in zip(players.tolist(), usable.tolist(), strict=True):
            stated = {"stated": self._stated.pop(i)} if i in self._stated else {}
            flags = list(self._flags.get(i, ()))
            self.emit("choice", agent=names[i], phase=self.phase, choice=value, **stated, flags=flags)

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
            return regulator.answer(choices, missing, self.nature)
        usable = self._usable(choices, self._who, missing).tolist()
        questions = [self._question(i) for i in on_turn]
        return regulator.hold_choices(self.phase, on_turn, usable, self._flags, questions)

    def _apply_ruling(self, ruling: Ruling) -> bool:
        """Carry out what the regulator decided. Returns whether the level that began the step is over."""
        regulator = self._required_regulator
        self._flags.update(ruling.flags)
        if self.phase == ORDER:
            self._ordered(regulator.order)
        if self.record:
            for event in ruling.events:
                self.emit("regulation", **event)
        if ruling.turn is not None:
            self.phase, seats = ruling.turn
            self._who = np.asarray(seats, dtype=np.intp)
            return False
        if ruling.release is not None:
            self._release(regulator, ruling.release)
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
        choices = [
            self._instead(i, release.submitted[i]) if i in release.vetoed else release.submitted[i]
            for i in release.players
        ]
        is_number = not isinstance(self._choices, MoveReader) or isinstance(self._common_question, Shares)
        usable = np.asarray(choices) if is_number else np.fromiter(choices, dtype=object, count=len(choices))
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
