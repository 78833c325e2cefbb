"""What a scenario's module offers: `parallel_env`, described setting by setting, and its AEC faces."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Collection, Iterator
from dataclasses import MISSING, fields
from inspect import Parameter, Signature
from typing import Any, ParamSpec, TypeVar

from pettingzoo.utils import AECEnv, OrderEnforcingWrapper
from pettingzoo.utils.conversions import parallel_to_aec
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper

from llm_coop_envs.core.env import ScenarioEnv
from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.core.settings import ScenarioSettings, plain
from llm_coop_envs.util.base_settings import declared
from llm_coop_envs.util.docstrings import attributes, first_sentence

P = ParamSpec("P")
F = TypeVar("F", bound=Callable[..., Any])
WIDTH = 100
OPTIONS: dict[str, tuple[Any, str]] = {
    "preset": (None, "a named set of settings; settings that are given win over it"),
    "render_mode": (None, "'human' (a window), 'rgb_array', 'ansi', or None"),
    "max_cycles": (None, "truncate after exactly this many steps"),
    "record": (False, "keep the `events` of the running episode"),
}


def described(settings_type: type[ScenarioSettings]) -> Callable[[F], F]:
    """A decorator for a `parallel_env`: `help` and notebooks show all settings with their defaults, a line for each."""

    def describe(function: F) -> F:
        lines = [*_option_lines(settings_type), *_setting_lines(settings_type)]
        function.__doc__ = "\n".join([inspect.getdoc(function) or "", "", *lines])
        defaults = {name: default for name, (default, _) in OPTIONS.items()} | _defaults(settings_type)
        parameters = [Parameter(name, Parameter.KEYWORD_ONLY, default=value) for name, value in defaults.items()]
        function.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
        return function

    return describe


def make_parallel(scenario: str, **settings: Any) -> ScenarioEnv:
    """Make a scenario's environment, also of one from outside; settings are as for `parallel_env`.

    Raises:
        LlmCoopError: there is no such scenario, or a setting is wrong.
    """
    make: Callable[..., ScenarioEnv] = find_scenario(scenario).env_class
    return make(**settings)


def make_aec(scenario: str, **settings: Any) -> AECEnv[str, Any, Any]:
    """Make it agent by agent, with PettingZoo's checks; otherwise as `make_parallel`."""
    return OrderEnforcingWrapper(AssertOutOfBoundsWrapper(parallel_to_aec(make_parallel(scenario, **settings))))


def aec_makers(
    parallel_env: Callable[P, ScenarioEnv],
) -> tuple[Callable[P, AECEnv[str, Any, Any]], Callable[P, AECEnv[str, Any, Any]]]:
    """A scenario module's `env` and `raw_env`; both take what `parallel_env` takes."""

    def raw_env(*args: P.args, **settings: P.kwargs) -> AECEnv[str, Any, Any]:
        return parallel_to_aec(parallel_env(*args, **settings))

    def env(*args: P.args, **settings: P.kwargs) -> AECEnv[str, Any, Any]:
        return OrderEnforcingWrapper(AssertOutOfBoundsWrapper(raw_env(*args, **settings)))

    for maker, what in ((env, "with PettingZoo's checks"), (raw_env, "without checks")):
        maker.__doc__ = f"Agent by agent, {what}. {parallel_env.__doc__}"
        maker.__module__, maker.__qualname__ = parallel_env.__module__, maker.__name__
        if hasattr(parallel_env, "__signature__"):
            maker.__signature__ = parallel_env.__signature__  # type: ignore[attr-defined]
    return env, raw_env


def _defaults(settings_type: type[ScenarioSettings]) -> dict[str, Any]:
    return {
        f.name: f.default_factory() if f.default_factory is not MISSING else f.default
        for f in fields(settings_type)
        if f.init
    }


def _option_lines(settings_type: type[ScenarioSettings]) -> Iterator[str]:
    for name, (default, about) in OPTIONS.items():
        yield _line(name, default, about)
    if settings_type.presets:
        yield from textwrap.wrap(f"presets: {', '.join(settings_type.presets)}", WIDTH, subsequent_indent="    ")


def _setting_lines(settings_type: type[ScenarioSettings]) -> Iterator[str]:
    """The settings in the order in which docstrings explain them, those of every scenario last; groups have titles."""
    kind: Any = settings_type
    defaults, about = _defaults(settings_type), attributes(settings_type)
    titles, allowed = declared(kind, "sections"), declared(kind, "allowed")
    shared = [name for name in attributes(ScenarioSettings) if name in defaults]
    for name in dict.fromkeys([*(name for name in about if name in defaults and name not in shared), *shared]):
        if name in titles:
            yield f"\n{titles[name]}:"
        yield _line(name, defaults[name], about[name], allowed.get(name, ()))


def _line(name: str, default: Any, about: str, allowed: Collection[str] = ()) -> str:
    """A setting in one line: its default, what else it may be, and what it means."""
    values = " | ".join(map(repr, [plain(default), *(value for value in allowed if value != default)]))
    sentence = first_sentence(about).replace("`", "")
    return textwrap.shorten(f"{name}={values}: {sentence}", WIDTH, placeholder=" ...")
