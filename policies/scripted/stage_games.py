"""Scripted players of any scenario that says what a round is as a game, with whatever mechanism is around it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from llm_coop_envs.core.base_policy import Action, ScriptedPolicy
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.question import Number, Unusable, Words
from llm_coop_envs.interface.slots import Slots
from llm_coop_envs.mechanisms.institution import Proposal
from llm_coop_envs.mechanisms.settings import DELEGATE, MEDIATION, PROPOSE, SIGN, VOTE
from llm_coop_envs.mechanisms.slots import MechanismSlots, Offer
from llm_coop_envs.mechanisms.stage_game import (
    StageGame,
    right_contract,
    right_mediator,
    with_contract,
    with_mediator,
)


class GamePlayer(ScriptedPolicy):
    """Takes no part in a mechanism, and competes."""

    slots_only = True
    game: StageGame

    def begin(self, episode: Episode) -> None:
        """Start an episode.

        Raises:
            SettingsError: the scenario does not say what a round is as a game, or it is none for this player.
        """
        super().begin(episode)
        self.game = self.game_of(episode.settings)

    def game_of(self, settings: ScenarioSettings) -> StageGame:
        """What a round is as a game.

        Raises:
            SettingsError: the scenario does not say it, or it is none for this player.
        """
        game = settings.stage_game()
        if game is None:
            reason = "plays no scenario that does not say what its choices are worth (stage_game)"
            raise SettingsError("policy", type(self).__name__, reason)
        return game

    def decide(self, request: Request) -> Action:
        """Return a choice, or what the mechanism asks for; silence in talk."""
        slots = request.info["slots"]
        if isinstance(slots.question, Words):  # in talk, or where words are the move
            return {"message": ""}
        answer = {PROPOSE: self.propose, VOTE: self.approve, SIGN: self.sign, DELEGATE: self.delegate}.get(slots.phase)
        if answer is not None:
            return {"choice": answer(slots)}
        choice, question = self.choose(slots), slots.question
        if isinstance(question, Number) and self.game.amounts:  # where any amount may be chosen, not listed ones alone
            return {"choice": question.choice(self.game.amounts[choice])}
        return {"choice": choice}

    def place(self, slots: Slots) -> int:
        """The player's place in its game; where groups change and slots do not say it, all places are alike."""
        return int(getattr(slots, "index", self.episode.agents.index(slots.me) % self.game.players))

    def propose(self, slots: Slots) -> Any:
        """The mediator or contract that it proposes."""
        return _idle(slots)

    def approve(self, slots: Slots) -> list[int]:
        """The proposals that it approves of, by proposer."""
        return []

    def sign(self, slots: Slots) -> int:
        """Whether it signs."""
        return 0

    def delegate(self, slots: Slots) -> int:
        """Whether it delegates."""
        return 0

    def choose(self, slots: Slots) -> int:
        """The choice in the act phase."""
        return self.game.competitive


class NaiveVoter(GamePlayer):
    """Proposes to cooperate whatever others do, approves of all, signs and delegates always, and cooperates."""

    def propose(self, slots: Slots) -> Any:
        """A mediator that cooperates with anybody, or a contract without payments."""
        game, idle = self.game, _idle(slots)
        if _mechanism(slots).kind != MEDIATION:
            return idle
        return dict.fromkeys(idle, game.amounts[game.cooperative] if game.amounts else game.cooperative)

    def approve(self, slots: Slots) -> list[int]:
        """All of them."""
        return [option.choice for option in getattr(slots.question, "options", ())]

    def sign(self, slots: Slots) -> int:
        """Yes."""
        return 1

    def delegate(self, slots: Slots) -> int:
        """Yes."""
        return 1

    def choose(self, slots: Slots) -> int:
        """The cooperative choice."""
        return self.game.cooperative


class ImageScoring(NaiveVoter):
    """Cooperates with those who have cooperated at least as often as not, as far as it is shown; else competes."""

    def choose(self, slots: Slots) -> int:
        """By the worst image among the present co-players."""
        records = slots.mechanism.records if slots.mechanism is not None else ()
        images = [
            sum(1 if line.choice == self.game.cooperative else -1 for line in lines if line.depth == 0)
            for _, lines in records
        ]
        return self.game.cooperative if min(images, default=0) >= 0 else self.game.competitive


