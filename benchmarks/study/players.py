"""Policies by the names that studies give them.

A scripted policy is `"scenario/name"`. Everything else is `"kind"` or `"kind:argument"`, such as `"sb3:runs/ppo"`. A
kind is a module that is imported when it is first asked for, and offers `LABEL` (what reports call it), `check` and
`make`.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast, runtime_checkable

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.core.scenario import Row
from llm_coop_envs.core.settings import ScenarioSettings, suggestion
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies import Policy, scripted

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.chat import Chat

SCRIPTED = "scripted"
LLM = "llm"

KINDS: Mapping[str, str] = {
    LLM: "llm_coop_envs.policies.llm.playing.player",
    "human": "llm_coop_envs.policies.human.player",
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


@runtime_checkable
class Learns(Protocol):
    """A policy that learns anew for every episode, before it is played."""

    def learn(self, settings: ScenarioSettings, seed: int, number: int) -> Row:
        """Learn.

        Args:
            settings: of the episode that will be played.
            seed: the study's seed.
            number: which of the condition's episodes it is, from 0.

        Returns:
            Measures of learning, which become columns of the episode's row.

        Raises:
            LlmCoopError: nothing can be learned with these settings.
        """
        ...


@runtime_checkable
class Learned(Protocol):
    """A policy that was trained before, in settings that it knows."""

    def check_learned(self, settings: ScenarioSettings) -> None:
        """Find out whether these settings are the game that it was trained in.

        Raises:
            SettingsError: they are not.
        """
        ...


@runtime_checkable
class Recorded(Protocol):
    """A policy that has something to say about an episode that it has played."""

    def record(self) -> dict[str, Any]:
        """What is kept in the episode's header, as plain data that hangs on the episode alone."""
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
    known = find_scenario(scenario).policies
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


def settle(policy: str, options: Mapping[str, Any]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    """A policy in its one spelling, whichever a study uses.

    Args:
        policy: its full name.
        options: what the study gives it.

    Returns:
        The full name; the options; and what belongs to the run and not to the policy: where a model is reached.

    Raises:
        SettingsError: name and options contradict each other.
    """
    if not asks_a_model(policy):
        return policy, dict(options), {}
    kind, _, argument = policy.partition(":")
    module: Any = _kind(kind)
    model, own, elsewhere = module.settle(argument, options)
    return f"{kind}:{model}", own, elsewhere


def asks_a_model(policy: str) -> bool:
    """Whether a policy, by its full name, asks a language model."""
    return policy.partition(":")[0] == LLM


def describe_model(policy: str, options: Mapping[str, Any], played: Iterable[str]) -> dict[str, Any]:
    """What a run records of a policy that asks a language model, for the scenarios that are played."""
    kind, _, argument = policy.partition(":")
    module: Any = _kind(kind)
    described: dict[str, Any] = module.describe(argument, options, played)
    return described


def _kind(name: str) -> Kind:
    try:
        module = importlib.import_module(KINDS[name])
    except ModuleNotFoundError as error:
        raise SettingsError("policy", name, f"this version cannot play it ({error})") from error
    return cast("Kind", module)
