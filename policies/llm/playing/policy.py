"""A language model in any seat of any scenario."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from llm_coop_envs.bertrand.workflow import play_bertrand
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.evacuation.workflow import play_evacuation
from llm_coop_envs.kbc.workflow import play_kbc
from llm_coop_envs.policies.base import Action, Policy
from llm_coop_envs.policies.llm.chat import Chat
from llm_coop_envs.policies.llm.playing.asker import Asker, Turn
from llm_coop_envs.policies.llm.playing.calls import SCENARIOS
from llm_coop_envs.policies.llm.playing.counters import Counters
from llm_coop_envs.policies.llm.playing.memory import Memory
from llm_coop_envs.policies.llm.playing.packs import load_pack
from llm_coop_envs.policies.llm.playing.personas import Persona, find_persona
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.playing.tokens import TokenCounter, counter_for


class LLMPolicy(Policy):
    """Plays its seats with a language model, by the published protocol of each scenario.

    It renders prompts from a pack, what the environment lets the player know, and the player's private memory; asks
    for all players on turn at the same time; and reads the answers. The `Chat` decides how many requests are under
    way.

    Args:
        chat: answers requests: a journal, a budget and a dispatcher in front of a provider, or anything else.
        settings: which model, which words, which memory.
        count_tokens: counts tokens for the model; by default its own tokenizer if its tables are on this machine,
            else a stated estimate.

    Attributes:
        counters: what became of the answers, in the running episode.
        token_counter: the tokenizer's name, `"estimate"`, or `"given"`.

    Raises:
        WordingError: the pack cannot be used.
    """

    slots_only = True  # prompts are made from slots by a pack, not from the observation's text

    def __init__(self, chat: Chat, settings: LLMSettings, *, count_tokens: TokenCounter | None = None) -> None:
        self.chat = chat
        self.settings = settings
        self.pack = load_pack(settings.pack)
        self._count, self.token_counter = counter_for(settings.model)
        if count_tokens is not None:
            self._count, self.token_counter = count_tokens, "given"
        self.counters = Counters()
        self._personas: dict[str, Persona | None] = {}
        self._memories: dict[str, Memory] = {}

    def begin(self, episode: Episode) -> None:
        """A new episode: memories and counters start empty, personas are dealt.

        Raises:
            SettingsError: the pack has no templates for the scenario, or a persona has no words for it.
        """
        super().begin(episode)
        self._scenario = episode.scenario.rpartition("_v")[0]
        if self._scenario not in self.pack.manifest.scenarios:
            if self._scenario not in SCENARIOS:
                raise SettingsError("scenario", episode.scenario, f"must be one of {', '.join(SCENARIOS)}")
            raise SettingsError("pack", self.settings.pack, f"has no templates for {self._scenario}")
        self.counters = Counters()
        self._asker = Asker(self.chat, self.settings, self.pack, self._count, self.counters)
        self._memories = {seat: Memory() for seat in episode.seats}
        self._personas = self._deal(episode)

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Ask the model for all these decisions at once.

        Raises:
            ChatError: no answer can be had; raised when all other answers are in, so that none that was paid for is
                lost.
        """
        if len(requests) == 1:
            return [await self._decide(requests[0])]
        outcomes = await asyncio.gather(*map(self._decide, requests), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]

    def personas(self) -> dict[str, str]:
        """The persona's name of each seat; `"none"` without one."""
        return {seat: "none" if one is None else one.name for seat, one in self._personas.items()}

    def describe(self) -> dict[str, Any]:
        """What is recorded with a run: settings, the pack with its hash, how tokens are counted."""
        return {
            "settings": self.settings.to_json(),
            "pack": self.pack.describe(),
            "token_counter": self.token_counter,
        }

    def get_state(self) -> dict[str, Any]:
        """The private memories, as plain data: with the environment's `get_state`, an episode can be branched here."""
        return {seat: memory.to_json() for seat, memory in self._memories.items()}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Remember what `get_state` gave; call it after `begin`."""
        self._memories = {seat: Memory.from_json(state[seat]) for seat in self._memories}

    async def _decide(self, request: Request) -> Action:
        slots = request.info["slots"]
        turn = Turn(
            self.episode.name,
            request.agent,
            request.info["step"],
            request.info["round"],
            self._personas[request.agent],
            self._memories[request.agent],
        )
        if self._scenario == "kbc":
            settings: Any = self.episode.settings
            return await play_kbc(self._asker, turn, slots, settings)
        if self._scenario == "bertrand":
            first = self._personas.get(self.episode.agents[0], turn.persona)
            return await play_bertrand(self._asker, turn, slots, first)
        return await play_evacuation(self._asker, turn, slots)

    def _deal(self, episode: Episode) -> dict[str, Persona | None]:
        """Deal the personas to the seats, in blocks as equal as possible."""
        names, seats = self.settings.personas, episode.seats
        if not names:
            return dict.fromkeys(seats)
        found = [find_persona(self.pack.personas, name, self._scenario, self.settings.pack) for name in names]
        order = list(range(len(seats)))
        if self.settings.deal == "shuffled":
            order = episode.rng.permutation(len(seats)).tolist()
        block = {seat: k * len(found) // len(seats) for k, seat in enumerate(order)}
        return {name: found[block[seat]] for seat, name in enumerate(seats)}