class BestResponder(GamePlayer):
    """Plays the equilibrium of the game as its mechanism makes it, and proposes and elects what earns it most.

    The equilibrium is the one that best replies lead to from all competing on, see `StageGame.equilibrium`. It proposes
    the mediator that cooperates if all delegate and competes otherwise, or the smallest contract that makes cooperation
    dominant.
    """

    def begin(self, episode: Episode) -> None:
        """Start an episode; equilibria that were computed in it are remembered."""
        super().begin(episode)
        self._solve = lru_cache(maxsize=256)(self._equilibrium)

    def game_of(self, settings: ScenarioSettings) -> StageGame:
        """What a round is as a game, which is small enough to compute its equilibrium, delegation included."""
        game = super().game_of(settings)
        game.check_size(len(game.actions) + (settings.mechanism is not None and settings.mechanism.kind == MEDIATION))
        return game

    def _equilibrium(self, kind: str, offer: Offer | None) -> tuple[tuple[int, ...], tuple[float, ...]]:
        """The equilibrium under a mediator or a contract, and what everybody earns in it."""
        game = self.game
        if offer is not None:
            game = (with_mediator if kind == MEDIATION else with_contract)(game, offer.terms)
        profile = game.equilibrium
        return profile, tuple(game.worth(profile))

    def _gain(self, slots: Slots, offer: Offer) -> float:
        """What a proposal earns it, beyond what it earns without one."""
        kind, place = _mechanism(slots).kind, self.place(slots)
        return self._solve(kind, offer)[1][place] - self._solve(kind, None)[1][place]

    def propose(self, slots: Slots) -> Any:
        """The right mediator, or the right contract."""
        game = self.game
        if _mechanism(slots).kind != MEDIATION:
            contract = right_contract(game)
            try:
                return slots.question.take(contract) if slots.question is not None else contract
            except Unusable:  # it is beyond what a contract may have a player pay
                return _idle(slots)
        chosen = [int(choice) for choice in right_mediator(game)]
        return dict(zip(_idle(slots), [game.amounts[k] for k in chosen] if game.amounts else chosen, strict=True))

    def approve(self, slots: Slots) -> list[int]:
        """The proposals that earn it most, if they earn it anything."""
        offers, options = _mechanism(slots).offers, getattr(slots.question, "options", ())
        gains = {offer.by: self._gain(slots, offer) for offer in offers}
        best = max(gains.values(), default=0.0)
        return [option.choice for option in options if 0 < best <= gains.get(option.name, 0.0)]

    def sign(self, slots: Slots) -> int:
        """Yes, if the contract earns it anything."""
        elected = _mechanism(slots).elected
        return int(elected is not None and self._gain(slots, elected) > 0)

    def delegate(self, slots: Slots) -> int:
        """Yes, if it does so in equilibrium."""
        mechanism = _mechanism(slots)
        return int(self._solve(mechanism.kind, mechanism.elected)[0][self.place(slots)] == len(self.game.actions))

    def choose(self, slots: Slots) -> int:
        """Its part of the equilibrium; without delegating if it has not delegated."""
        mechanism = slots.mechanism
        offer = mechanism.elected if mechanism is not None and mechanism.binding else None
        return self._solve("" if mechanism is None else mechanism.kind, offer)[0][self.place(slots)]


def _mechanism(slots: Slots) -> MechanismSlots:
    mechanism: MechanismSlots = slots.mechanism
    return mechanism


def _idle(slots: Slots) -> Mapping[str, Any]:
    assert isinstance(slots.question, Proposal), "a proposal is asked for"
    idle: Mapping[str, Any] = slots.question.stand_in()
    return idle


#: What a scenario that has a `stage_game` adds to its own.
GAME_POLICIES: dict[str, Callable[..., GamePlayer]] = {
    "best_responder": BestResponder,
    "image_scoring": ImageScoring,
    "naive_voter": NaiveVoter,
}
