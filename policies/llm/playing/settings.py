"""Settings of the language model policy."""

from __future__ import annotations

import functools
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from math import inf
from typing import Any, ClassVar

from typing_extensions import Self

from llm_coop_envs.core.settings import Settings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.playing.calls import WorkflowClass, workflow_classes
from llm_coop_envs.policies.llm.playing.parameters import ModelParameters
from llm_coop_envs.policies.llm.playing.presets import presets
from llm_coop_envs.util.checks import suggestion

#: The smallest number of tokens that settings must leave for a prompt.
MIN_PROMPT = 256

_OPEN = ModelParameters()


@dataclass(frozen=True, kw_only=True)
class LLMSettings(Settings):
    """Which model plays, how it is asked, and what it remembers.

    `build` takes the settings of the scenarios' workflows (`panic`, `plan_memory`, ...) by name beside these: each is
    known if the workflow of any scenario has it, holds wherever a workflow has it, and changes nothing elsewhere. So
    one policy can be given to a study of several scenarios. `temperature` replaces that of all `parameters`.

    Attributes:
        model: the model's name as the provider knows it.
        pack: the prompt pack: a shipped one's name, or a folder; the preset `fish` has one of its own.
        answers: how answers are asked for: `"plain"` (the papers' formats), `"json"` (an object, with a JSON schema
            in the request) or `"reason"` (reasoning first, the answer on the last line).
        parameters: model parameters by scenario (`kbc`), by call (`bertrand/price`) or for everything (`default`);
            the most specific entry that exists is taken, whole. The default leaves all to the provider; the papers'
            are in the presets.
        system: a system message; none in the papers.
        personas: who the seats are: names of the pack's personas, `"none"`, or a persona's words (what holds a
            space). One for all, or several that are dealt to the seats in blocks of equal size (Wu et al. 2024, arXiv
            version 1: thirds).
        deal: whether the blocks go to the seats `"in_order"` or `"shuffled"` (the same paper).
        persona_from: the first round in which personas show (k in a nested number contest). In the authors' code the
            number contest's first question shows none, which is 1; the firms' selfish persona set in after round 400,
            which is 401.
        context_tokens: the model's context: prompt and answer stay inside it. 8192 as in gpt-4-0314.
        answer_tokens: what is kept free for the answer if `max_tokens` is not set.
        summarise: whether a conversation that does not fit is replaced by the player's own running summary (one more
            call each time); else its oldest messages are left out, and the prompt says how many.
        summary_words: how long a summary may be.
        repairs: how often an answer that could not be read is shown to the model with the question what it meant (0
            or 1; Pan et al. 2024 always do).
        tries: how often the question is put again after that.
        options: settings of the scenarios' workflows by name.
    """

    bounds: ClassVar[Mapping[str, tuple[float, float]]] = {
        "persona_from": (0, inf),
        "context_tokens": (1, inf),
        "answer_tokens": (1, inf),
        "summary_words": (10, 5000),
        "repairs": (0, 1),
        "tries": (0, 10),
    }
    allowed: ClassVar[Mapping[str, Collection[str]]] = {
        "answers": ("plain", "json", "reason"),
        "deal": ("in_order", "shuffled"),
    }

    model: str
    pack: str = "en-a"
    answers: str = "plain"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    system: str = ""
    personas: tuple[str, ...] = ()
    deal: str = "in_order"
    persona_from: int = 0
    context_tokens: int = 8192
    answer_tokens: int = 512
    summarise: bool = False
    summary_words: int = 150
    repairs: int = 1
    tries: int = 1
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the fields that need more than `bounds` and `allowed`."""
        super().__post_init__()
        if isinstance(self.pack, os.PathLike):
            object.__setattr__(self, "pack", os.fspath(self.pack))
        for name in ("model", "pack"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise SettingsError(name, getattr(self, name), "must be a name")
        if not isinstance(self.system, str):
            raise SettingsError("system", self.system, "must be a text")
        self._read_personas()
        workflows = workflow_classes()
        self._check_options(workflows)
        calls = [(scenario, call.name) for scenario, workflow in workflows.items() for call in workflow.calls]
        self._read_parameters(("default", *workflows, *(f"{scenario}/{call}" for scenario, call in calls)))
        for scenario, call in calls:
            if self.prompt_tokens(scenario, call) < MIN_PROMPT:
                raise SettingsError(
                    "context_tokens",
                    self.context_tokens,
                    f"leaves a prompt less than {MIN_PROMPT} tokens beside the answer's ({scenario}/{call}); raise it "
                    "or lower max_tokens",
                )

    @classmethod
    def build(cls, preset: str | None = None, **given: Any) -> Self:
        """Make settings from a preset's fields and the given ones, which win.

        Args:
            preset: a name from `presets()`, or `None`.
            **given: fields, and settings of the scenarios' workflows, by name.

        Raises:
            SettingsError: an unknown preset or field, or an impossible value.
        """
        all_presets = presets()
        if preset is not None and preset not in all_presets:
            raise SettingsError(
                "preset", preset, f"is no preset of {cls.__name__}; {suggestion(str(preset), all_presets)}"
            )
        base = all_presets.get(preset or "", {})
        own = {f.name for f in fields(cls)}
        options = {name: value for name, value in given.items() if name not in own}
        values = {name: value for name, value in given.items() if name in own}
        options = {**base.get("options", {}), **values.pop("options", {}), **options}
        merged = {**base, **values, "options": options}
        if "temperature" in options:
            merged["parameters"] = with_temperature(merged.get("parameters", {}), options.pop("temperature"))
        return cls(**merged)

    def workflow_settings(self, workflow: WorkflowClass) -> Settings:
        """The settings of a scenario's workflow."""
        names = [f.name for f in fields(workflow.settings_type)]
        return workflow.settings_type(**{name: self.options[name] for name in names if name in self.options})

    def parameters_for(self, scenario: str, call: str) -> ModelParameters:
        """The model parameters of a call."""
        return self._parameters_by_call.get((scenario, call)) or self._choose(scenario, call)

    def _choose(self, scenario: str, call: str) -> ModelParameters:
        table: Mapping[str, ModelParameters] = self.parameters
        names = (f"{scenario}/{call}", scenario, "default")
        parameters = next((table[name] for name in names if name in table), _OPEN)
        self._parameters_by_call[scenario, call] = parameters
        return parameters

    @functools.cached_property
    def _parameters_by_call(self) -> dict[tuple[str, str], ModelParameters]:
        return {}

    def prompt_tokens(self, scenario: str, call: str) -> int:
        """How long a call's prompt may be, in tokens."""
        answer = self.parameters_for(scenario, call).max_tokens
        return self.context_tokens - (self.answer_tokens if answer is None else answer)

    def to_json(self) -> dict[str, Any]:
        """All fields, and the workflows' settings that were given, as plain data that `build` accepts again."""
        data = super().to_json()
        return {**data, **data.pop("options")}

    def _check_options(self, workflows: Mapping[str, WorkflowClass]) -> None:
        names = [f.name for f in fields(self) if f.name != "options"]
        names += [f.name for workflow in workflows.values() for f in fields(workflow.settings_type)]
        for name, value in self.options.items():
            if name not in names:
                raise SettingsError(name, value, f"is no setting of {type(self).__name__}; {suggestion(name, names)}")
        for workflow in workflows.values():
            self.workflow_settings(workflow)

    def _read_personas(self) -> None:
        personas: Any = (self.personas,) if isinstance(self.personas, str) else self.personas
        if not isinstance(personas, list | tuple) or any(
            not isinstance(name, str) or not name.strip() for name in personas
        ):
            raise SettingsError("personas", self.personas, "must be a persona, or a list of personas")
        object.__setattr__(self, "personas", tuple(personas))

    def _read_parameters(self, valid_names: tuple[str, ...]) -> None:
        if not isinstance(self.parameters, Mapping):
            raise SettingsError("parameters", self.parameters, "must be a mapping such as {kbc: {temperature: 0.7}}")
        for name in self.parameters:
            if name not in valid_names:
                raise SettingsError("parameters", name, f"is no scenario or call; {suggestion(str(name), valid_names)}")
        read = {name: ModelParameters.read(values, f"parameters.{name}") for name, values in self.parameters.items()}
        object.__setattr__(self, "parameters", read)


def with_temperature(parameters: Any, temperature: float) -> Any:
    """Replace the temperature of all parameters.

    Args:
        parameters: as in `LLMSettings.parameters`, as plain data; anything else is returned as it is, to be refused.
        temperature: the temperature.
    """
    if not isinstance(parameters, Mapping) or not all(isinstance(values, Mapping) for values in parameters.values()):
        return parameters
    return {name: {**values, "temperature": temperature} for name, values in {"default": {}, **parameters}.items()}
