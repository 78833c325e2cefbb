"""What a scenario offers, gathered from its own classes and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any

from gymnasium import spaces

from llm_coop_envs.core.registry import find_scenario, scenarios
from llm_coop_envs.core.scenario import Scenario
from llm_coop_envs.core.settings import PERCEPTION, ScenarioSettings, plain
from llm_coop_envs.util.base_settings import declared
from llm_coop_envs.util.docstrings import attributes, entries
from llm_coop_envs.util.references import load


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting, or one option of a policy.

    Attributes:
        name: its name.
        default: its default value.
        about: what it means, from the docstring.
    """

    name: str
    default: Any
    about: str


@dataclass(frozen=True, kw_only=True)
class PolicyText:
    """A policy, for people.

    Attributes:
        name: its full name.
        about: one line.
        options: what it may be given.
    """

    name: str
    about: str
    options: tuple[Setting, ...]


@dataclass(frozen=True, kw_only=True)
class Description:
    """A scenario, for people.

    Attributes:
        scenario: the scenario.
        about: the environment's own words, as blocks: paragraphs of one line, lists and indented lines as they are.
        settings: all settings, the shared ones last.
        presets: the settings each preset changes.
        phases: the phases of a round with talk.
        agents: the first and last agent with the default settings.
        spaces: the parts of one agent's observation and action.
        features: the names of the numeric features.
        metrics: what each measure of an episode means, by name.
        policies: its scripted policies, and the language model.
        wordings: the shipped wordings.
    """

    scenario: Scenario
    about: tuple[str, ...]
    settings: tuple[Setting, ...]
    presets: Mapping[str, Mapping[str, Any]]
    phases: tuple[str, ...]
    agents: tuple[str, str]
    spaces: Mapping[str, str]
    features: tuple[str, ...]
    metrics: Mapping[str, str]
    policies: tuple[PolicyText, ...]
    wordings: tuple[str, ...]


def describe(name: str) -> Description:
    """Describe a scenario.

    Raises:
        StudyError: there is no such scenario.
    """
    scenario = find_scenario(name)
    env = scenario.environment()
    agent = env.possible_agents[0]
    parts = {
        f"{kind}.{key}": _space_text(space)
        for kind, whole in (("observation", env.observation_space(agent)), ("action", env.action_space(agent)))
        for key, space in _parts(whole).items()
    }
    return Description(
        scenario=scenario,
        about=tuple(_blocks(_before_sections(inspect.getdoc(type(env)) or ""))),
        settings=_settings(scenario.settings_type),
        presets={key: plain(dict(value)) for key, value in scenario.settings_type.presets.items()},
        phases=env.phases,
        agents=(agent, env.possible_agents[-1]),
        spaces=parts,
        features=env.feature_names,
        metrics=scenario.measured.about,
        policies=(
            *(_policy(f"{scenario.name}/{name}", make) for name, make in scenario.policies.items()),
            _model(scenario),
        ),
        wordings=tuple(scenario.wordings),
    )


def policy_lines(scenario: Scenario) -> dict[str, str]:
    """One line about each of a scenario's policies, by full name."""
    return {
        f"{scenario.name}/{name}": (inspect.getdoc(factory) or "").split("\n")[0]
        for name, factory in scenario.policies.items()
    }


def preset_lines(scenario: Scenario) -> dict[str, str]:
    """The settings that each of a scenario's presets changes, by name."""
    return {
        name: ", ".join(f"{key}={value!r}" for key, value in plain(dict(changed)).items()) or "the defaults"
        for name, changed in scenario.settings_type.presets.items()
    }


def _policy(name: str, make: Callable[..., Any]) -> PolicyText:
    """What a factory's docstring says."""
    docstring = inspect.getdoc(make) or ""
    # Those that inherit their options inherit what is said of them.
    kinds = make.__mro__ if isinstance(make, type) else (make,)
    descriptions = {key: text for kind in reversed(kinds) for key, text in entries(kind.__doc__ or "", "Args").items()}
    options = tuple(
        Setting(
            name=parameter.name,
            default=None if parameter.default is parameter.empty else plain(parameter.default),
            about=descriptions[parameter.name],
        )
        for parameter in inspect.signature(make).parameters.values()
        if parameter.name in descriptions
    )
    return PolicyText(name=name, about=docstring.split("\n")[0], options=options)


def _model(scenario: Scenario) -> PolicyText:
    """The language model, with its settings and those of the scenario's workflow."""
    from llm_coop_envs.policies.llm.playing.settings import LLMSettings

    workflow = load(scenario.workflow)
    own = _settings(LLMSettings) + (() if workflow is None else _settings(workflow.settings_type))
    return PolicyText(
        name="llm",
        about="A language model: llm:MODEL; --model-preset gives it a paper's settings.",
        options=tuple(setting for setting in own if setting.name != "options"),
    )


def first_line(scenario: Scenario) -> str:
    """What the environment's docstring says first."""
    return (inspect.getdoc(scenario.env_class) or "").split("\n")[0]


def all_scenarios() -> list[Scenario]:
    """All scenarios, the shipped ones first."""
    return list(scenarios().values())


def _space_text(space: spaces.Space[Any]) -> str:
    """A space in one line; the bounds of long vectors are left out."""
    if isinstance(space, spaces.Box) and space.shape != (1,):
        return f"Box of shape {space.shape}, {space.dtype}"
    return str(space)


def _parts(space: spaces.Dict) -> dict[str, Any]:
    return dict(space.spaces)


def _settings(kind: Any) -> tuple[Setting, ...]:
    """The fields of settings, the shared ones last."""
    about = attributes(kind)
    own = [f for f in fields(kind) if f.init and f.name in vars(kind).get("__annotations__", {})]
    # What a scenario refuses is none of its settings.
    refused = {*PERCEPTION, "present"} - set(declared(kind, "changeable"))
    if issubclass(kind, ScenarioSettings):
        has_mechanisms = kind.again or kind.stage_game is not ScenarioSettings.stage_game
        refused |= set() if has_mechanisms else {"mechanism"}
        refused |= set() if kind.has_groups else {"group_size", "matching"}
    shared = [f for f in fields(kind) if f.init and f not in own and f.name not in refused]
    settings = []
    for f in (*own, *shared):
        default = f.default_factory() if f.default_factory is not MISSING else f.default
        default = None if default is MISSING else plain(default)
        settings.append(Setting(name=f.name, default=default, about=about.get(f.name, "")))
    return tuple(settings)


def _before_sections(docstring: str) -> str:
    return re.split(r"^(?:Args|Attributes|Returns|Raises):\n", docstring, maxsplit=1, flags=re.MULTILINE)[0]


def _blocks(text: str) -> list[str]:
    """What stands between empty lines: a paragraph becomes one line, everything else keeps its lines."""
    blocks = [part.strip("\n") for part in re.split(r"\n\s*\n", text) if part.strip()]
    return [block if re.search(r"^(\s|[-*|] |\d+[.)] )", block, re.M) else " ".join(block.split()) for block in blocks]
