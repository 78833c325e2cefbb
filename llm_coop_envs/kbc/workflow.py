"""The number contest with a language model: one call to speak, one to decide (Wu et al. 2024)."""

from __future__ import annotations

import math
from typing import Any

from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.kbc.settings import KBCSettings
from llm_coop_envs.kbc.slots import KBCSlots
from llm_coop_envs.policies.base import Action
from llm_coop_envs.policies.llm.parsing import NumberQuestion
from llm_coop_envs.policies.llm.parsing.objects import find_value
from llm_coop_envs.policies.llm.playing.asker import Asker, Turn, call_of
from llm_coop_envs.policies.llm.playing.memory import Note
from llm_coop_envs.policies.llm.playing.readers import NumberReader

_TALK, _CHOOSE = call_of("kbc", "talk"), call_of("kbc", "choose")


async def play_kbc(asker: Asker, turn: Turn, slots: KBCSlots, settings: KBCSettings) -> Action:
    """A player's turn.

    A number with decimals where whole ones are asked for is rounded, halves up, and counted. A number outside the
    bounds that stays there is submitted as a choice that is not legal, so that the environment's fallback is flagged.
    """
    memory, own = turn.memory, asker.settings.own_reasons
    more: dict[str, Any] = {
        "summary": None,
        "reasons": tuple(memory.reasons[-own:]) if own else (),
        "number_first": asker.settings.number_first,
    }
    if slots.phase == TALK:
        known = asker.known(turn, _TALK, vars(slots), slots.persona, **more)
        return {"message": await asker.words(turn, _TALK, known, quiet=True)}
    known = asker.known(turn, _CHOOSE, vars(slots), slots.persona, **more)
    reader = NumberReader(NumberQuestion(slots.low, slots.high, whole=slots.integer))
    decision = await asker.ask(turn, _CHOOSE, known, reader)
    if own:
        reason = reason_of(decision.text)
        if reason:
            memory.reasons.append(Note(turn.round, reason))
    number = decision.reading.value
    if number is None:
        return {}
    if not decision.reading.ok:
        return {"choice": -1 if slots.integer else number}
    if slots.integer and not number.is_integer():
        asker.counters.of(_CHOOSE.name).rounded += 1
        number = float(math.floor(number + 0.5))
    return {"choice": settings.to_choice(number)}


def reason_of(text: str) -> str:
    """The reason in an answer: the object's, or all lines but those with the number."""
    found = find_value(text, ("reason", "reasoning", "explanation"))
    if isinstance(found.value, str):
        return found.value.strip()
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    return " ".join(line for line in lines if len(line.split()) > 3)
