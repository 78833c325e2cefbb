"""From what a person typed to an action, or to a sentence that says what is wrong with it."""

from __future__ import annotations

import re

from llm_coop_envs.bertrand.slots import BertrandSlots
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.question import Option
from llm_coop_envs.core.slots import Slots
from llm_coop_envs.evacuation.slots import EvacuationSlots
from llm_coop_envs.kbc.slots import KBCSlots
from llm_coop_envs.policies.base import Action

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)", re.ASCII)

# The keys of a number pad, and the letters around S, by the direction's name.
SHORT_MOVES = {
    "up": ("u", "8"),
    "down": ("d", "2"),
    "left": ("l", "4"),
    "right": ("r", "6"),
    "stay": ("s", "5"),
    "up and left": ("ul", "7"),
    "up and right": ("ur", "9"),
    "down and left": ("dl", "1"),
    "down and right": ("dr", "3"),
}


class Unusable(ValueError):
    """What was typed is no answer; the message says why and what would be one."""


def hint(slots: Slots) -> str:
    """What is to be typed, in a few words, for a prompt."""
    if slots.phase == TALK:
        return "your message, or nothing"
    if isinstance(slots, KBCSlots):
        return f"your number, {slots.low:g} to {slots.high:g}"
    if isinstance(slots, BertrandSlots):
        return (
            f"the number of your price, {slots.choices[0][0]} to {slots.choices[-1][0]}"
            if slots.choices
            else f"your price, {slots.floor:g} to {slots.cap:g}"
        )
    if isinstance(slots, EvacuationSlots) and slots.asked == "exit":
        return "your exit"
    return "your step"


def read_answer(slots: Slots, typed: str) -> Action:
    """The action that somebody typed.

    Args:
        slots: what the player knows, and what is asked.
        typed: the line.

    Raises:
        Unusable: it is none.
    """
    if slots.phase == TALK:
        return {"message": read_message(slots, typed)}
    if isinstance(slots, KBCSlots):
        return {"choice": _contest(slots, typed)}
    if isinstance(slots, BertrandSlots):
        return {"choice": _price(slots, typed)}
    if isinstance(slots, EvacuationSlots):
        return {"choice": _option(slots.options, typed)}
    raise TypeError(f"nobody can answer {type(slots).__name__} by hand")


def read_message(slots: Slots, typed: str) -> str:
    """A message that is short enough.

    Raises:
        Unusable: it is too long.
    """
    message = typed.strip()
    if len(message) > slots.message_length:
        raise Unusable(f"That is {len(message)} characters; a message has at most {slots.message_length}. Shorten it.")
    return message


def _number(typed: str, example: str) -> float:
    text = typed.strip()
    if not text:
        raise Unusable(f"Nothing was typed; type a number such as {example}.")
    if _NUMBER.fullmatch(text) is None:
        raise Unusable(f"'{text[:40]}' is no number; type one such as {example}, decimals with a point.")
    return float(text)


def _contest(slots: KBCSlots, typed: str) -> int | float:
    value = _number(typed, f"{(slots.low + slots.high) / 2:g}")
    if slots.integer and value != int(value):
        raise Unusable(f"{value:g} is no whole number; type a whole number from {slots.low:g} to {slots.high:g}.")
    if not slots.low <= value <= slots.high:
        raise Unusable(f"{value:g} is out of range; type a number from {slots.low:g} to {slots.high:g}.")
    # Choices of whole numbers are counted from the lowest one.
    return int(value - slots.low) if slots.integer else value


def _price(slots: BertrandSlots, typed: str) -> int | float:
    if not slots.choices:
        value = _number(typed, f"{(slots.floor + slots.cap) / 2:g}")
        if not slots.floor <= value <= slots.cap:
            raise Unusable(f"{value:g} is out of range; type a price from {slots.floor:g} to {slots.cap:g}.")
        return value
    known = [number for number, _ in slots.choices]
    value = _number(typed, str(known[0]))
    if value not in known:
        raise Unusable(f"There is no price number {value:g}; type a number from {known[0]} to {known[-1]}.")
    return int(value)


def _option(options: tuple[Option, ...], typed: str) -> int:
    text = " ".join(typed.lower().split())
    for option in options:
        if text and text in (str(option.choice), option.letter, option.name.lower()):
            return option.choice
    moves = {short: name for name, (short, _) in SHORT_MOVES.items()}
    for option in options:
        if moves.get(text) == option.name and option.letter:
            return option.choice
    known = ", ".join(f"{option.letter or option.choice} ({option.name})" for option in options)
    wrong = f"'{text[:40]}' is not possible now" if text else "Nothing was typed"
    raise Unusable(f"{wrong}; type one of {known}.")
