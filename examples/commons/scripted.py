"""Scripted villagers."""

from __future__ import annotations

from abc import abstractmethod
from math import fsum

from commons.env import HARVEST, CommonsSlots
from commons.rules import threshold
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.policies import Action, Request, ScriptedPolicy
from llm_coop_envs.policies.scripted.stage_games import GAME_POLICIES


class Villager(ScriptedPolicy):
    """Takes what a rule says, says so, and writes no notes."""

    slots_only = True

    def decide(self, request: Request) -> Action:
        """Take, or speak."""
        slots: CommonsSlots = request.info["slots"]
        if slots.phase == TALK:
            return {"message": self.say(slots)}
        if slots.phase == HARVEST or slots.question is None:
            return {"choice": max(0, min(self.units(slots), slots.most))}
        return {"choice": slots.question.stand_in()}  # no note, and no part in a mechanism

    @abstractmethod
    def units(self, slots: CommonsSlots) -> int:
        """How many units to take."""

    def say(self, slots: CommonsSlots) -> str:
        """The message; nothing by default."""
        return ""


class Threshold(Villager):
    """Takes as much as leaves the pool as large next month if everybody does."""

    def units(self, slots: CommonsSlots) -> int:
        """The threshold."""
        return threshold(slots.pool, slots.players)

    def say(self, slots: CommonsSlots) -> str:
        """Name next month's."""
        return f"If each of us takes {self.units(slots)}, the pool stays as it is."


class Greedy(Villager):
    """Wants all that there is."""

    def units(self, slots: CommonsSlots) -> int:
        """The whole pool."""
        return slots.pool


class Half(Villager):
    """Wants half of what there is, as if it were alone."""

    def units(self, slots: CommonsSlots) -> int:
        """Half of the pool."""
        return slots.pool // 2


class Copycat(Villager):
    """Takes what the others took on average last month; in its first month the threshold."""

    def units(self, slots: CommonsSlots) -> int:
        """The mean of the others, rounded down."""
        others = [units for name, units in slots.taken if name != slots.me]
        return int(fsum(others) / len(others)) if others else threshold(slots.pool, slots.players)


class Fixed(Villager):
    """Wants the same in every month.

    Args:
        units: how many units.
    """

    def __init__(self, units: int = 10) -> None:
        self.wanted = units

    def units(self, slots: CommonsSlots) -> int:
        """That many."""
        return self.wanted


POLICIES = {
    **{"threshold": Threshold, "greedy": Greedy, "half": Half, "copycat": Copycat, "fixed": Fixed},
    **GAME_POLICIES,
}
