"""Price competition with a language model: talk, a plan every so many rounds, and a price (Wu et al. 2024)."""

from __future__ import annotations

from typing import Any

from llm_coop_envs.bertrand.slots import BertrandSlots
from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.policies.base import Action
from llm_coop_envs.policies.llm.parsing import NumberQuestion
from llm_coop_envs.policies.llm.playing.asker import Asker, Turn, call_of
from llm_coop_envs.policies.llm.playing.memory import Note
from llm_coop_envs.policies.llm.playing.packs import values_for
from llm_coop_envs.policies.llm.playing.personas import Persona
from llm_coop_envs.policies.llm.playing.readers import NumberReader, WordReader

_TALK, _PLAN, _PRICE = (call_of("bertrand", name) for name in ("talk", "plan", "price"))


async def play_bertrand(asker: Asker, turn: Turn, slots: BertrandSlots, first_firm: Persona | None) -> Action:
    """A firm's turn.

    Args:
        asker: asks the model.
        turn: whose turn it is.
        slots: what the firm knows.
        first_firm: the first firm's persona, for the authors' mistake that the settings can repeat.
    """
    settings = asker.settings
    if slots.phase == TALK:
        if settings.talk_plan_order == "plan_first":
            await _plan(asker, turn, slots, first_firm)
        bins = slots.bins if settings.statistics_in_talk else ()
        known = asker.known(turn, _TALK, vars(slots), **{**_private(asker, turn), "bins": bins})
        return {"message": await asker.words(turn, _TALK, known, quiet=True)}
    planned = await _plan(asker, turn, slots, first_firm)
    known = asker.known(turn, _PRICE, vars(slots), **_private(asker, turn))
    allowed = tuple(float(f"{price:.6g}") for _, price in slots.choices)
    low, high = (min(allowed), max(allowed)) if allowed else (slots.floor, slots.cap)
    reader = NumberReader(NumberQuestion(low, high, allowed=allowed, key=_PRICE.key))
    before = planned + "\n\n" if planned and settings.repeat_planning_prompt else ""
    decision = await asker.ask(turn, _PRICE, known, reader, before=before)
    price = decision.reading.value
    if price is None:
        return {}
    if not slots.choices:
        # Out of bounds, it is moved to the nearest bound by the environment, and flagged.
        return {"choice": price}
    return {"choice": slots.choices[allowed.index(price)][0] if decision.reading.ok else -1}


async def _plan(asker: Asker, turn: Turn, slots: BertrandSlots, first_firm: Persona | None) -> str:
    """Make a new plan if this is a round for it and none was asked for yet; return the planning question."""
    memory = turn.memory
    if not slots.may_replan or memory.planned == slots.round:
        return ""
    memory.planned = slots.round
    planner = turn
    if asker.settings.first_firms_persona and slots.exchanges:
        planner = Turn(turn.episode, turn.agent, turn.step, turn.round, first_firm, memory)
    known = asker.known(planner, _PLAN, vars(slots), **_private(asker, turn))
    decision = await asker.ask(planner, _PLAN, known, WordReader(_PLAN.key, turn.agent))
    question = ""
    if asker.settings.repeat_planning_prompt:
        question = asker.pack.render(_PLAN.template, values_for(_PLAN, known))
    if decision.reading.ok and decision.reading.value:
        memory.plans.append(Note(slots.round, decision.reading.value))
        # No question shows more than the window, so that a run of any length stays small.
        del memory.plans[: -max(1, asker.settings.plan_memory)]
    return question


def _private(asker: Asker, turn: Turn) -> dict[str, Any]:
    plans = turn.memory.plans
    shown = asker.settings.plan_memory
    return {"plan": plans[-1] if plans else None, "plans": tuple(plans[-shown:]) if shown else ()}
