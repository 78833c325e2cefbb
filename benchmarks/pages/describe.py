"""What a scenario offers, gathered from its own classes and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from gymnasium import spaces

from llm_coop_envs.core.registry import find_scenario, scenarios
from llm_coop_envs.core.scenario import Scenario
from llm_coop_envs.core.settings import plain


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One setting.

    Attributes:
        name: its name.
        default: its default value.
        about: what it means, from the class's docstring.
    """

    name: str
    default: Any
    about: str


@dataclass(frozen=True, kw_only=True)
class Description:
    """A scenario, for people.

    Attributes:
        scenario: the scenario.
        about: the environment's own words, as paragraphs.
        settings: all settings, the shared ones last.
        presets: the settings each preset changes.
        phases: the phases of a round with talk.
        agents: the first and last agent with the default settings.
        spaces: the parts of one agent's observation and action.
        features: the names of the numeric features.
        metrics: what is measured of an episode, in the words of its function.
        policies: one line for each policy, by full name.
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
    metrics: str
    policies: Mapping[str, str]
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
        about=tuple(_paragraphs(_before_sections(inspect.getdoc(type(env)) or ""))),
        settings=_settings(scenario),
        presets={key: plain(dict(value)) for key, value in scenario.settings_type.presets.items()},
        phases=env.phases,
        agents=(agent, env.possible_agents[-1]),
        spaces=parts,
        features=env.feature_names,
        metrics=_told(inspect.getdoc(scenario.measured.episode) or ""),
        policies=policy_lines(scenario),
        wordings=tuple(scenario.wordings),
    )


def policy_lines(scenario: Scenario) -> dict[str, str]:
    """One line about each of a scenario's policies, by full name."""
    return {
        f"{scenario.name}/{name}": (inspect.getdoc(factory) or "").split("\n")[0]
        for name, factory in scenario.policies.items()
    }


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


def _settings(scenario: Scenario) -> tuple[Setting, ...]:
    kind = scenario.settings_type
    about: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        about.update(attribute_docs(base.__dict__.get("__doc__") or ""))
    own = [f for f in fields(kind) if f.init and f.name in vars(kind).get("__annotations__", {})]
    shared = [f for f in fields(kind) if f.init and f not in own]
    return tuple(
        Setting(name=f.name, default=plain(getattr(kind, f.name, None)), about=about.get(f.name, ""))
        for f in (*own, *shared)
    )


def attribute_docs(docstring: str) -> dict[str, str]:
    """The entries of a Google-style `Attributes:` section, each as one paragraph."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in _section(inspect.cleandoc(docstring), "Attributes").splitlines():
        entry = re.match(r"(\w+): ?(.*)", line)
        if entry:
            name = entry[1]
            found[name] = [entry[2]]
        elif name:
            found[name].append(line.strip())
    return {key: " ".join(" ".join(lines).split()) for key, lines in found.items()}


def _section(docstring: str, title: str) -> str:
    """The indented block below `title:`, without its indentation."""
    match = re.search(rf"^{title}:\n((?:[ ]+.*\n|\n)*)", docstring + "\n", re.MULTILINE)
    return inspect.cleandoc("\n" + match[1]) if match else ""


def _told(docstring: str) -> str:
    """What a function says it returns, or else everything after its first line."""
    return _section(docstring, "Returns") or _before_sections("\n".join(docstring.split("\n")[1:])).strip()


def _before_sections(docstring: str) -> str:
    return re.split(r"^(?:Args|Attributes|Returns|Raises):\n", docstring, maxsplit=1, flags=re.MULTILINE)[0]


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in re.split(r"\n\s*\n", text) if part.strip()]
