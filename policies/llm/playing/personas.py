"""Personas: texts that tell a model who it is, from a pack or from the user."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from llm_coop_envs.errors import WordingError
from llm_coop_envs.util.checks import suggestion

ANY = "any"
INSTRUCTION = "instruction"
BACKGROUND = "background"


@dataclass(frozen=True)
class Persona:
    """A persona's texts in one scenario.

    Attributes:
        name: its name in the pack; `"own"` for a text of the user's.
        texts: the texts by call; the one under `"any"` is for all calls without a text of their own.
        instruction: whether it says outright how to treat the others.
    """

    name: str
    texts: Mapping[str, str]
    instruction: bool = False

    def text(self, call: str) -> str:
        """The text shown at a call; empty if there is none."""
        return self.texts.get(call) or self.texts.get(ANY, "")


def with_background(background: str, persona: Persona | None) -> Persona | None:
    """Put a text about the player's background before the texts of a persona."""
    if not background:
        return persona
    if persona is None:
        return Persona(BACKGROUND, {ANY: background})
    texts = {ANY: background, **{call: f"{background} {text}" for call, text in persona.texts.items()}}
    return Persona(persona.name, texts, persona.instruction)


def read_personas(data: object, calls: Collection[str], where: str) -> dict[str, Persona]:
    """Read a `personas.yaml`: by name a text, or texts by call, with `instruction: true` where it is one.

    Args:
        data: what the file holds.
        calls: the calls of the scenario that the file is for; empty for all scenarios.
        where: the file, for errors.

    Raises:
        WordingError: the file holds anything else.
    """
    if not isinstance(data, Mapping):
        raise WordingError(f"{where}: must hold personas by name")
    return {str(name): _read_persona(str(name), texts, calls, where) for name, texts in data.items()}


def _read_persona(name: str, data: Any, calls: Collection[str], where: str) -> Persona:
    if isinstance(data, str):
        data = {ANY: data}
    if not isinstance(data, Mapping):
        raise WordingError(f"{where}: persona '{name}' must be a text, or texts by call")
    instruction = data.get(INSTRUCTION, False)
    if not isinstance(instruction, bool):
        raise WordingError(f"{where}: persona '{name}': instruction must be true or false")
    texts = {str(call): text for call, text in data.items() if call != INSTRUCTION}
    for call, text in texts.items():
        if call != ANY and call not in calls:
            hint = suggestion(call, (ANY, *calls))
            raise WordingError(f"{where}: persona '{name}': there is no call '{call}'; {hint}")
        if not isinstance(text, str) or not text.strip():
            raise WordingError(f"{where}: persona '{name}', {call}: must be a text that is not empty")
    return Persona(name, {call: " ".join(text.split()) for call, text in texts.items()}, instruction)
