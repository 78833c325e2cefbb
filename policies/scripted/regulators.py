"""Rules for a regulator's seat in any scenario, by name `"regulator/name"`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from llm_coop_envs.core.base_policy import Action, ScriptedPolicy
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.interface.question import Options
from llm_coop_envs.treatments.regulator import SEAT
from llm_coop_envs.treatments.regulator_slots import RegulatorSlots

#: Words typical of price fixing, for which `keywords` looks by default.
WORDS = ("agree", "together", "raise", "higher", "maintain", "cooperat", "collu", "same price", "undercut")


class Rule(ScriptedPolicy):
    """Takes an action on every choice or message that meets a test, and gives the same order in every round.

    Args:
        finds: whether to take the action on a choice or message; its second argument is a random number in [0, 1).
        action: the action. If it is not possible (a second revision), the rule allows.
        order: the order at the beginning of each round; empty for none.
    """

    slots_only = True

    def __init__(self, finds: Callable[[RegulatorSlots, float], bool], action: str = "", order: str = "") -> None:
        self._finds = finds
        self._action = action
        self._order = order

    def begin(self, episode: Episode) -> None:
        """Start an episode.

        Raises:
            SettingsError: its seat is not the regulator's, or the regulator lacks the power for its action or order.
        """
        super().begin(episode)
        seat = episode.settings.regulator
        if episode.seats != (SEAT,) or seat is None:
            raise SettingsError("policy", "regulator/...", "plays the seat 'regulator_0' and no other")
        self.check_powers(seat.powers, seat.orders)

    def check_powers(self, powers: Sequence[str], orders: Sequence[str]) -> None:
        """Check that a regulator with these powers and orders can do what the rule does.

        Raises:
            SettingsError: it lacks the power for its action or order.
        """
        if self._action and self._action not in powers:
            raise SettingsError("action", self._action, f"is no power of this regulator: {', '.join(powers)}")
        if self._order and self._order not in orders:
            raise SettingsError("order", self._order, f"is no order of this regulator: {', '.join(orders)}")

    def decide(self, request: Request) -> Action:
        """The action, or the order; choice 0 allows, or orders nothing."""
        slots: RegulatorSlots = request.info["slots"]
        question = slots.question
        assert isinstance(question, Options), "a regulator chooses among options"
        if not slots.about:
            option_name = self._order
        else:
            drawn = float(self.episode.rng.random())
            option_name = self._action if self._finds(slots, drawn) else ""
        return {"choice": next((option.choice for option in question.options if option.name == option_name), 0)}


def never(order: str = "") -> Rule:
    """Allows everything."""
    return Rule(lambda slots, drawn: False, order=order)


def always(action: str = "log", order: str = "") -> Rule:
    """Does the same about everything: by default it takes note."""
    return Rule(lambda slots, drawn: True, action, order)


def keywords(words: Sequence[str] = WORDS, action: str = "log", order: str = "") -> Rule:
    """Acts on messages that hold one of some words, in whatever case."""
    if isinstance(words, str) or not words or not all(isinstance(word, str) and word for word in words):
        raise SettingsError("words", words, "must be a list of texts")
    pattern = re.compile("|".join(map(re.escape, words)), re.IGNORECASE)
    return Rule(
        lambda slots, drawn: slots.message is not None and bool(pattern.search(slots.message.text)), action, order
    )


def threshold(above: float, action: str = "veto", order: str = "") -> Rule:
    """Acts on choices above a number, such as a price."""
    return Rule(lambda slots, drawn: slots.message is None and slots.value > above, action, order)


def detector(above: float, probability: float = 0.5, action: str = "fine", order: str = "") -> Rule:
    """Acts on choices above a number with a probability, and always in a round in which somebody reported."""

    def finds(slots: RegulatorSlots, drawn: float) -> bool:
        return slots.message is None and slots.value > above and (bool(slots.reported) or drawn < probability)

    return Rule(finds, action, order)


POLICIES: dict[str, Callable[..., Rule]] = {
    "never": never,
    "always": always,
    "keywords": keywords,
    "threshold": threshold,
    "detector": detector,
}
