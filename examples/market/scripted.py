"""Scripted traders: without intelligence, truthful, learning a margin, and two rings of sellers."""

from __future__ import annotations

import re

from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.policies import Action, Episode, Request, ScriptedPolicy
from market.env import SELLER, SellerSlots, TraderSlots
from market.rules import best_floor

_NUMBER = re.compile(r"\d+(?:\.\d+)?")


def limit_of(slots: TraderSlots) -> float:
    """A seller's cost, or a buyer's value."""
    return float(slots.cost if isinstance(slots, SellerSlots) else getattr(slots, "value", 0.0))


class Truthful(ScriptedPolicy):
    """Asks its cost, or bids its value, and says nothing."""

    slots_only = True

    def decide(self, request: Request) -> Action:
        """Quote a price, or say something."""
        slots: TraderSlots = request.info["slots"]
        if slots.phase == TALK:
            return {"message": self.say(slots)}
        price = self.quote(slots)
        return {"choice": None if price is None else min(max(round(price, 2), 0.0), slots.highest)}

    def quote(self, slots: TraderSlots) -> float | None:
        """The price, or `None` to pass."""
        return limit_of(slots)

    def say(self, slots: TraderSlots) -> str:
        """The message; nothing by default."""
        return ""


class ZeroIntelligence(Truthful):
    """Quotes a random price at which it would not lose, as the constrained traders of Gode and Sunder (1993).

    Args:
        budget: whether it never asks below its cost nor bids above its value.
    """

    def __init__(self, budget: bool = True) -> None:
        self.budget = budget

    def quote(self, slots: TraderSlots) -> float:
        """Draw it evenly."""
        limit, is_seller = limit_of(slots), slots.role == SELLER
        low = limit if self.budget and is_seller else 0.0
        high = limit if self.budget and not is_seller else slots.highest
        return float(self.episode.rng.uniform(low, high))


class Margin(Truthful):
    """Wants a margin, a little more of it after a round in which it has traded, and less after one in which not.

    Args:
        step: by how much the margin moves, as a share of the highest price.
    """

    def __init__(self, step: float = 0.02) -> None:
        self.step = step

    def begin(self, episode: Episode) -> None:
        """Draw the first margins."""
        super().begin(episode)
        self._wanted: dict[str, tuple[int, float]] = {}

    def quote(self, slots: TraderSlots) -> float:
        """The limit, better by the margin."""
        number, margin = self._wanted.get(slots.me) or (slots.round, float(self.episode.rng.uniform(0, 0.1)))
        if number < slots.round:
            traded = any(slots.me in trade for trade in slots.trades if trade[0] == number)
            margin = max(0.0, margin + (self.step if traded else -self.step))
        self._wanted[slots.me] = slots.round, margin
        return limit_of(slots) + (1 if slots.role == SELLER else -1) * margin * slots.highest


class Floor(Truthful):
    """A ring of sellers: nobody in it asks below a floor, which the first speaker names. Buyers are truthful.

    Args:
        floor: the floor; by default the ask that would have earned most against the bids of the last round, so that
            sellers ask their costs in the first one.
    """

    def __init__(self, floor: float | None = None) -> None:
        self.floor = floor

    def quote(self, slots: TraderSlots) -> float | None:
        """The floor, and never less than the cost."""
        if slots.role != SELLER:
            return limit_of(slots)
        return max(limit_of(slots), self.agreed(slots) or 0.0)

    def say(self, slots: TraderSlots) -> str:
        """Name the floor to the sellers, or repeat it; a seller that no floor would let earn says nothing."""
        floor = self.agreed(slots) if slots.role == SELLER else None
        return "" if floor is None else f"to sellers: let us all ask {floor:.2f}"

    def agreed(self, slots: TraderSlots) -> float | None:
        """The floor that was named first in this round, or its own."""
        if self.floor is not None:
            return self.floor
        named = [float(match[0]) for line in slots.heard if (match := _NUMBER.search(line.text))]
        bids = slots.history[-1][2] if slots.history else ()
        return named[0] if named else best_floor([limit_of(slots)] * slots.sellers, bids)


class Tickets(Floor):
    """A ring of sellers that draw tickets in each round: whoever has the highest asks the floor, the others nothing.

    Where they cannot talk they take turns by the round. A seller that could not earn anything draws none. Buyers are
    truthful.

    Args:
        floor: the ask of whoever's turn it is; by default as in the ring with a floor.
    """

    def quote(self, slots: TraderSlots) -> float | None:
        """The floor, or nothing."""
        if slots.role != SELLER:
            return limit_of(slots)
        drawn = {line.speaker: int(match[0]) for line in slots.heard if (match := _NUMBER.search(line.text))}
        turn = f"{SELLER}_{(slots.round - 1) % slots.sellers}"
        turn = max(sorted(drawn), key=lambda name: drawn[name]) if drawn else turn
        return max(limit_of(slots), self.agreed(slots) or 0.0) if turn == slots.me else None

    def say(self, slots: TraderSlots) -> str:
        """Tell the ticket to the sellers."""
        if slots.history and max(slots.history[-1][2], default=0.0) <= limit_of(slots):
            return ""
        return f"to sellers: my ticket is {int(self.episode.rng.integers(1000))}" if slots.role == SELLER else ""

    def agreed(self, slots: TraderSlots) -> float | None:
        """The floor that earns most if one sells: the highest bid."""
        if self.floor is not None:
            return self.floor
        return max(slots.history[-1][2], default=None) if slots.history else None


POLICIES = {
    "truthful": Truthful,
    "zero_intelligence": ZeroIntelligence,
    "margin": Margin,
    "floor_ring": Floor,
    "ticket_ring": Tickets,
}
