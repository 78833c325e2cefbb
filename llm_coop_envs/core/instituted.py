"""Mechanisms in a running episode: their phases before the act phase, and what they do to choices and payoffs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.regulated import Regulated
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.actions import Indices
from llm_coop_envs.interface.hooks import Over, Stage
from llm_coop_envs.interface.moves import Shares
from llm_coop_envs.interface.question import Question
from llm_coop_envs.mechanisms.institution import Institution
from llm_coop_envs.mechanisms.matching import FIXED, RANDOM, Groups, check_groups, match_players
from llm_coop_envs.mechanisms.records import meetings
from llm_coop_envs.mechanisms.settings import (
    DELEGATE,
    HIGHER,
    MECHANISM_PHASES,
    REPETITION,
    SIGN,
    VOTE,
    MechanismSettings,
)
from llm_coop_envs.mechanisms.slots import MechanismSlots, Offer
from llm_coop_envs.mechanisms.stage_game import StageGame, transfers
from llm_coop_envs.treatments.changes import check_patterns
from llm_coop_envs.util.draws import Key, nature_generator
from llm_coop_envs.util.packing import pack_value, unpack_value

#: What a snapshot keeps as it is of a mechanism.
_KEPT = ("_phases_due", "_chosen", "_got", "_meetings")


class Instituted(Regulated):
    """The part of `ArrayEnv` that puts a mechanism around the act phase, and matches players in groups."""

    name: str
    #: The elections of each group; none where nothing is elected.
    _institutions: list[Institution]
    #: The scenario's own phases with choices.
    _acting: frozenset[str]
    _mechanism: MechanismSettings | None
    #: What a round of the scenario is as a game; `None` without a mechanism that needs to know.
    _stage_game: StageGame | None
    #: The act phase that a mechanism has begun, with the levels that have yet to choose.
    _held: Stage | None
    #: The mechanism's phases that come before it, and have yet to.
    _phases_due: list[str]
    #: What everybody has chosen in the act phase so far, and has got for it.
    _chosen: dict[int, Any]
    _got: NDArray[np.float64]
    _key: Key
    #: The groups that were matched last, after their key.
    _matched: tuple[tuple[Any, ...], Groups]
    #: (groups, choices, payoffs) of each round, for records.
    _meetings: list[list[Any]]

    def _establish(self) -> None:
        """Set up the settings' mechanism, with its phases.

        Raises:
            SettingsError: the scenario cannot carry it.
        """
        settings = self.settings
        check_groups(self.n_players, settings.group_size, settings.matching)
        mechanism = self._mechanism = settings.mechanism
        self._institutions, self._stage_game = [], None
        # The scenarios' own words say how a game is repeated, but not all of them know of a chance of another round.
        self._tells_of_going_on = "continuation" not in settings.again
        is_told = self._tells_of_going_on and mechanism is not None and mechanism.continuation is not None
        self._has_mechanism_words = mechanism is not None and (mechanism.kind != REPETITION or is_told)
        if mechanism is None or mechanism.kind == REPETITION:
            return
        self._stage_game = settings.stage_game()
        if self._stage_game is None:
            reason = f"is not for {self.name}, which does not say what its choices are worth (stage_game)"
            raise SettingsError("mechanism", mechanism.kind, f"{reason}; leave it out")
        if settings.regulator is not None or "present" in {name for c in settings.changes for name in c.settings}:
            raise SettingsError("mechanism", mechanism.kind, "goes neither with a regulator nor with players who leave")
        if self._common_reader is not None and not self._common_reader.discrete:
            reason = "is for choices that can be listed, such as prices: grid; leave it out"
            raise SettingsError("mechanism", mechanism.kind, reason)
        if len(self._acting) > 1:
            reason = f"deals with one phase, and {self.name} acts in {', '.join(sorted(self._acting))} (ruled_phases)"
            raise SettingsError("mechanism", mechanism.kind, reason)
        if mechanism.is_elected:
            names, size = self._player_names, settings.group_size or self.n_players
            for who in ("proposers", "voters"):
                check_patterns(f"mechanism.{who}", getattr(mechanism, who), names)
            questions = [question for by_role in self._asking.values() for question in by_role.values()]
            stated = any(isinstance(question, Shares) for question in questions)
            seats = [names[first : first + size] for first in range(0, self.n_players, size)]
            self._institutions = [Institution(mechanism, self._stage_game, own, stated=stated) for own in seats]
            for phase, question in self._institutions[0].questions.items():
                self._ask(phase, question)

    def _restart_mechanism(self) -> None:
        """Begin an episode without proposals and records."""
        self._held, self._phases_due, self._chosen, self._got = None, [], {}, np.zeros(self.n_players)
        self._meetings, self._matched = [], ((), ())
        for institution in self._institutions:
            institution.clear()

    @abstractmethod
    def _ask(self, phase: str, question: Question | Mapping[str, Question]) -> None:
        """Let a phase have a question of its own, or one for each role; a phase that is new comes last."""

    # Matching.

    @property
    def groups(self) -> Groups:
        """Who plays with whom in this round, each group in the order of the places in its game."""
        if self._matched[0] != (self._key, self.round):
            self._matched = (self._key, self.round), self.groups_in(self.round)
        return self._matched[1]

    def groups_in(self, round_: int) -> Groups:
        """The groups of a round."""
        settings = self.settings
        size, number = settings.group_size or self.n_players, max(0, round_ - settings.first_round)
        # Most games match nobody, and a generator costs as much as a text.
        drawn = nature_generator(self._key, round_, "matching") if settings.matching == RANDOM else None
        return match_players(self.n_players, size, settings.matching, number, drawn)

    def group_of(self, index: int) -> tuple[int, ...]:
        """The players with whom a player plays in this round, itself among them."""
        return next(group for group in self.groups if index in group)

    def _institution_of(self, index: int) -> Institution | None:
        """The elections in which a player takes part in this round."""
        return next((own for own, group in self._elections() if index in group), None)

    def _elections(self) -> Iterator[tuple[Institution, tuple[int, ...]]]:
        return zip(self._institutions, self.groups, strict=True) if self._institutions else iter(())

    # Phases.

    @property
    def _is_mechanisms(self) -> bool:
        """Whether this phase is one of the mechanism's."""
        return bool(self._institutions) and self.phase in self._institutions[0].questions

    def _following_stage(self) -> Stage | Over:
        """The next stage; before an act phase come those of the mechanism."""
        if self._stage_game is None:
            return super()._following_stage()
        while True:
            if self._held is None:
                stage = super()._following_stage()
                if isinstance(stage, Over) or stage.phase not in self._acting or not stage.levels:
                    return stage
                self._held = stage
                self._open_elections()
            while self._phases_due:
                phase = self._phases_due.pop(0)
                asked = [group[place] for own, group in self._elections() for place in own.asked_in(phase)]
                if asked:
                    return Stage(phase, [sorted(asked)])
            delegates, level = self._delegated_choices(), self._held.levels[0]
            choosing = [i for i in level if i not in delegates] if delegates else level
            if len(choosing):
                return Stage(self._held.phase, [choosing])
            self.phase = self._held.phase
            self._count(np.arange(0), np.arange(0))

    def _open_elections(self) -> None:
        """Begin a round: say which phases come before the act phase."""
        self._chosen, self._got = {}, np.zeros(self.n_players)
        if not self._institutions or self._mechanism is None:
            return
        for own, group in self._elections():
            own.open_round([self._player_names[i] for i in group])
        number, period = self.round - self.settings.first_round, self._mechanism.period
        is_due = number == 0 or (period and number % period == 0)
        self._phases_due = [phase for phase in self._institutions[0].questions if is_due or phase == DELEGATE]

    def _delegated_choices(self) -> dict[int, int]:
        """What mediators choose in this round, by whoever has delegated."""
        return {group[place]: own.delegated_choice for own, group in self._elections() for place in own.delegates}

    def _answering(self) -> tuple[Callable[[int], Question], Callable[[int], Any], Callable[[Indices], NDArray[Any]]]:
        if not self._is_mechanisms:
            return super()._answering()

        def question(index: int) -> Question:
            institution = self._institution_of(index)
            assert institution is not None, "everybody is in a group"
            return institution.question(self.phase)

        return question, lambda i: question(i).stand_in(), lambda who: np.zeros(len(who), dtype=np.int64)

    def _legal_choices(self) -> NDArray[np.int8] | None:
        return None if self._is_mechanisms else super()._legal_choices()

    def _share_generator(self, index: int) -> np.random.Generator:
        """As ever; with elections in several groups none moves the draws of another."""
        return self.np_random if len(self._institutions) < 2 else self.nature(f"{self.phase} of {index}")

    def _count(self, who: Indices, choices: NDArray[Any]) -> None:
        """Let legal choices count: as the mechanism's, or as the scenario's with what the mechanism makes of them."""
        if self._is_mechanisms:
            self._hold_elections(dict(zip(who.tolist(), choices.tolist(), strict=True)))
            return
        if self.record and self.settings.matching == RANDOM and not self._chosen:
            self.emit("nature", purpose="matching", drawn=[list(group) for group in self.groups])
        if self._held is None:
            super()._count(who, choices)
            return
        # A million players without a mechanism never get here.
        moves = dict(zip(who.tolist(), choices.tolist(), strict=True))
        level, *following = self._held.levels
        delegates = self._delegated_choices()
        if delegates:
            moves = {int(i): delegates[i] if i in delegates else moves[i] for i in level}
            who, choices = np.array(list(moves), dtype=np.intp), np.array(list(moves.values()))
        before = self._rewards.copy()
        super()._count(who, choices)
        self._chosen |= moves
        self._got += self._rewards - before
        self._held = Stage(self._held.phase, following) if following else None
        if not following:
            self._conclude([self._chosen[i] for i in range(self.n_players)])

    def _conclude(self, choices: list[Any]) -> None:
        """Do what a mechanism does once all have chosen."""
        if not self._institutions:
            past = [[list(group) for group in self.groups], choices, self._got.tolist()]
            self._meetings = [*self._meetings, past]
        for institution, group in self._elections():
            if institution.is_binding:
                assert institution.elected_terms is not None, "a contract was signed"
                payments = transfers([choices[i] for i in group], institution.elected_terms)
                self._rewards[list(group)] += payments
                self._tell_of(group, payments=payments)
            if self.settings.matching != FIXED:  # others take these places, and do not learn what was elected here
                institution.clear()

    def _hold_elections(self, moves: Mapping[int, Any]) -> None:
        """Let moves in a phase of the mechanism count, in each group by itself."""
        for number, (institution, group) in enumerate(self._elections()):
            own = {place: moves[i] for place, i in enumerate(group) if i in moves}
            if own:
                drawn = self.nature(f"{self.phase} {number}" if number else self.phase)
                self._tell_of(group, **institution.take(self.phase, own, drawn))

    def _tell_of(self, group: tuple[int, ...], **outcome: Any) -> None:
        """Record what a mechanism did, and where there are several groups, in which."""
        if self.record and outcome:
            agents = {"agents": [self._player_names[i] for i in group]} if len(self._institutions) > 1 else {}
            self.emit("mechanism", phase=self.phase, **agents, **outcome)

    # What players know.

    def _mechanism_slots(self, index: int, question: Question | None) -> MechanismSlots:
        """What a player may know of the mechanism."""
        mechanism, game, institution = self._mechanism, self._stage_game, self._institution_of(index)
        assert mechanism is not None, "asked only where there is a mechanism with words"
        facts: dict[str, Any] = {}
        if mechanism.is_played_again and self._tells_of_going_on:
            facts["continuation"] = mechanism.continuation
        if institution is not None:
            facts["purse"] = institution.purse if SIGN in institution.questions else 0.0
            if self.phase == VOTE:
                facts["offers"] = tuple(self._offer(institution, i) for i in institution.proposals)
            elif institution.elected is not None:
                facts |= {"elected": self._offer(institution, institution.elected), "binding": institution.is_binding}
                if SIGN in institution.questions and self.phase != SIGN:
                    facts["unsigned"] = tuple(
                        name for place, name in enumerate(institution.names) if place not in institution.signers
                    )
        elif game is not None:
            depth = mechanism.depth if mechanism.kind == HIGHER else 1
            names, seen = self.possible_agents, {"remembered": mechanism.remembered, "depth": depth}
            others = [i for i in self.group_of(index) if i != index]
            facts["records"] = tuple((names[i], meetings(self._meetings, names, i, **seen)) for i in others)
        return MechanismSlots(
            kind=mechanism.kind,
            actions=game.actions if game is not None else (),
            amounts=game.amounts if game is not None else (),
            phase=self.phase,
            question=question if self.phase in MECHANISM_PHASES else None,
            **facts,
        )

    def _offer(self, institution: Institution, proposer: int) -> Offer:
        proposal = institution.proposals[proposer]
        return Offer(by=institution.names[proposer], terms=institution.terms(proposal), parts=tuple(proposal.items()))

    # Snapshots.

    def _save_mechanism(self) -> dict[str, Any]:
        """What a snapshot holds of the mechanism; empty without one."""
        if self._mechanism is None:
            return {}
        held = self._held
        running = {
            "held": None if held is None else [held.phase, [list(map(int, level)) for level in held.levels]],
            **{name: pack_value(getattr(self, name)) for name in _KEPT},
            "institutions": [institution.get_state() for institution in self._institutions],
        }
        return {"mechanism": running}

    def _load_mechanism(self, state: Mapping[str, Any]) -> None:
        """Continue from what `_save_mechanism` gave."""
        self._restart_mechanism()
        if "mechanism" not in state:
            return
        saved = state["mechanism"]
        self._held = None if saved["held"] is None else Stage(*saved["held"])
        for name in _KEPT:
            setattr(self, name, unpack_value(saved[name]))
        states = iter(saved["institutions"])
        for institution, group in self._elections():
            institution.open_round([self._player_names[i] for i in group])
            institution.set_state(next(states))
