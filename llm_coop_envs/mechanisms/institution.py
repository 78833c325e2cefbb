"""Elections of a mediator or a contract before the act phase, and what the elected one does to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.moves import Parts, Several, Shares, describe_move
from llm_coop_envs.interface.question import Number, Option, Options, Question
from llm_coop_envs.mechanisms.settings import (
    APPROVAL,
    CONTRACTING,
    DELEGATE,
    DRAWN,
    MAJORITY,
    MEDIATION,
    NOBODY,
    PROPOSE,
    SIGN,
    VOTE,
    MechanismSettings,
)
from llm_coop_envs.mechanisms.stage_game import ABOVE, StageGame, Terms
from llm_coop_envs.treatments.changes import EVERYONE, fits_any
from llm_coop_envs.util.packing import pack_value, unpack_value

#: The most players whose mediator can be described: one choice for every number of delegates.
MOST_PLAYERS = 20


@dataclass(frozen=True, kw_only=True)
class Proposal(Parts):
    """A mediator or a contract is asked for, part by part; whoever names none proposes the idle one."""

    name: str = "proposal"
    idle: tuple[tuple[str, Any], ...] = ()

    def stand_in(self) -> dict[str, Any]:
        """A mediator that always competes, or a contract without payments."""
        return dict(self.idle)


class Institution:
    """The elections of those who play with each other, by their places in the game.

    Args:
        settings: the mechanism, which has elections.
        game: a round of the scenario.
        names: their names.
        stated: whether players state probabilities rather than choose.

    Attributes:
        settings: as given.
        game: as given.
        names: as given, or of others who have taken their places since.
        questions: what each phase asks at most.
        proposals: the terms that were proposed, by place, in order.
        elected: whose proposal was elected; `None` before the election, and if nobody's was.
        signers: who has signed the elected contract.
        delegates: who delegates in this round.
    """

    _kept = ("proposals", "elected", "signers", "delegates")

    def __init__(self, settings: MechanismSettings, game: StageGame, names: Sequence[str], *, stated: bool) -> None:
        self.settings, self.game, self.names = settings, game, list(names)
        if len(names) > MOST_PLAYERS or len(names) != game.players:
            raise SettingsError("mechanism", settings.kind, f"is for 2 to {MOST_PLAYERS} players, all in one game")
        self._stated = stated
        self.questions = self._ask()
        self.clear()

    def _ask(self) -> dict[str, Question]:
        """What each phase asks at most."""
        vote = self._ballot(range(len(self.names)))
        if self.settings.kind == CONTRACTING:
            sign = Options(name="answer", options=_options("do not sign", "sign"))
            return {PROPOSE: self._ask_contract(), VOTE: vote, SIGN: sign}
        own = _options("choose yourself", "delegate")
        delegate = Shares(options=own) if self._stated else Options(name="answer", options=own)
        return {PROPOSE: self._ask_mediator(), VOTE: vote, DELEGATE: delegate}

    def _ballot(self, candidates: Iterable[int]) -> Several:
        return Several(name="approved", options=tuple(Option(choice=i, name=self.names[i]) for i in candidates))

    def question(self, phase: str) -> Question:
        """What a phase asks now."""
        return self._ballot(self.proposals) if phase == VOTE else self.questions[phase]

    def _ask_mediator(self) -> Proposal:
        game, counts = self.game, [f"with_{count}" for count in range(1, self.game.players + 1)]
        if game.amounts:
            listed = tuple(enumerate(game.amounts))
            asked = tuple(Number(name=name, low=listed[0][1], high=listed[-1][1], listed=listed) for name in counts)
            return Proposal(parts=asked, idle=tuple((name, game.amounts[game.competitive]) for name in counts))
        options = _options(*game.actions)
        chosen = tuple(Options(name=name, options=options) for name in counts)
        return Proposal(parts=chosen, idle=tuple((name, game.competitive) for name in counts))

    def _ask_contract(self) -> Proposal:
        game, purse = self.game, self.purse
        if not game.amounts:
            whole = int(purse)
            payments = tuple(Number(name=name, low=-whole, high=whole, integer=True) for name in game.actions)
            return Proposal(parts=payments, idle=tuple((name, 0) for name in game.actions))
        limit = Number(name=game.limit, low=game.amounts[0], high=game.amounts[-1])
        step = min(high - low for low, high in pairwise(game.amounts))
        rate = Number(name="rate", low=0.0, high=purse / step)
        idle = game.amounts[-1 if game.limit == ABOVE else 0]
        return Proposal(parts=(limit, rate), idle=((game.limit, idle), ("rate", 0.0)))

    @cached_property
    def purse(self) -> float:
        """The most that a contract may have a player pay for a choice of its own."""
        stake = self.game.stake
        purse = stake if self.settings.purse is None else self.settings.purse
        if purse > stake:
            reason = f"is beyond what a player owns, the {stake:g} that a round can bring it at most above the least"
            raise SettingsError("mechanism.purse", purse, reason)
        if not self.game.amounts and purse < 1:
            raise SettingsError("mechanism.purse", purse, "allows no payment: payments for actions are whole numbers")
        return purse

    def terms(self, proposal: Mapping[str, Any]) -> Terms:
        """A proposal as a mediator or a contract, see `stage_game`."""
        game = self.game
        if self.settings.kind == MEDIATION:
            values = proposal.values()
            return tuple(float(game.amounts.index(value) if game.amounts else value) for value in values)
        if not game.amounts:
            return tuple(float(proposal[name]) for name in game.actions)
        owed = [proposal["rate"] * units for units in game.units_beyond(proposal[game.limit])]
        return tuple(-min(payment, self.purse) for payment in owed)

    def clear(self) -> None:
        """Begin an episode."""
        self.proposals: dict[int, dict[str, Any]] = {}
        self.elected: int | None = None
        self.signers: list[int] = []
        self.delegates: list[int] = []

    def open_round(self, names: Sequence[str]) -> None:
        """Begin a round of players of these names, in which nobody delegates yet."""
        self.names, self.delegates = list(names), []

    def asked_in(self, phase: str) -> list[int]:
        """Who is on turn in a phase."""
        if phase == PROPOSE:
            self.proposals, self.elected, self.signers = {}, None, []
        if self.elected is None and (phase not in (PROPOSE, VOTE) or (phase == VOTE and not self.proposals)):
            return []
        patterns = {PROPOSE: self.settings.proposers, VOTE: self.settings.voters}.get(phase, (EVERYONE,))
        return [place for place, name in enumerate(self.names) if fits_any(name, patterns)]

    def take(self, phase: str, moves: Mapping[int, Any], rng: np.random.Generator) -> dict[str, Any]:
        """Take what players submit in a phase, by place; return what its event says of the outcome."""
        if phase == PROPOSE:
            self.proposals = dict(moves)
            return {}
        if phase == VOTE:
            counts = [sum(i in approved for approved in moves.values()) for i in self.proposals]
            self.elected = self._winner(counts, len(moves), rng)
            if self.elected is None:
                return {"elected": None, "approvals": counts}
            terms = self.proposals[self.elected]
            words = describe_move(self.questions[PROPOSE], terms)
            return {"elected": self.names[self.elected], "approvals": counts, "terms": terms, "words": words}
        chosen = [place for place, move in moves.items() if move]
        if phase == SIGN:
            self.signers = chosen
            return {"signed": [self.names[i] for i in chosen], "binding": self.is_binding}
        self.delegates = chosen
        return {"delegated": [self.names[i] for i in chosen]}

    def _winner(self, counts: Sequence[int], voters: int, rng: np.random.Generator) -> int | None:
        settings = self.settings
        needed = {APPROVAL: 0, MAJORITY: voters // 2 + 1}.get(settings.vote, voters)
        best = [i for i, count in zip(self.proposals, counts, strict=True) if count == max(counts)]
        if max(counts) < needed or (len(best) > 1 and settings.ties == NOBODY):
            return None
        return int(rng.choice(best)) if settings.ties == DRAWN else best[0]

    @property
    def is_binding(self) -> bool:
        """Whether a contract was elected that all have signed."""
        return self.settings.kind == CONTRACTING and len(self.signers) == len(self.names)

    @property
    def elected_terms(self) -> Terms | None:
        """The mediator or the contract that was elected."""
        return None if self.elected is None else self.terms(self.proposals[self.elected])

    @property
    def delegated_choice(self) -> int:
        """What the mediator chooses for all who delegate."""
        assert self.elected_terms is not None, "there is somebody to delegate to"
        return int(self.elected_terms[len(self.delegates) - 1])

    def get_state(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {name: pack_value(getattr(self, name)) for name in self._kept}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Continue from what `get_state` gave."""
        for name in self._kept:
            setattr(self, name, unpack_value(state[name]))


def _options(*names: str) -> tuple[Option, ...]:
    return tuple(Option(choice=choice, name=name) for choice, name in enumerate(names))
