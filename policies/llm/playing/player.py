"""Language models by the names that studies give them: `llm:MODEL`, or `llm` with the option `model`.

Options are what `LLMSettings.build` takes: `preset`, its fields, and the settings of the scenarios' workflows. Fields
of `Endpoint` may stand beside them: they say where the model is reached, belong to a run, and change nothing in what is
asked.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from llm_coop_envs.core.base_policy import Policy
from llm_coop_envs.errors import SettingsError, WordingError
from llm_coop_envs.policies.llm.chat import LOCAL, Chat
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint, Limits, Retry
from llm_coop_envs.policies.llm.local.server import CONTEXT
from llm_coop_envs.policies.llm.playing.packs import load_pack
from llm_coop_envs.policies.llm.playing.policy import LLMPolicy
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.totals import TotalsByCall
from llm_coop_envs.util.keys import HIDDEN, looks_like_key, scrub

LABEL = "language model"
KIND = "llm"
PRESET = "team_up"
NO_PRESET = "none"
ENDPOINT_FIELDS = tuple(field.name for field in dataclasses.fields(Endpoint) if field.name != "model")

# Names under which providers take keys. Values under them are never accepted from a study or a command line.
_SECRET = re.compile(r"api[-_]?key$|^authorization$|secret$|password$|(access|auth|bearer)[-_]?token$", re.IGNORECASE)
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]*")
_NESTED: Mapping[str, type[Limits] | type[Retry]] = {"limits": Limits, "retry": Retry}


class ModelPlayer(LLMPolicy):
    """A language model in a study; it also records its calls, tokens and cost."""

    def __init__(self, chat: Chat, settings: LLMSettings) -> None:
        super().__init__(chat, settings)
        self._tally = TotalsByCall(chat)
        self.chat = self._tally

    def record(self) -> dict[str, Any]:
        """The counts and usage of an episode's calls, as plain data; the same however often the run was resumed."""
        personas = {seat: name for seat, name in self.personas().items() if name != "none"}
        used = self._tally.to_json()
        counts = self.counters.to_json()
        return {
            "seats": list(self.episode.seats),
            **({"personas": personas} if personas else {}),
            "models": dict(sorted(self._tally.models.items())),
            "calls": {call: {**counts.get(call, {}), **used.get(call, {})} for call in sorted({*counts, *used})},
        }


