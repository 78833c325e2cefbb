"""Two scripted policies: each for itself, and a ring whose members bid in turn."""

from typing import Any

from llm_coop_envs.policies import Action, Request, ScriptedPolicy


class Shading(ScriptedPolicy):
    """Enters if its value is above the reserve, and bids a part of it.

    Args:
        part: the share of its value to bid, 0 to 1; by default (n - 1) / n, the equilibrium of n bidders.
    """

    def __init__(self, part: float | None = None) -> None:
        self.part = part

    def decide(self, request: Request) -> Action:
        """Bid a part of the value, or nothing."""
        slots = request.info["slots"]
        price = slots.value * (1 - 1 / slots.rules.bidders if self.part is None else self.part)
        return self.answer(slots, price if price >= slots.rules.reserve else None)

    def answer(self, slots: Any, price: float | None) -> Action:
        """The action that bids a price, or passes."""
        return {"choice": int(slots.value > slots.rules.reserve) if slots.phase == "enter" else price, "message": ""}


class Ring(Shading):
    """Bids the reserve when it is its turn, by the round, and passes otherwise; tells the others so, each alone."""

    def decide(self, request: Request) -> Action:
        """Bid the reserve in turn."""
        slots, me = request.info["slots"], int(request.agent.rpartition("_")[2])
        turn = (slots.round - 1) % slots.rules.bidders
        others = ", ".join(f"bidder_{i}" for i in range(slots.rules.bidders) if i != me)
        bid = slots.rules.reserve if me == turn else None
        return {**self.answer(slots, bid), "message": f"to {others}: this round is bidder_{turn}'s"}


POLICIES = {"shading": Shading, "ring": Ring}
