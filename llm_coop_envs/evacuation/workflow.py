"""The evacuation with a language model (Wu et al. 2024): talk, feeling, judgement of the exits, exit, and moves."""

from __future__ import annotations

import functools
from typing import Any

from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.evacuation.room import MOVES
from llm_coop_envs.evacuation.slots import EvacuationSlots
from llm_coop_envs.policies.base import Action
from llm_coop_envs.policies.llm.parsing import Choice, OptionQuestion
from llm_coop_envs.policies.llm.playing.asker import Asker, Turn, call_of
from llm_coop_envs.policies.llm.playing.memory import Note
from llm_coop_envs.policies.llm.playing.packs import Pack
from llm_coop_envs.policies.llm.playing.readers import OptionReader

_TALK, _PANIC, _EVALUATE, _EXIT, _MOVE = (
    call_of("evacuation", name) for name in ("talk", "panic", "evaluate", "exit", "move")
)
_MOVE_NAMES = tuple(name for name, _, _ in MOVES)


async def play_evacuation(asker: Asker, turn: Turn, slots: EvacuationSlots) -> Action:
    """An evacuee's turn."""
    persona = persona_words(slots, asker.pack)
    if slots.phase == TALK:
        if asker.settings.feeling_in_talk:
            await _feel(asker, turn, slots, persona)
        known = _known(asker, turn, slots, persona, _TALK)
        return {"message": await asker.words(turn, _TALK, known, quiet=True)}
    if slots.asked == "move":
        return await _move(asker, turn, slots)
    if asker.settings.panic:
        await _feel(asker, turn, slots, persona)
    if asker.settings.evaluate:
        text = await asker.words(turn, _EVALUATE, _known(asker, turn, slots, persona, _EVALUATE))
        turn.memory.evaluation = Note(slots.round, text) if text else None
    names = tuple((option.name, asker.pack.word(option.name)) for option in slots.options)
    choices = tuple(Choice(option.choice, both[::-1]) for option, both in zip(slots.options, names, strict=True))
    reader = OptionReader(OptionQuestion(choices, key=_EXIT.key), tuple(shown for _, shown in names))
    decision = await asker.ask(turn, _EXIT, _known(asker, turn, slots, persona, _EXIT), reader)
    return {"choice": decision.reading.value} if decision.reading.ok else {}


async def _feel(asker: Asker, turn: Turn, slots: EvacuationSlots, persona: str) -> None:
    """Ask for this round's feeling, once."""
    memory = turn.memory
    if memory.feeling is not None and memory.feeling.round == slots.round:
        return
    text = await asker.words(turn, _PANIC, _known(asker, turn, slots, persona, _PANIC))
    memory.feeling = Note(slots.round, text) if text else None


async def _move(asker: Asker, turn: Turn, slots: EvacuationSlots) -> Action:
    known = asker.known(turn, _MOVE, vars(slots))
    reader = _move_reader(tuple((o.choice, o.letter, o.name) for o in slots.options), asker.pack)
    decision = await asker.ask(turn, _MOVE, known, reader)
    return {"choice": decision.reading.value} if decision.reading.ok else {}


@functools.lru_cache(maxsize=4096)
def _move_reader(options: tuple[tuple[int, str, str], ...], pack: Pack) -> OptionReader:
    """Reads the answer to a list of moves (choice, letter, name); few lists come back again and again."""
    choices = tuple(Choice(choice, _spellings(name, pack.word(name)), letter) for choice, letter, name in options)
    labels = tuple(f"{letter}) {pack.word(name)}" for _, letter, name in options)
    every = tuple(spelling for name in _MOVE_NAMES for spelling in _spellings(name, pack.word(name)))
    return OptionReader(OptionQuestion(choices, every, key=_MOVE.key, loose=False), labels)


def _spellings(name: str, word: str) -> tuple[str, ...]:
    """The spellings of a move's name: "down and left" is also "down-left"."""
    return tuple(dict.fromkeys((word, name, name.replace(" and ", " "))))


def _known(asker: Asker, turn: Turn, slots: EvacuationSlots, persona: str, call: Any) -> dict[str, Any]:
    memory = turn.memory
    feeling = memory.feeling if memory.feeling is not None and memory.feeling.round == slots.round else None
    judged = memory.evaluation if memory.evaluation is not None and memory.evaluation.round == slots.round else None
    return asker.known(turn, call, vars(slots), persona, feeling=feeling, evaluation=judged)


def persona_words(slots: EvacuationSlots, pack: Pack) -> str:
    """The environment's persona in a pack's words: body, then mind, or unwillingness to help and then mind."""
    traits: list[str] = []
    if slots.strong is not None:
        traits.append("strong" if slots.strong else "weak")
    if not slots.helpful:
        traits.append("selfish")
    if slots.confident is not None:
        traits.append("confident" if slots.confident else "afraid")
    return " ".join(pack.traits[trait] for trait in traits)
