"""What an environment's side knows of those who decide: the shape of a policy, and how to ask many at once."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.settings import ScenarioSettings
from llm_coop_envs.errors import SettingsError


@dataclass(frozen=True, slots=True)
class Request:
    """One decision that is asked for.

    Attributes:
        agent: who has to decide.
        observation: what `reset` or `step` returned for that agent.
        info: likewise.
    """

    agent: str
    observation: dict[str, Any]
    info: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Episode:
    """What a policy is told before an episode.

    Attributes:
        scenario: the environment's name, such as `"kbc_v0"`.
        settings: the scenario's settings.
        agents: all agents, in the environment's order.
        seats: the agents this policy decides for.
        rng: a generator of this policy's own.
        name: the episode's name, unique in its run, such as `"kbc-talk/0003"`; what is journalled is kept under it.
    """

    scenario: str
    settings: ScenarioSettings
    agents: tuple[str, ...]
    seats: tuple[str, ...]
    rng: np.random.Generator
    name: str = "episode"


class PolicyLike(Protocol):
    """Anything that decides; see `llm_coop_envs.policies.Policy` for a base class."""

    def begin(self, episode: Episode) -> None:
        """A new episode starts."""
        ...

    async def act(self, requests: Sequence[Request]) -> Sequence[dict[str, Any]]:
        """Answer many requests; the order of the answers is the order of the requests."""
        ...


def waits(policy: PolicyLike) -> bool:
    """Whether a policy's `act` may wait for something; it may unless its attribute `waits` says that it never does."""
    return bool(getattr(policy, "waits", True))


async def answers_of(policy: PolicyLike, requests: Sequence[Request]) -> Sequence[dict[str, Any]]:
    """What a policy answers.

    Raises:
        RuntimeError: it does not answer each request.
    """
    answers = await policy.act(requests)
    if len(answers) != len(requests):
        raise RuntimeError(
            f"{type(policy).__name__}.act answered {len(answers)} of {len(requests)} requests; "
            "it must answer each, in order"
        )
    return answers


class Seating:
    """Who sits where: the seats of one episode and the policies that fill them.

    Args:
        seats: agent name to policy; one policy may fill many seats.
        agents: all agents that need a policy.

    Raises:
        SettingsError: a seat is empty, or there is no such seat.
    """

    def __init__(self, seats: Mapping[str, PolicyLike], agents: Iterable[str]) -> None:
        names = list(agents)
        if list(seats) != names:
            empty = [name for name in names if name not in seats]
            if empty:
                raise SettingsError("seats", sorted(seats), f"no policy was given for {', '.join(empty[:5])}")
            unknown = sorted(set(seats) - set(names))
            if unknown:
                raise SettingsError("seats", unknown[0], f"is no seat; seats are {names[0]} to {names[-1]}")
            seats = {name: seats[name] for name in names}
        self._seats = dict(seats)
        self.policies: list[PolicyLike] = list({id(policy): policy for policy in self._seats.values()}.values())

    def split(self, who: NDArray[np.intp]) -> list[tuple[PolicyLike, NDArray[np.intp]]]:
        """Players by their places among `agents`, parted by who decides for them."""
        if len(self.policies) == 1:
            return [(self.policies[0], who)] if len(who) else []
        owner = self._owners[who]
        parts = [(policy, who[owner == k]) for k, policy in enumerate(self.policies)]
        return [(policy, mine) for policy, mine in parts if len(mine)]

    @functools.cached_property
    def _owners(self) -> NDArray[np.intp]:
        number = {id(policy): k for k, policy in enumerate(self.policies)}
        return np.array([number[id(policy)] for policy in self._seats.values()], dtype=np.intp)

    @property
    def slots_only(self) -> bool:
        """Whether all of them decide from slots, so that no observation need be built for them."""
        return all(getattr(policy, "slots_only", False) for policy in self.policies)

    @property
    def waits(self) -> bool:
        """Whether `act` may wait for something."""
        return any(map(waits, self.policies))

    def begin(
        self,
        scenario: str,
        settings: ScenarioSettings,
        agents: Sequence[str],
        seed: np.random.SeedSequence,
        name: str = "episode",
    ) -> None:
        """Tell every policy that an episode starts; each gets its own generator, by the order of first seats."""
        for policy, child in zip(self.policies, seed.spawn(len(self.policies)), strict=True):
            mine = tuple(name for name, owner in self._seats.items() if owner is policy)
            policy.begin(
                Episode(
                    scenario=scenario,
                    settings=settings,
                    agents=tuple(agents),
                    seats=mine,
                    rng=np.random.Generator(np.random.PCG64(child)),
                    name=name,
                )
            )

    async def act(
        self, observations: Mapping[str, dict[str, Any]], infos: Mapping[str, dict[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        """The actions of the seated players on turn, by agent, given what `reset` or `step` returned."""
        batches: list[tuple[PolicyLike, list[Request]]] = [(policy, []) for policy in self.policies]
        batch_of = {id(policy): requests for policy, requests in batches}
        for agent, observation in observations.items():
            if observation["turn"] and agent in self._seats:
                batch_of[id(self._seats[agent])].append(Request(agent, observation, infos[agent]))
        nonempty = [(policy, requests) for policy, requests in batches if requests]
        if len(nonempty) == 1 or not self.waits:
            answers = [await answers_of(policy, requests) for policy, requests in nonempty]
        else:
            answers = await asyncio.gather(*(answers_of(policy, requests) for policy, requests in nonempty))
        actions: dict[str, dict[str, Any]] = {}
        for (_, requests), given in zip(nonempty, answers, strict=True):
            for request, action in zip(requests, given, strict=True):
                actions[request.agent] = action
        return actions
