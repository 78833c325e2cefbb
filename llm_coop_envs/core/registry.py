"""The scenarios by name: those that come with the package, those that are installed beside it, and registered ones.

A scenario comes with the package if a folder beside this one has a module `scenario` with a `SCENARIO` in it. One from
outside is named by an entry point of the group `llm_coop_envs.scenarios`, or registered by a call of `register`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from llm_coop_envs.errors import StudyError
from llm_coop_envs.util.checks import suggestion

if TYPE_CHECKING:
    from llm_coop_envs.core.scenario import Scenario

GROUP = "llm_coop_envs.scenarios"
UNLISTED_GROUP = f"{GROUP}.unlisted"
"""Entry points of scenarios that only serve others, such as the scorecard's quiz: found by name, in no list before."""

NAMESPACE = "llm_coop"
_registered: dict[str, Scenario] = {}
_broken: dict[str, str] = {}


@functools.cache
def shipped_names() -> tuple[str, ...]:
    """The names of the scenarios that come with the package, without importing them."""
    home = Path(__file__).parents[1]
    return tuple(sorted(path.parent.name for path in home.glob("*/scenario.py") if path.parent.name != "core"))


def scenarios() -> Mapping[str, Scenario]:
    """All scenarios by name, the shipped ones first. Imports every descriptor; `find_scenario` imports only one."""
    return MappingProxyType({**{name: _shipped(name) for name in shipped_names()}, **_installed(), **_registered})


def known_scenario(name: str) -> Scenario | None:
    """The scenario of that name, without importing other shipped ones; `None` if there is none."""
    if name in _registered:
        return _registered[name]
    return _shipped(name) if name in shipped_names() else _installed().get(name)


def find_scenario(name: str) -> Scenario:
    """The scenario of that name, without importing other shipped ones.

    Raises:
        StudyError: there is none, or it cannot be imported.
    """
    scenario = known_scenario(name)
    if scenario is not None:
        return scenario
    for point in entry_points(group=UNLISTED_GROUP, name=name):
        register(point.load())
        return _registered[name]
    if name in _broken:
        raise StudyError(f"the scenario '{name}' is installed but cannot be used: {_broken[name]}")
    raise StudyError(f"there is no scenario '{name}'; {suggestion(name, scenarios())}")


def scenario_of(env_name: str) -> Scenario:
    """The scenario of an environment's name with its version, such as `"kbc_v0"`.

    Raises:
        StudyError: there is none.
    """
    return find_scenario(env_name.rpartition("_v")[0])


def register(scenario: Scenario) -> None:
    """Make a scenario known, to PettingZoo and Gymnasium too; the same one again changes nothing.

    Raises:
        StudyError: there is another one of that name.
    """
    known = known_scenario(scenario.name)
    if known is None:
        _registered[scenario.name] = scenario
        enter(scenario.name)
    elif known != scenario:
        raise StudyError(f"there is another scenario '{scenario.name}'; give yours another name")


def enter(name: str) -> None:
    """Let `pettingzoo.make` (parallel and AEC) and `gymnasium.make` know a scenario as `llm_coop/NAME-v0`.

    Done again, it changes nothing. Entry points are strings: nothing is imported before somebody makes an environment.
    """
    import gymnasium
    import pettingzoo

    package, scenario = __name__.partition(".")[0], {"scenario": name}
    known = f"{NAMESPACE}/{name}-v0"
    if known not in pettingzoo.parallel_registry:
        pettingzoo.register("parallel", known, entry_point=f"{package}.core.makers:make_parallel", kwargs=scenario)
    if known not in pettingzoo.aec_registry:
        pettingzoo.register("aec", known, entry_point=f"{package}.core.makers:make_aec", kwargs=scenario)
    if known not in gymnasium.registry:
        maker = f"{package}.wrappers.single_agent:make_single_agent"
        gymnasium.register(known, entry_point=maker, kwargs=scenario)


def installed_names() -> tuple[str, ...]:
    """The names of the scenarios that are installed beside the package, without importing them."""
    return tuple(point.name for point in entry_points(group=GROUP) if point.name not in shipped_names())


def registered() -> tuple[Scenario, ...]:
    """The scenarios that were registered by calls in this process: what worker processes must be told."""
    return tuple(_registered.values())


@functools.cache
def _shipped(name: str) -> Scenario:
    scenario: Scenario = importlib.import_module(f"{__name__.partition('.')[0]}.{name}.scenario").SCENARIO
    return scenario


@functools.cache
def _installed() -> Mapping[str, Scenario]:
    from llm_coop_envs.core.scenario import Scenario  # a third of the time that importing the package takes

    installed: dict[str, Scenario] = {}
    for point in entry_points(group=GROUP):
        try:
            scenario = point.load()
        except Exception as error:  # somebody else's code: the other scenarios must stay usable
            _broken[point.name] = f"{type(error).__name__}: {error}"
            continue
        if isinstance(scenario, Scenario) and scenario.name not in shipped_names():
            installed[scenario.name] = scenario
        else:
            _broken[point.name] = f"{point.value} is no new Scenario"
    return installed
