"""Personas: who a model is told to be, in the words of a pack or of the user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from llm_coop_envs.core.settings import suggestion
from llm_coop_envs.errors import SettingsError, WordingError
from llm_coop_envs.policies.llm.playing.calls import CALLS, SCENARIOS, calls_of

ANY = "any"
#: What the evacuation's own personas are made of (Wu et al. 2024: physical x mental, and unwilling to help).
TRAITS = ("strong", "weak", "confident", "afraid", "selfish")


@dataclass(frozen=True)
class Persona:
    """A persona's words for each call.

    Attributes:
        name: its name in the pack; `"own"` for a text of the user's.
        instruction: whether it says outright how to deal with the others.
        texts: the words by (scenario, call); a call that is not in it shows nothing.
        scenarios: the scenarios it has words for.
    """

    name: str
    instruction: bool
    texts: Mapping[tuple[str, str], str]
    scenarios: frozenset[str]

    def text(self, scenario: str, call: str) -> str:
        """The words shown at a call; empty if it shows none there."""
        return self.texts.get((scenario, call), "")

    @classmethod
    def of_text(cls, text: str) -> Persona:
        """A persona that says the same everywhere."""
        return cls("own", False, dict.fromkeys(CALLS, text.strip()), frozenset(SCENARIOS))


def read_personas(data: object, where: str) -> tuple[Mapping[str, Persona], Mapping[str, str]]:
    """Read a pack's `personas.yaml`.

    Args:
        data: what the file holds.
        where: the file, for errors.

    Returns:
        The personas by name, and the words of the traits.

    Raises:
        WordingError: the file does not hold what is said above.
    """
    if not isinstance(data, Mapping) or not set(data) <= {"personas", "traits"}:
        raise WordingError(f"{where}: must hold 'personas' and 'traits'")
    traits = data.get("traits", {})
    if not isinstance(traits, Mapping) or set(traits) != set(TRAITS):
        raise WordingError(f"{where}: 'traits' must hold a text for each of {', '.join(TRAITS)}")
    personas = {}
    for name, given in (data.get("personas") or {}).items():
        personas[str(name)] = _read_one(str(name), given, where)
    return MappingProxyType(personas), MappingProxyType({str(k): _words(v, f"{where}: {k}") for k, v in traits.items()})


def _read_one(name: str, given: object, where: str) -> Persona:
    if not isinstance(given, Mapping):
        raise WordingError(f"{where}: persona '{name}' must hold texts by scenario, or under 'any'")
    instruction = given.get("instruction", False)
    if not isinstance(instruction, bool):
        raise WordingError(f"{where}: persona '{name}': instruction must be true or false")
    texts: dict[tuple[str, str], str] = {}
    for scenario, words in given.items():
        if scenario == "instruction":
            continue
        if scenario != ANY and scenario not in SCENARIOS:
            hint = suggestion(str(scenario), (ANY, *SCENARIOS))
            raise WordingError(f"{where}: persona '{name}': there is no scenario '{scenario}'; {hint}")
        for one in SCENARIOS if scenario == ANY else (scenario,):
            texts.update(_by_call(name, one, words, where))
    return Persona(name, instruction, MappingProxyType(texts), frozenset(scenario for scenario, _ in texts))


def _by_call(name: str, scenario: str, words: Any, where: str) -> dict[tuple[str, str], str]:
    calls = [call.name for call in calls_of(scenario)]
    if isinstance(words, str):
        words = {ANY: words}
    if not isinstance(words, Mapping):
        raise WordingError(f"{where}: persona '{name}', {scenario}: must be a text, or texts by call")
    texts: dict[tuple[str, str], str] = {}
    for call, text in words.items():
        if call != ANY and call not in calls:
            hint = suggestion(str(call), (ANY, *calls))
            raise WordingError(f"{where}: persona '{name}', {scenario}: there is no call '{call}'; {hint}")
        for one in calls if call == ANY else (call,):
            texts[scenario, one] = _words(text, f"{where}: persona '{name}', {scenario}")
    return texts


def _words(text: object, where: str) -> str:
    if not isinstance(text, str) or not text.strip():
        raise WordingError(f"{where}: must be a text that is not empty")
    return " ".join(text.split())


def find_persona(personas: Mapping[str, Persona], name: str, scenario: str, pack: str) -> Persona | None:
    """The persona that a setting names.

    Args:
        personas: a pack's personas.
        name: a name; `"none"` for no persona; or, if it holds a space, the words themselves.
        scenario: what is played.
        pack: the pack's name, for errors.

    Raises:
        SettingsError: there is no such persona, or it has no words for this scenario.
    """
    if name == "none":
        return None
    if " " in name.strip():
        return Persona.of_text(name)
    if name not in personas:
        raise SettingsError("personas", name, f"is no persona of pack {pack}; {suggestion(name, ['none', *personas])}")
    persona = personas[name]
    if scenario not in persona.scenarios:
        raise SettingsError("personas", name, f"has no words for {scenario} in pack {pack}; choose another one")
    return persona
