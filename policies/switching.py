"""A seat whose policy changes with the round: another policy takes over, or the same one with other options."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from llm_coop_envs.core.base_policy import Action, Policy
from llm_coop_envs.core.policy import Episode, Request, waits
from llm_coop_envs.policies.branching import restore_state, save_state
from llm_coop_envs.treatments.changes import Change

_LATER = 0xC4A  # separates the successors' generators from all that the first policy may spawn


@dataclass(frozen=True, kw_only=True)
class Successor:
    """A policy that decides while a change holds.

    Attributes:
        change: the rounds and players of the change.
        policy: the policy.
    """

    change: Change
    policy: Policy


class Switching(Policy):
    """Plays with one policy, and with successors while their changes hold. The last successor that holds decides.

    If the first policy never waits for answers, it draws the same random numbers as if it played alone. Successors
    share the first policy's memory, if they have one (`Policy.continue_from`).

    Args:
        first: decides while no change holds.
        successors: decide while their changes hold.
    """

    def __init__(self, first: Policy, successors: Sequence[Successor]) -> None:
        self.first = first
        self.successors = tuple(successors)
        self.policies = (first, *(successor.policy for successor in successors))
        self._seated: list[Successor] = []
        self.waits = any(map(waits, self.policies))

    def begin(self, episode: Episode) -> None:
        """Start an episode for all policies."""
        super().begin(episode)
        seeds = episode.rng.bit_generator.seed_seq
        assert isinstance(seeds, np.random.SeedSequence), "episodes have generators of their own"
        # Not with `spawn`: an episode that is begun again gets the same random numbers.
        keys = [(*seeds.spawn_key, _LATER, number) for number in range(len(self.successors))]
        self.first.begin(episode)
        self._seated = []
        for successor, key in zip(self.successors, keys, strict=True):
            seats = tuple(seat for seat in episode.seats if successor.change.means(seat))
            if not seats:  # a mix is dealt anew in each episode, and may leave a successor none
                continue
            self._seated.append(successor)
            stream = np.random.PCG64(np.random.SeedSequence(seeds.entropy, spawn_key=key))
            successor.policy.begin(replace(episode, seats=seats, rng=np.random.Generator(stream)))
        self.slots_only = all(policy.slots_only for policy in self._begun)
        self._share()

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Answer each request by the policy that decides for that player in that round."""
        deciders = [self._policy_for(request) for request in requests]
        batches: list[tuple[Policy, list[int]]] = []
        for policy in self.policies:
            # A first policy that costs nothing is always asked, so that its draws for other seats stay the same.
            always = policy is self.first and not waits(policy)
            indices = [k for k, decider in enumerate(deciders) if always or decider is policy]
            if indices:
                batches.append((policy, indices))
        pending = [policy.act([requests[k] for k in indices]) for policy, indices in batches]
        answers = await asyncio.gather(*pending) if self.waits else [await coroutine for coroutine in pending]
        actions: list[Action] = [{}] * len(requests)
        for (policy, indices), batch_actions in zip(batches, answers, strict=True):
            for k, action in zip(indices, batch_actions, strict=True):
                if deciders[k] is policy:
                    actions[k] = action
        return actions

    def get_state(self) -> dict[str, Any]:
        """The memories of all policies; see `policies.branching`."""
        return {"policies": [save_state(policy) for policy in self._begun]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore the memories that `get_state` returned."""
        for policy, policy_state in zip(self._begun, state["policies"], strict=True):
            restore_state(policy, policy_state)
        self._share()

    @property
    def _begun(self) -> list[Policy]:
        return [self.first, *(successor.policy for successor in self._seated)]

    def _share(self) -> None:
        for successor in self._seated:
            successor.policy.continue_from(self.first)

    def _policy_for(self, request: Request) -> Policy:
        """The policy that decides for the request's player in its round."""
        for successor in reversed(self.successors):
            if successor.change.holds(request.info["round"]) and successor.change.means(request.agent):
                return successor.policy
        return self.first
