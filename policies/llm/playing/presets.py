"""The papers' model parameters as presets of `LLMSettings`, each number with its source.

The models themselves (gpt-4-0314, gpt-3.5-turbo-0613, claude-3-sonnet-20240229) are mostly retired: a preset sets
everything but the model.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from llm_coop_envs.core.settings import check_int, check_number, suggestion
from llm_coop_envs.errors import SettingsError

_EFFORTS = (None, "none", "minimal", "low", "medium", "high", "xhigh")


@dataclass(frozen=True, kw_only=True)
class ModelParameters:
    """How a model is asked; `None` leaves a parameter to the provider.

    Attributes:
        temperature: 0 or more.
        top_p: above 0 and at most 1.
        max_tokens: the longest answer in tokens. Reasoning models spend it on hidden thoughts too: the papers' 100
            would leave them without an answer, so leave it open for them.
        stop: texts that end the answer.
        seed: the provider's sampling seed.
        reasoning_effort: for reasoning models.
        extra: further fields of the request body.
    """

    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    reasoning_effort: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every field."""
        if self.temperature is not None:
            check_number(self, "temperature", 0.0, 5.0)
        if self.top_p is not None:
            check_number(self, "top_p", 0.0, 1.0, above=True)
        if self.max_tokens is not None:
            check_int(self, "max_tokens", 1)
        if self.seed is not None:
            check_int(self, "seed", -(2**63), 2**63 - 1)
        stop: Any = (self.stop,) if isinstance(self.stop, str) else self.stop
        if not isinstance(stop, list | tuple) or any(not isinstance(text, str) or not text for text in stop):
            raise SettingsError("stop", self.stop, "must be a text, or a list of texts that are not empty")
        object.__setattr__(self, "stop", tuple(stop))
        if self.reasoning_effort not in _EFFORTS:
            raise SettingsError(
                "reasoning_effort", self.reasoning_effort, f"must be one of {', '.join(map(str, _EFFORTS))}"
            )
        if not isinstance(self.extra, Mapping):
            raise SettingsError("extra", self.extra, "must be a mapping of field names to values")

    @classmethod
    def read(cls, given: object, where: str) -> ModelParameters:
        """Parameters from a mapping, as in a study file.

        Raises:
            SettingsError: a name is unknown, or a value impossible.
        """
        if isinstance(given, ModelParameters):
            return given
        if not isinstance(given, Mapping):
            raise SettingsError(where, given, "must be a mapping such as {temperature: 0.7, max_tokens: 100}")
        names = cls.__dataclass_fields__
        for name in given:
            if name not in names:
                raise SettingsError(where, name, f"is no model parameter; {suggestion(str(name), names)}")
        return cls(**given)


# Wu et al. 2024 ("Shall We Team Up"): authors' code. top_p is 1 in all of it. The evacuation's 512 and temperature 0
# hold for all of its calls; neither paper nor code sets anything phase by phase.
_KBC = {"temperature": 0.7, "top_p": 1.0, "max_tokens": 128}
_BERTRAND = {"temperature": 0.7, "top_p": 1.0, "max_tokens": 100}
_EVACUATION = {"temperature": 0.0, "top_p": 1.0, "max_tokens": 512}
_TEAM_UP = {"kbc": _KBC, "bertrand": _BERTRAND, "evacuation": _EVACUATION}

PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        # Authors' code of Wu et al. 2024 (arXiv version 3), all three scenarios.
        "team_up": {"parameters": _TEAM_UP},
        # The text of the same paper: 256 tokens in the number contest, 128 in the price competition.
        "team_up_text": {
            "parameters": {
                **_TEAM_UP,
                "kbc": {**_KBC, "max_tokens": 256},
                "bertrand": {**_BERTRAND, "max_tokens": 128},
            }
        },
        # The same paper's number contest with Claude 3 Sonnet: temperature 1.0.
        "team_up_claude": {"parameters": {**_TEAM_UP, "kbc": {"temperature": 1.0, "max_tokens": 256}}},
        # "Shall We Talk" (arXiv version 1): number contest at temperature 1.0 with 256 tokens, the number on the
        # first line.
        "shall_we_talk": {
            "parameters": {**_TEAM_UP, "kbc": {"temperature": 1.0, "top_p": 1.0, "max_tokens": 256}},
            "number_first": True,
        },
        # Pan et al. 2024 ("Very Large-Scale Multi-Agent Simulation in AgentScope"): temperature 1.0, 1024 tokens, a
        # thought and then a number; players keep what they thought before. Their second call that extracts the number
        # is our repair question.
        "large_scale": {
            "parameters": {"kbc": {"temperature": 1.0, "max_tokens": 1024}},
            "answers": "reason",
            "own_reasons": 100,
        },
    }
)
