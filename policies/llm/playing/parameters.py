"""Model parameters: sampling, and the length of answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from llm_coop_envs.core.settings import Settings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.util.checks import check_choice, check_int, check_number, suggestion

_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh")


@dataclass(frozen=True, kw_only=True)
class ModelParameters(Settings):
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
        check_number(self, "temperature", 0.0, 5.0, optional=True)
        check_number(self, "top_p", 0.0, 1.0, above=True, optional=True)
        check_int(self, "max_tokens", 1, optional=True)
        check_int(self, "seed", -(2**63), 2**63 - 1, optional=True)
        stop: Any = (self.stop,) if isinstance(self.stop, str) else self.stop
        if not isinstance(stop, list | tuple) or any(not isinstance(text, str) or not text for text in stop):
            raise SettingsError("stop", self.stop, "must be a text, or a list of texts that are not empty")
        object.__setattr__(self, "stop", tuple(stop))
        if self.reasoning_effort is not None:
            check_choice(self, "reasoning_effort", _EFFORTS)
        if not isinstance(self.extra, Mapping):
            raise SettingsError("extra", self.extra, "must be a mapping of field names to values")

    def to_json(self) -> dict[str, Any]:
        """The parameters that are set, as plain data."""
        return {name: value for name, value in super().to_json().items() if value not in (None, [], {})}

    @classmethod
    def read(cls, data: object, where: str) -> ModelParameters:
        """Make parameters from a mapping, as in a study file.

        Raises:
            SettingsError: a name is unknown, or a value impossible.
        """
        if isinstance(data, ModelParameters):
            return data
        if not isinstance(data, Mapping):
            raise SettingsError(where, data, "must be a mapping such as {temperature: 0.7, max_tokens: 100}")
        names = cls.__dataclass_fields__
        for name in data:
            if name not in names:
                raise SettingsError(where, name, f"is no model parameter; {suggestion(str(name), names)}")
        return cls(**data)
