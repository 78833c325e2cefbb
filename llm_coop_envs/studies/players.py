"""Policies by the names that studies give them.

How they are told apart is said in `policies.kinds`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from llm_coop_envs.core.registry import find_scenario
from llm_coop_envs.core.scenario import Row
from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies import Policy, kinds, scripted
from llm_coop_envs.policies.kinds import FORCED, LLM, find_kind
from llm_coop_envs.util.checks import suggestion

if TYPE_CHECKING:
    from llm_coop_envs.policies.llm.chat import Chat

SCRIPTED = "scripted"


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


@runtime_checkable
class Described(Protocol):
    """A policy that is told who sits in its seats.

    Attributes:
        backgrounds: the words, by seat; set before an episode begins.
    """

    backgrounds: Mapping[str, str]


def full_name(scenario: str, name: str) -> str:
    """A policy's name as studies and runs keep it.

    Raises:
        SettingsError: there is none of that name for the scenario.
    """
    kind, argument = kinds.parse(name)
    if kind:
        return argument if kind == kinds.OWN else name
    if name.startswith(f"{scripted.REGULATOR}/") and name in scripted.factories():
        return name
    short = name.removeprefix(f"{scenario}/")
    known = find_scenario(scenario).policies
    if short not in known:
        names = [one for one in kinds.KINDS if one != kinds.OWN]
        others = ", ".join(one if one == FORCED else f"{one}:..." for one in names)
        meant = suggestion(short, [*known, *names])
        raise SettingsError(
            "policy",
            name,
            f"there is no such policy for {scenario}; {meant}; or {others}, or module:Class",
        )
    return f"{scenario}/{short}"


def label(policy: str) -> str:
    """What reports call a policy: `"scripted"`, or its kind's label."""
    kind, _ = kinds.parse(policy)
    return find_kind(kind).LABEL if kind else SCRIPTED


def check_policy(scenario: str, policy: str, options: Mapping[str, Any]) -> None:
    """Find out, before anything starts, whether a policy can be made.

    Args:
        scenario: the scenario's name.
        policy: its full name.
        options: what the study gives it.

    Raises:
        LlmCoopError: it cannot; a `SettingsError` names the option.
    """
    kind, argument = kinds.parse(policy)
    if kind:
        find_kind(kind).check(scenario, argument, options)
    else:
        scripted.make(policy, **options)


def make_policy(scenario: str, policy: str, options: Mapping[str, Any], chat: Chat | None = None) -> Policy:
    """Make a policy; see `check_policy`."""
    kind, argument = kinds.parse(policy)
    if kind:
        return find_kind(kind).make(scenario, argument, options, chat)
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
    module: Any = find_kind(kind)
    model, own, elsewhere = module.settle(argument, options)
    return f"{kind}:{model}", own, elsewhere


def asks_a_model(policy: str) -> bool:
    """Whether a policy, by its full name, asks a language model."""
    return policy.partition(":")[0] == LLM


def learns(policy: str) -> bool:
    """Whether a policy, by its full name, is of a kind that may learn before an episode, with measures of its own."""
    kind, _ = kinds.parse(policy)
    return bool(kind) and kind not in (LLM, FORCED)


def describe_model(policy: str, options: Mapping[str, Any], played: Iterable[str]) -> dict[str, Any]:
    """What a run records of a policy that asks a language model, for the scenarios that are played."""
    kind, _, argument = policy.partition(":")
    module: Any = find_kind(kind)
    described: dict[str, Any] = module.describe(argument, options, played)
    return described
