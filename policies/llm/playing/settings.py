"""Settings of the language model policy."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from llm_coop_envs.core.settings import check_bool, check_choice, check_int, plain, suggestion
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.playing.calls import CALLS, SCENARIOS
from llm_coop_envs.policies.llm.playing.presets import PRESETS, ModelParameters

#: The least room a prompt is given, in tokens.
MIN_PROMPT = 256

_OPEN = ModelParameters()


@dataclass(frozen=True, kw_only=True)
class LLMSettings:
    """Which model plays, how it is asked, and what it remembers.

    Attributes:
        model: the model's name as the provider knows it.
        pack: the prompt pack: a shipped one's name, or a folder.
        answers: how answers are asked for: `"plain"` (the papers' formats), `"json"` (an object, with a JSON schema
            in the request) or `"reason"` (reasoning first, the answer on the last line).
        parameters: model parameters by scenario (`kbc`), by call (`bertrand/price`) or for everything (`default`);
            the most specific entry that exists is taken, whole. The default leaves all to the provider; the papers'
            are in `PRESETS`.
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
        plan_memory: how many own plans the planning call shows (20, authors' code).
        talk_plan_order: `"talk_first"`: firms plan after talking, without seeing the talk of that round (authors'
            code); `"plan_first"`: they plan before, and talk with the new plan (the text's figure).
        statistics_in_talk: show averages in talk too when the environment gives them (authors' code); the text names
            only planning and pricing.
        repeat_planning_prompt: put the whole planning question before the price question in planning rounds (the
            authors' code does so by mistake).
        first_firms_persona: plan with the first firm's persona, whoever plans, where firms talk (likewise a mistake).
        number_first: in the number contest ask for the number on the first line and the reason on the second (arXiv
            version 1) instead of the other way round (version 3).
        own_reasons: how many of its own earlier reasons a player of the number contest is shown. 0 in Wu et al. 2024.
        panic: ask evacuees how they feel before they choose an exit (published).
        evaluate: ask them to weigh up the exits before (published).
        feeling_in_talk: ask for the feeling before the talk and show it there (the text); in the authors' code it
            comes after.
    """

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
    plan_memory: int = 20
    talk_plan_order: str = "talk_first"
    statistics_in_talk: bool = True
    repeat_planning_prompt: bool = False
    first_firms_persona: bool = False
    number_first: bool = False
    own_reasons: int = 0
    panic: bool = True
    evaluate: bool = True
    feeling_in_talk: bool = False

    def __post_init__(self) -> None:
        """Check every field, alone and with the others."""
        for name in ("model", "pack"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise SettingsError(name, getattr(self, name), "must be a name")
        if not isinstance(self.system, str):
            raise SettingsError("system", self.system, "must be a text")
        check_choice(self, "answers", ("plain", "json", "reason"))
        check_choice(self, "deal", ("in_order", "shuffled"))
        check_choice(self, "talk_plan_order", ("talk_first", "plan_first"))
        for name in (
            "summarise",
            "statistics_in_talk",
            "repeat_planning_prompt",
            "first_firms_persona",
            "number_first",
            "panic",
            "evaluate",
            "feeling_in_talk",
        ):
            check_bool(self, name)
        check_int(self, "persona_from", 0)
        check_int(self, "answer_tokens", 1)
        check_int(self, "summary_words", 10, 5000)
        check_int(self, "repairs", 0, 1)
        check_int(self, "tries", 0, 10)
        check_int(self, "plan_memory", 0)
        check_int(self, "own_reasons", 0)
        self._read_personas()
        self._read_parameters()
        check_int(self, "context_tokens", 1)
        for call in CALLS.values():
            if self.prompt_tokens(call.scenario, call.name) < MIN_PROMPT:
                raise SettingsError(
                    "context_tokens",
                    self.context_tokens,
                    f"leaves a prompt less than {MIN_PROMPT} tokens beside the answer's "
                    f"({call.scenario}/{call.name}); raise it or lower max_tokens",
                )
        if self.feeling_in_talk and not self.panic:
            raise SettingsError("feeling_in_talk", True, "needs panic=True, which asks for the feeling")

    @classmethod
    def build(cls, preset: str | None = None, **given: Any) -> LLMSettings:
        """Make settings from a preset's fields and the given ones, which win.

        Args:
            preset: a name from `PRESETS`, or `None`.
            **given: fields by name.

        Raises:
            SettingsError: an unknown preset or field, or an impossible value.
        """
        names = [f.name for f in fields(cls)]
        for name, value in given.items():
            if name not in names:
                raise SettingsError(name, value, f"is no setting of {cls.__name__}; {suggestion(name, names)}")
        if preset is not None and preset not in PRESETS:
            raise SettingsError("preset", preset, f"is no preset of {cls.__name__}; {suggestion(str(preset), PRESETS)}")
        return cls(**{**PRESETS.get(preset or "", {}), **given})

    def parameters_for(self, scenario: str, call: str) -> ModelParameters:
        """The model parameters of a call."""
        return self._chosen.get((scenario, call)) or self._choose(scenario, call)

    def _choose(self, scenario: str, call: str) -> ModelParameters:
        table: Mapping[str, ModelParameters] = self.parameters
        names = (f"{scenario}/{call}", scenario, "default")
        found = next((table[name] for name in names if name in table), _OPEN)
        self._chosen[scenario, call] = found
        return found

    @functools.cached_property
    def _chosen(self) -> dict[tuple[str, str], ModelParameters]:
        return {}

    def prompt_tokens(self, scenario: str, call: str) -> int:
        """How long a call's prompt may be, in tokens."""
        answer = self.parameters_for(scenario, call).max_tokens
        return self.context_tokens - (self.answer_tokens if answer is None else answer)

    def to_json(self) -> dict[str, Any]:
        """All fields as plain data that `build` accepts again."""
        data: dict[str, Any] = {f.name: plain(getattr(self, f.name)) for f in fields(self)}
        data["parameters"] = {
            name: {f.name: plain(getattr(one, f.name)) for f in fields(one) if getattr(one, f.name) != f.default}
            for name, one in self.parameters.items()
        }
        for one in data["parameters"].values():
            if not one.get("extra"):
                one.pop("extra", None)
        return data

    def _read_personas(self) -> None:
        given: Any = (self.personas,) if isinstance(self.personas, str) else self.personas
        if not isinstance(given, list | tuple) or any(not isinstance(name, str) or not name.strip() for name in given):
            raise SettingsError("personas", self.personas, "must be a persona, or a list of personas")
        object.__setattr__(self, "personas", tuple(given))

    def _read_parameters(self) -> None:
        if not isinstance(self.parameters, Mapping):
            raise SettingsError("parameters", self.parameters, "must be a mapping such as {kbc: {temperature: 0.7}}")
        known = ("default", *SCENARIOS, *(f"{scenario}/{call}" for scenario, call in CALLS))
        for name in self.parameters:
            if name not in known:
                raise SettingsError("parameters", name, f"is no scenario or call; {suggestion(str(name), known)}")
        read = {name: ModelParameters.read(one, f"parameters.{name}") for name, one in self.parameters.items()}
        object.__setattr__(self, "parameters", read)
