"""A seat whose policy changes with the rounds: from round r on another one decides, or the same with other options."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from llm_coop_envs.core.policy import Episode, Request, waits
from llm_coop_envs.policies.base import Action, Policy
from llm_coop_envs.policies.branching import put_back, saved
from llm_coop_envs.treatments.changes import Change

_LATER = 0xC4A  # keeps the generators of those who follow apart from all that the first one may spawn


@dataclass(frozen=True, kw_only=True)
class Successor:
    """Who decides while a change holds.

    Attributes:
        change: from when until when, and for which players.
        policy: the policy.
    """

    change: Change
    policy: Policy


class Switching(Policy):
    """Plays with one policy, and with others while their changes hold; the last one in the list that holds decides.

    The first one draws the same random numbers as if it played alone, if it never waits for answers. Of policies that
    remember, all that follow share the first one's memory (`Policy.continue_from`).

    Args:
        first: who decides while no change holds.
        successors: who decides while one does.
    """

    def __init__(self, first: Policy, successors: Sequence[Successor]) -> None:
        self.first = first
        self.successors = tuple(successors)
        self.policies = (first, *(one.policy for one in successors))
        self.waits = any(map(waits, self.policies))

    def begin(self, episode: Episode) -> None:
        """A new episode starts for all of them."""
        super().begin(episode)
        seeds = episode.rng.bit_generator.seed_seq
        assert isinstance(seeds, np.random.SeedSequence), "episodes have generators of their own"
        # Not with `spawn`: an episode that is begun again gets the same numbers.
        keys = [(*seeds.spawn_key, _LATER, number) for number in range(len(self.successors))]
        self.first.begin(episode)
        for one, key in zip(self.successors, keys, strict=True):
            seats = tuple(seat for seat in episode.seats if one.change.means(seat))
            stream = np.random.PCG64(np.random.SeedSequence(seeds.entropy, spawn_key=key))
            one.policy.begin(replace(episode, seats=seats, rng=np.random.Generator(stream)))
        self.slots_only = all(policy.slots_only for policy in self.policies)
        self._share()

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Each request is answered by whoever decides for that player in that round."""
        deciding = [self._deciding(request) for request in requests]
        batches: list[tuple[Policy, list[int]]] = []
        for policy in self.policies:
            # A first one that costs nothing is always asked: what it draws for its other seats stays the same.
            always = policy is self.first and not waits(policy)
            places = [k for k, who in enumerate(deciding) if always or who is policy]
            if places:
                batches.append((policy, places))
        asked = [policy.act([requests[k] for k in places]) for policy, places in batches]
        answers = await asyncio.gather(*asked) if self.waits else [await one for one in asked]
        actions: list[Action] = [{}] * len(requests)
        for (policy, places), given in zip(batches, answers, strict=True):
            for k, action in zip(places, given, strict=True):
                if deciding[k] is policy:
                    actions[k] = action
        return actions

    def get_state(self) -> dict[str, Any]:
        """What each of them keeps; see `policies.branching`."""
        return {"policies": [saved(policy) for policy in self.policies]}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on with what `get_state` gave."""
        for policy, one in zip(self.policies, state["policies"], strict=True):
            put_back(policy, one)
        self._share()

    def _share(self) -> None:
        for one in self.successors:
            one.policy.continue_from(self.first)

    def _deciding(self, request: Request) -> Policy:
        number = request.info["round"]
        holding = [one for one in self.successors if one.change.holds(number) and one.change.means(request.agent)]
        return holding[-1].policy if holding else self.first
