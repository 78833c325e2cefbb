"""One round of a scenario as a game in normal form: what mechanisms make of it, and its equilibrium.

A mediator is a tuple: the choice that it makes for all who delegate, by how many do, from one on. A contract is a tuple
too: by choice, what whoever makes it receives from the others in equal parts, or pays to them if it is negative.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.errors import SettingsError

Terms = tuple[float, ...]

#: The most combinations of choices of which an equilibrium is computed.
MOST_PROFILES = 100_000
#: Differences in payoffs that are rounding alone.
ROUNDING = 1e-9
_RATE_DECIMALS = 4
#: What a contract on amounts costs: each unit below an amount, or above it.
BELOW, ABOVE = "below", "above"


@dataclass(frozen=True, kw_only=True)
class StageGame:
    """One round as a game in which all choose at once among the same actions.

    Attributes:
        players: how many play it together.
        actions: what the actions are called, by the choice that `step` takes.
        cooperative: the choice that is best for all if all make it.
        competitive: the choice that is left if nobody can rely on anybody.
        worth: what everybody earns, told what everybody chooses.
        amounts: the numbers that the actions stand for, such as prices, lowest first; empty if they have only names.
    """

    players: int
    actions: tuple[str, ...]
    cooperative: int
    competitive: int
    worth: Callable[[Sequence[int]], Sequence[float]] = field(compare=False)
    amounts: tuple[float, ...] = ()

    @property
    def limit(self) -> str:
        """Whether a contract costs units below an amount, such as a price, or above it, as where less is better."""
        return ABOVE if self.amounts[self.cooperative] < self.amounts[self.competitive] else BELOW

    def units_beyond(self, amount: float) -> list[float]:
        """How far each choice lies beyond an amount, on the side that a contract costs."""
        sign = 1 if self.limit == ABOVE else -1
        return [max(0.0, sign * (own - amount)) for own in self.amounts]

    @cached_property
    def stake(self) -> float:
        """What a round can bring a player at most above the least, where all others choose alike."""
        payoffs = [
            self.worth([action if k == player else others for k in range(self.players)])[player]
            for player in range(self.players)
            for action in range(len(self.actions))
            for others in range(len(self.actions))
        ]
        return max(payoffs) - min(payoffs)

    def check_size(self, actions: int | None = None) -> None:
        """Check that an equilibrium can be computed.

        Args:
            actions: how many actions each player has; by default those of the game.

        Raises:
            SettingsError: there are too many combinations of choices.
        """
        count = len(self.actions) if actions is None else actions
        if count**self.players > MOST_PROFILES:
            reason = f"{self.players} players with {count} actions each are too many to compute an equilibrium of"
            raise SettingsError("policy", "best responder", f"{reason}; take fewer of either")

    @cached_property
    def payoffs(self) -> NDArray[np.float64]:
        """What everybody earns, an array with an axis for each player's choice and a last one of players.

        Raises:
            SettingsError: there are too many combinations of choices.
        """
        self.check_size()
        count, shape = len(self.actions), (len(self.actions),) * self.players
        rows = [self.worth(profile) for profile in product(range(count), repeat=self.players)]
        return np.array(rows, dtype=np.float64).reshape(*shape, self.players)

    def of_player(self, player: int) -> NDArray[np.float64]:
        """What a player earns, (its choices, combinations of the others' choices)."""
        return np.moveaxis(self.payoffs[..., player], player, 0).reshape(len(self.actions), -1)

    @cached_property
    def equilibrium(self) -> tuple[int, ...]:
        """The profile that best replies lead to from all competing on; all competing if they lead nowhere.

        Players reply one after another, and never by an action that is weakly dominated. Example: the stag hunt is left
        at hare and hare, but a mediator who hunts stag for two and hare for one makes hare dominated by delegating.
        """
        worth = [self.of_player(player) for player in range(self.players)]
        replies = [_undominated(own) for own in worth]
        profile, calm = [self.competitive] * self.players, 0
        for step in range(100 * self.players):
            player = step % self.players
            others = profile[:player] + profile[player + 1 :]
            column = worth[player][:, np.ravel_multi_index(others, (len(self.actions),) * len(others))]
            best = max(column[action] for action in replies[player])
            equal = [action for action in replies[player] if column[action] >= best - ROUNDING]
            calm = calm + 1 if profile[player] in equal else 0
            if not calm:
                profile[player] = min(equal, key=lambda action: abs(action - self.competitive))
            if calm == self.players:
                return tuple(profile)
        return (self.competitive,) * self.players


def _undominated(worth: NDArray[np.float64]) -> list[int]:
    """The actions that no other is at least as good as everywhere, and better somewhere."""
    better = (worth[:, None] >= worth[None] - ROUNDING).all(axis=2)
    better &= (worth[:, None] > worth[None] + ROUNDING).any(axis=2)
    return [int(action) for action in np.flatnonzero(~better.any(axis=0))]


def mediate(choices: Sequence[Any], mediator: Terms) -> list[Any]:
    """Everybody's choices, in which `None` stands for whoever delegates, with what the mediator chooses for them."""
    delegates = sum(choice is None for choice in choices)
    return [int(mediator[delegates - 1]) if choice is None else choice for choice in choices]


def transfers(choices: Sequence[int], contract: Terms) -> list[float]:
    """What everybody receives (or pays, below 0) under a contract, which sums to 0."""
    own = [contract[choice] for choice in choices]
    total = math.fsum(own)
    return [mine - (total - mine) / (len(own) - 1) + 0.0 for mine in own]  # without -0.0


def with_mediator(game: StageGame, mediator: Terms) -> StageGame:
    """The game with one action more, to delegate to a mediator."""
    delegate = len(game.actions)

    def worth(profile: Sequence[int]) -> Sequence[float]:
        return game.worth(mediate([None if choice == delegate else choice for choice in profile], mediator))

    return replace(game, actions=(*game.actions, "delegate"), worth=worth)


def with_contract(game: StageGame, contract: Terms) -> StageGame:
    """The game in which a contract binds."""

    def worth(profile: Sequence[int]) -> Sequence[float]:
        received = transfers(profile, contract)
        return [payoff + payment for payoff, payment in zip(game.worth(profile), received, strict=True)]

    return replace(game, worth=worth)


def right_mediator(game: StageGame) -> Terms:
    """The mediator that cooperates if all delegate, and else punishes whoever does not."""
    return (*[float(game.competitive)] * (game.players - 1), float(game.cooperative))


def right_contract(game: StageGame) -> dict[str, float]:
    """The smallest contract, as it is proposed, under which to cooperate is dominant.

    Each action costs more than anybody can gain by it, whatever the others do: in the prisoner's dilemma 2, because to
    defect earns 1 more. Where actions are amounts, each unit beyond the cooperative one costs as much.
    """
    gains = np.zeros(len(game.actions))
    for player in range(game.players):
        own = game.of_player(player)
        gains = np.maximum(gains, (own - own[game.cooperative]).max(axis=1))
    if not game.amounts:
        return {
            name: -float(math.floor(gain + ROUNDING) + 1) if action != game.cooperative else 0.0
            for action, (name, gain) in enumerate(zip(game.actions, gains.tolist(), strict=True))
        }
    best, step = game.amounts[game.cooperative], 10**_RATE_DECIMALS
    rates = [gain / units for gain, units in zip(gains.tolist(), game.units_beyond(best), strict=True) if units]
    return {game.limit: best, "rate": (math.floor(max(rates, default=0.0) * step) + 1) / step}