def settle(argument: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """Split a study's policy into model, policy options and endpoint fields, however it is spelled.

    Args:
        argument: the model, or empty.
        options: the study's options.

    Returns:
        The model; the policy's options; the endpoint's fields.

    Raises:
        SettingsError: no model is named, or two are, or an option holds what looks like a key.
    """
    for name, inner, text in _texts("", "", options):
        if scrub(text) != text or _SECRET.search(inner):
            # The value is not shown: it would end up in logs and in the run's folder.
            raise SettingsError(
                name, HIDDEN, "looks like a key; keys stay in environment variables, and key_env names the variable"
            )
    if looks_like_key(argument):
        reason = "looks like a key; name the model, and put the key into an environment variable that key_env names"
        raise SettingsError("model", HIDDEN, reason)
    named = options.get("model")
    if named is not None and (not isinstance(named, str) or not named.strip()):
        raise SettingsError("model", named, "must name a model, such as openai/gpt-4o-mini")
    if argument and named and argument != named:
        raise SettingsError("model", named, f"the policy's name says {argument}; name one model")
    model = argument or named
    if not model:
        raise SettingsError("policy", KIND, "needs a model: llm:MODEL, the option 'model', or --model")
    own = {name: value for name, value in options.items() if name != "model" and name not in ENDPOINT_FIELDS}
    return model, own, {name: options[name] for name in ENDPOINT_FIELDS if name in options}


def build_settings(argument: str, options: Mapping[str, Any]) -> LLMSettings:
    """Build the settings of a policy's options.

    Raises:
        SettingsError: an option is unknown or impossible.
    """
    model, own, _ = settle(argument, options)
    preset = own.pop("preset", PRESET)
    settings = LLMSettings.build(None if preset == NO_PRESET else preset, model=model, **own)
    if model.startswith(LOCAL) and settings.context_tokens > CONTEXT:
        raise SettingsError(
            "context_tokens", settings.context_tokens, f"{model} is served with {CONTEXT} for each question at most"
        )
    return settings


def build_endpoint(model: str, fields: Mapping[str, Any]) -> Endpoint:
    """Build the endpoint of a model.

    Args:
        model: the model.
        fields: fields of `Endpoint`; `limits` and `retry` may be mappings.

    Raises:
        SettingsError: a field is unknown or impossible.
    """
    arguments = dict(fields)
    variable = arguments.get("key_env")
    if isinstance(variable, str) and not _VARIABLE.fullmatch(variable) and variable not in os.environ:
        # A key that was put here instead of its variable's name must not end up in a log or in the run's folder.
        raise SettingsError("key_env", HIDDEN, "must name an environment variable that is set; never the key itself")
    for name, kind in _NESTED.items():
        value = arguments.get(name)
        if isinstance(value, Mapping):
            names = [field.name for field in dataclasses.fields(kind)]
            unknown = [key for key in value if key not in names]
            if unknown:
                raise SettingsError(name, unknown[0], f"is not known here; there are {', '.join(names)}")
            value = dict(value)
            if "most" in value and isinstance(value["most"], int):
                value.setdefault("start", max(1, min(Limits().start, value["most"])))
            arguments[name] = kind(**value)
        elif value is not None and not isinstance(value, kind):
            raise SettingsError(name, value, "must be a mapping of names to values")
    return Endpoint(model=model, **arguments)


def check(scenario: str, argument: str, options: Mapping[str, Any]) -> None:
    """Check that the policy can be made, without any request.

    Raises:
        LlmCoopError: it cannot be made; a `SettingsError` names the option.
    """
    model, _, endpoint = settle(argument, options)
    build_endpoint(model, endpoint)
    settings = build_settings(argument, options)
    try:
        prompts = load_pack(settings.pack).prompts(scenario)
    except WordingError as error:
        reason = str(error).removeprefix(f"pack={settings.pack!r}: ")
        raise SettingsError("pack", settings.pack, reason) from error
    for name in settings.personas:
        prompts.persona(name)


def make(scenario: str, argument: str, options: Mapping[str, Any], chat: Chat | None = None) -> Policy:
    """Make the policy. With neither a chat nor a scenario, it opens a chat of its own; see `StandaloneChat`.

    Raises:
        SettingsError: there is no chat to ask.
    """
    if chat is None and scenario:
        raise SettingsError("policy", KIND, f"a language model plays {scenario} only where a chat is open")
    if chat is None:
        from llm_coop_envs.policies.llm.asking.standalone import StandaloneChat

        options = dict(options)
        folder = options.pop("folder", None)
        model, _, endpoint = settle(argument, options)
        chat = StandaloneChat(build_endpoint(model, endpoint), None if folder is None else Path(folder))
    return ModelPlayer(chat, build_settings(argument, options))


def describe(argument: str, options: Mapping[str, Any], played: Iterable[str] | None = None) -> dict[str, Any]:
    """What a run records of the policy: all settings, the pack with its hash, how tokens are counted.

    Args:
        argument: the model, or empty.
        options: the study's options.
        played: the names of the scenarios that it plays; all by default.
    """
    return LLMPolicy(_NoChat(), build_settings(argument, options)).describe(played)


class _NoChat:
    """A chat for a policy that is only described."""

    async def ask(self, key: Any, request: Any) -> Any:
        """Refuse."""
        raise NotImplementedError


def _texts(name: str, inner: str, value: Any) -> Iterator[tuple[str, str, str]]:
    """Yield all texts in options: the option's name, the innermost key above the text, and the text."""
    if isinstance(value, str):
        yield name, inner, value
    elif isinstance(value, Mapping):
        for key, inner_value in value.items():
            yield from _texts(name or str(key), str(key), inner_value)
    elif isinstance(value, list | tuple):
        for inner_value in value:
            yield from _texts(name, inner, inner_value)
