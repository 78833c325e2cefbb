"""Mechanisms in a running episode: their phases before the act phase, and what they do to choices and payoffs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
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
from llm_coop_envs.mechanisms.matching import RANDOM, Groups, check_groups, match_players
from llm_coop_envs.mechanisms.records import meetings
from llm_coop_envs.mechanisms.settings import HIGHER, MECHANISM_PHASES, REPETITION, SIGN, VOTE, MechanismSettings
from llm_coop_envs.mechanisms.slots import MechanismSlots, Offer
from llm_coop_envs.mechanisms.stage_game import StageGame, mediate, transfers
from llm_coop_envs.util.draws import Key


class Instituted(Regulated):
    """The part of `ArrayEnv` that puts a mechanism around the act phase, and matches players in groups."""

    name: str
    _institution: Institution | None
    #: The scenario's own phases with choices.
    _acting: frozenset[str]
    _mechanism: MechanismSettings | None
    #: What a round of the scenario is as a game; `None` without a mechanism that needs to know.
    _stage_game: StageGame | None
    _stage_held: Stage | None
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
        self._institution = self._stage_game = None
        # The scenarios' own words say how a game is repeated, but not all of them know of a chance of another round.
        is_untold = (
            "continuation" not in settings.again and mechanism is not None and mechanism.continuation is not None
        )
        self._has_mechanism_words = mechanism is not None and (mechanism.kind != REPETITION or is_untold)
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
        if mechanism.is_elected:
            questions = [question for by_role in self._asking.values() for question in by_role.values()]
            stated = any(isinstance(question, Shares) for question in questions)
            self._institution = Institution(mechanism, self._stage_game, self._player_names, stated=stated)
            for phase, question in self._institution.questions.items():
                self._ask(phase, question)

    def _restart_mechanism(self) -> None:
        """Begin an episode without proposals and records."""
        self._stage_held, self._meetings, self._matched = None, [], ((), ())
        if self._institution is not None:
            self._institution.clear()

    @abstractmethod
    def _ask(self, phase: str, question: Question | Mapping[str, Question]) -> None:
        """Let a phase have a question of its own, or one for each role; a phase that is new comes last."""

    # Matching.

    @property
    def groups(self) -> Groups:
        """Who plays with whom in this round, each group in the order of the places in its game."""
        if self._matched[0] != (self._key, self.round):
            settings = self.settings
            size, number = settings.group_size or self.n_players, max(0, self.round - settings.first_round)
            drawn = match_players(self.n_players, size, settings.matching, number, self.nature("matching"))
            self._matched = (self._key, self.round), drawn
        return self._matched[1]

    def group_of(self, index: int) -> tuple[int, ...]:
        """The players with whom a player plays in this round, itself among them."""
        return next(group for group in self.groups if index in group)

    # Phases.

    @property
    def _is_mechanisms(self) -> bool:
        """Whether this phase is one of the mechanism's."""
        return self._institution is not None and self.phase in self._institution.questions

    def _following_stage(self) -> Stage | Over:
        """The next stage; before an act phase come those of the mechanism."""
        institution = self._institution
        if institution is None:
            return super()._following_stage()
        while True:
            if self._stage_held is None:
                stage = super()._following_stage()
                if isinstance(stage, Over) or stage.phase not in self._acting:
                    return stage
                self._stage_held = stage
                institution.open_round(self.round - self.settings.first_round)
            following = institution.next_phase()
            if following is not None:
                return Stage(following[0], [following[1]])
            stage, self._stage_held = self._stage_held, None
            choosing = [i for level in stage.levels for i in level if i not in institution.delegates]
            if choosing or not institution.delegates:
                return Stage(stage.phase, [choosing])
            self.phase = stage.phase
            self._count(np.arange(0), np.arange(0))

    def _answering(self) -> tuple[Callable[[int], Question], Callable[[int], Any], Callable[[Indices], NDArray[Any]]]:
        if not self._is_mechanisms:
            return super()._answering()
        question = self._common_question
        assert question is not None, "in a mechanism's phase everybody is asked the same"
        return lambda i: question, lambda i: question.stand_in(), lambda who: np.zeros(len(who), dtype=np.int64)

    def _legal_choices(self) -> NDArray[np.int8] | None:
        return None if self._is_mechanisms else super()._legal_choices()

    def _count(self, who: Indices, choices: NDArray[Any]) -> None:
        """Let legal choices count: as the mechanism's, or as the scenario's with what the mechanism makes of them."""
        institution = self._institution
        if institution is not None and self.phase in institution.questions:
            outcome = institution.take(self.phase, who.tolist(), choices, self.nature(self.phase))
            if self.record and outcome:
                self.emit("mechanism", phase=self.phase, **outcome)
            return
        if institution is not None and institution.delegates:
            everyone = dict(zip(who.tolist(), choices.tolist(), strict=True))
            assert institution.elected_terms is not None, "there is somebody to delegate to"
            choices = np.array(mediate([everyone.get(i) for i in range(self.n_players)], institution.elected_terms))
            who = self._everyone
        if self.record and self.settings.matching == RANDOM:
            self.emit("nature", purpose="matching", drawn=[list(group) for group in self.groups])
        has_records = self._mechanism is not None and self._mechanism.has_records
        before = self._rewards.copy() if has_records else self._rewards
        super()._count(who, choices)
        if has_records:
            payoffs = (self._rewards - before).tolist()
            self._meetings = [*self._meetings, [[list(group) for group in self.groups], choices.tolist(), payoffs]]
        if institution is not None and institution.is_binding:
            assert institution.elected_terms is not None, "a contract was signed"
            payments = transfers(choices.tolist(), institution.elected_terms)
            self._rewards += payments
            if self.record:
                self.emit("mechanism", phase=self.phase, payments=payments)

    # What players know.

    def _mechanism_slots(self, index: int, question: Question | None) -> MechanismSlots:
        """What a player may know of the mechanism."""
        mechanism, game, institution = self._mechanism, self._stage_game, self._institution
        assert mechanism is not None, "asked only where there is a mechanism with words"
        known: dict[str, Any] = {}
        if game is None:
            known["continuation"] = mechanism.continuation
        elif institution is not None:
            known["purse"] = institution.purse if SIGN in institution.questions else 0.0
            if self.phase == VOTE:
                known["offers"] = tuple(self._offer(institution, i) for i in institution.proposals)
            elif institution.elected is not None:
                known |= {"elected": self._offer(institution, institution.elected), "binding": institution.is_binding}
                if SIGN in institution.questions and self.phase != SIGN:
                    unsigned = [i for i in range(self.n_players) if i not in institution.signers]
                    known["unsigned"] = tuple(self.possible_agents[i] for i in unsigned)
        else:
            depth = mechanism.depth if mechanism.kind == HIGHER else 1
            names, seen = self.possible_agents, {"remembered": mechanism.remembered, "depth": depth}
            others = [i for i in self.group_of(index) if i != index]
            known["records"] = tuple((names[i], meetings(self._meetings, names, i, **seen)) for i in others)
        return MechanismSlots(
            kind=mechanism.kind,
            actions=game.actions if game is not None else (),
            amounts=game.amounts if game is not None else (),
            phase=self.phase,
            question=question if self.phase in MECHANISM_PHASES else None,
            **known,
        )

    def _offer(self, institution: Institution, proposer: int) -> Offer:
        proposal = institution.proposals[proposer]
        name = self.possible_agents[proposer]
        return Offer(by=name, terms=institution.terms(proposal), parts=tuple(proposal.items()))

    # Snapshots.

    def _save_mechanism(self) -> dict[str, Any]:
        """What a snapshot holds of the mechanism; empty without one."""
        if self._mechanism is None:
            return {}
        stage = self._stage_held
        held = None if stage is None else [stage.phase, [list(map(int, level)) for level in stage.levels]]
        state = None if self._institution is None else self._institution.get_state()
        return {"mechanism": {"held": held, "past": self._meetings, "institution": state}}

    def _load_mechanism(self, state: Mapping[str, Any]) -> None:
        """Continue from what `_save_mechanism` gave."""
        self._restart_mechanism()
        if "mechanism" not in state:
            return
        saved = state["mechanism"]
        self._stage_held = None if saved["held"] is None else Stage(*saved["held"])
        self._meetings = saved["past"]
        if self._institution is not None:
            self._institution.set_state(saved["institution"])
