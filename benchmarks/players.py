"""Policies by the names that studies give them.

A scripted policy is `"scenario/name"`. Everything else is `"kind"` or `"kind:argument"`, such as `"sb3:runs/ppo"`. A
kind is a module that is imported when it is first asked for, and offers `LABEL` (what reports call it), `check` and
`make`.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any, Protocol, cast

from llm_coop_envs.benchmarks.registry import SCENARIOS
from llm_coop_envs.core.settings import suggestion
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies import Policy, scripted
from llm_coop_envs.policies.llm.chat import Chat

SCRIPTED = "scripted"

KINDS: Mapping[str, str] = {
    "llm": "llm_coop_envs.policies.llm.player",
    "q_learning": "llm_coop_envs.baselines.q_learning.player",
    "tabular": "llm_coop_envs.baselines.tabular.player",
    "sb3": "llm_coop_envs.baselines.deep.player",
}


class Kind(Protocol):
    """What the module of a kind offers.

    Attributes:
        LABEL: what reports call these policies, such as `"language model"`.
    """

    LABEL: str

    def check(self, scenario: str, argument: str, options: Mapping[str, Any]) -> None:
        """Find out, before anything starts, whether such a policy can be made.

        Raises:
            LlmCoopError: it cannot; a `SettingsError` names the option.
        """
        ...

    def make(self, scenario: str, argument: str, options: Mapping[str, Any], chat: Chat | None = None) -> Policy:
        """Make the policy.

        Args:
            scenario: the scenario's name.
            argument: what follows the colon; empty without one.
            options: what the study gives.
            chat: answers the questions of policies that ask a model.
        """
        ...


def full_name(scenario: str, name: str) -> str:
    """A policy's name as studies and runs keep it.

    Raises:
        SettingsError: there is none of that name for the scenario.
    """
    kind, _, _ = name.partition(":")
    if kind in KINDS:
        return name
    short = name.removeprefix(f"{scenario}/")
    known = SCENARIOS[scenario].policies
    if short not in known:
        others = ", ".join(f"{one}:..." for one in KINDS)
        raise SettingsError(
            "policy", name, f"there is no such policy for {scenario}; {suggestion(short, known)}; or {others}"
        )
    return f"{scenario}/{short}"


def label(policy: str) -> str:
    """What reports call a policy: `"scripted"`, or its kind's label."""
    kind, _, _ = policy.partition(":")
    return _kind(kind).LABEL if kind in KINDS else SCRIPTED


def check_policy(scenario: str, policy: str, options: Mapping[str, Any]) -> None:
    """Find out, before anything starts, whether a policy can be made.

    Args:
        scenario: the scenario's name.
        policy: its full name.
        options: what the study gives it.

    Raises:
        LlmCoopError: it cannot; a `SettingsError` names the option.
    """
    kind, _, argument = policy.partition(":")
    if kind in KINDS:
        _kind(kind).check(scenario, argument, options)
    else:
        scripted.make(policy, **options)


def make_policy(scenario: str, policy: str, options: Mapping[str, Any], chat: Chat | None = None) -> Policy:
    """Make a policy; see `check_policy`."""
    kind, _, argument = policy.partition(":")
    if kind in KINDS:
        return _kind(kind).make(scenario, argument, options, chat)
    return scripted.make(policy, **options)


def _kind(name: str) -> Kind:
    try:
        module = importlib.import_module(KINDS[name])
    except ModuleNotFoundError as error:
        raise SettingsError("policy", name, f"this version cannot play it ({error})") from error
    return cast("Kind", module)
