"""Rules that play without a model: baselines, called scripted everywhere.

Each scenario's `scripted.py` holds `POLICIES`: a name for each factory. A policy is known as `"scenario/name"`; the
first line of a factory's docstring says what it does. Rules for a regulator's seat, `"regulator/name"`, play in all.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from llm_coop_envs.core.registry import scenarios
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.base import Policy
from llm_coop_envs.policies.scripted.regulators import POLICIES as REGULATORS
from llm_coop_envs.util.checks import suggestion

#: What stands before the names of rules for a regulator's seat.
REGULATOR = "regulator"


def factories() -> dict[str, Callable[..., Policy]]:
    """All scripted policies by full name."""
    found = {scenario.name: scenario.policies for scenario in scenarios().values()}
    return {
        f"{plays}/{name}": factory
        for plays, policies in {**found, REGULATOR: REGULATORS}.items()
        for name, factory in policies.items()
    }


def describe() -> dict[str, str]:
    """One line about each scripted policy, by full name."""
    return {name: (inspect.getdoc(factory) or "").split("\n")[0] for name, factory in factories().items()}


def make(name: str, **options: Any) -> Policy:
    """Make a scripted policy.

    Args:
        name: `"scenario/name"`, see `describe`.
        **options: the factory's arguments.

    Raises:
        SettingsError: no such policy, or the factory refuses the options.
    """
    known = factories()
    if name not in known:
        raise SettingsError("policy", name, f"is no scripted policy; {suggestion(name, known)}")
    factory = known[name]
    takes = inspect.signature(factory).parameters
    for option, value in options.items():
        if option not in takes:
            meant = suggestion(option, takes) if takes else "it takes none"
            raise SettingsError(option, value, f"is no option of {name}; {meant}")
    try:
        inspect.signature(factory).bind(**options)
    except TypeError as error:
        accepted = ", ".join(inspect.signature(factory).parameters) or "none"
        raise SettingsError("policy", name, f"cannot take these options ({error}); it takes: {accepted}") from error
    return factory(**options)
