"""A language model in any seat of any scenario."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from llm_coop_envs.core.array_env import TALK
from llm_coop_envs.core.base_policy import Action, Policy
from llm_coop_envs.core.chunks import Chunk
from llm_coop_envs.core.policy import Episode, Request
from llm_coop_envs.core.registry import scenario_of
from llm_coop_envs.core.submissions import Submissions
from llm_coop_envs.policies.llm.chat import Chat
from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts
from llm_coop_envs.policies.llm.playing.calls import workflow_class, workflow_classes
from llm_coop_envs.policies.llm.playing.memory import Memory
from llm_coop_envs.policies.llm.playing.packs import Prompts, load_pack
from llm_coop_envs.policies.llm.playing.personas import Persona, with_background
from llm_coop_envs.policies.llm.playing.prompter import Prompter, Turn
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.playing.workflow import GenericWorkflow, NoSettings, Workflow
from llm_coop_envs.policies.llm.tokens import TokenCounter, counter_for
from llm_coop_envs.treatments.delivery import PARAPHRASE, SPEAKER, InOtherWords
from llm_coop_envs.treatments.regulator import PHASES, SEAT
from llm_coop_envs.util.on_demand import OnDemand
from llm_coop_envs.util.waiting import by_hands

#: How many players of a crowd have their prompts made and wait for an answer at a time, where the chat names no number.
HANDS = 4096


class LLMPolicy(Policy):
    """Plays its seats with a language model, by the scenario's workflow.

    It renders prompts from a pack, what the environment lets the player know, and the player's private memory; asks
    for all players on turn at the same time; and reads the answers. The `Chat` decides how many requests are under
    way.

    Args:
        chat: answers requests: a journal, a budget and a dispatcher in front of a provider, or anything else. One
            that answers by script says so with an attribute `scripted`; it is told the question as data.
        settings: which model, which words, which memory.
        count_tokens: counts tokens for the model; by default its own tokenizer if its tables are on this machine,
            else a stated estimate.

    Attributes:
        counters: what became of the answers, in the running episode.
        token_counter: the tokenizer's name, `"estimate"`, or `"given"`.
        backgrounds: who sits in the seats, in words that stand before those of a persona; taken at `begin`.

    Raises:
        WordingError: the pack cannot be used.
    """

    def __init__(self, chat: Chat, settings: LLMSettings, *, count_tokens: TokenCounter | None = None) -> None:
        self.chat = chat
        self.settings = settings
        self.pack = load_pack(settings.pack)
        self._count, self.token_counter = counter_for(settings.model)
        if count_tokens is not None:
            self._count, self.token_counter = count_tokens, "given"
        self.counters = AnswerCounts()
        self._scripted = bool(getattr(chat, "scripted", False))
        self._workflow: Workflow[Any] | None = None
        self._regulated: tuple[GenericWorkflow, Prompter] | None = None
        self._personas: Mapping[str, Persona | None] = {}
        self._memories: dict[str, Memory] = defaultdict(Memory)
        self.backgrounds: Mapping[str, str] = {}

    def begin(self, episode: Episode) -> None:
        """A new episode: memories and counters start empty, personas are dealt.

        Raises:
            SettingsError: the pack has no templates for the scenario, or a persona has no words for it.
        """
        super().begin(episode)
        scenario = scenario_of(episode.scenario)
        prompts = self.pack.prompts(scenario.name)
        self.counters = AnswerCounts()
        self._prompter = Prompter(
            self.chat, self.settings, prompts, self._count, self.counters, scripted=self._scripted
        )
        self._memories = defaultdict(Memory)  # only of those who remember something
        self._personas = self._deal(episode, prompts)
        kind = workflow_class(scenario)
        self._workflow = kind(self.settings.workflow_settings(kind), episode, self._personas)
        self._regulated = None
        if episode.settings.regulator is not None:
            beside = self.pack.prompts(scenario.name, generic=True)
            prompter = Prompter(self.chat, self.settings, beside, self._count, self.counters, scripted=self._scripted)
            self._regulated = GenericWorkflow(NoSettings(), episode, self._personas), prompter
        # Prompts are made from slots by a pack, but for regulators and scenarios asked with the environment's text.
        self.slots_only = not self._workflow.from_text and self._regulated is None

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

    async def answer(self, chunk: Chunk) -> Submissions:
        """The same for any number of players: what each sees is made when its turn to be asked comes.

        Raises:
            ChatError: as `act`.
        """
        reading, waiting = chunk.reading(), chunk.stream()

        async def work() -> None:
            for place, request in waiting:
                reading.take(place, request.agent, await self._decide(request))

        await by_hands(work, min(len(chunk), max(HANDS, getattr(self.chat, "most", 0))))
        return reading.submissions

    def personas(self) -> dict[str, str]:
        """The persona's name of each seat; `"none"` without one."""
        return {seat: "none" if one is None else one.name for seat, one in self._personas.items()}

    def describe(self, played: Iterable[str] | None = None) -> dict[str, Any]:
        """What is recorded with a run that plays these scenarios: settings, the pack with its hash, what counts tokens.

        Args:
            played: the scenarios' names; by default all that there are.
        """
        played = tuple(workflow_classes() if played is None else played)
        return {
            "settings": self.settings.to_json(),
            "workflows": {
                name: self.settings.workflow_settings(workflow).to_json()
                for name, workflow in workflow_classes().items()
                if name in played
            },
            "pack": self.pack.describe(played),
            "token_counter": self.token_counter,
        }

    def get_state(self) -> dict[str, Any]:
        """The private memories, as plain data: with the environment's `get_state`, an episode can be branched here."""
        return {seat: self._memories.get(seat, Memory()).to_json() for seat in self.episode.seats}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Remember what `get_state` gave; call it after `begin`."""
        kept = {seat: Memory.from_json(state[seat]) for seat in self.episode.seats}
        self._memories = defaultdict(Memory, kept)

    def continue_from(self, earlier: Policy) -> None:
        """Share the private memories of another language model's seats; settings, personas and counters stay apart."""
        if isinstance(earlier, LLMPolicy):
            self._memories = earlier._memories

    async def _decide(self, request: Request) -> Action:
        assert self._workflow is not None, "begin comes first"
        slots, agent = request.info["slots"], request.agent
        turn = Turn(
            self.episode.name,
            agent,
            request.info["step"],
            request.info["round"],
            self._personas[agent],
            self._memories.get(agent) or Memory(),
            request.observation.get("text", ""),
            "" if self._workflow.from_text else slots.notice,
        )
        if slots.memory is not None and agent != SEAT:
            turn.memory.forget(turn.round - slots.memory)
        workflow, prompter = self._workflow, self._prompter
        if self._regulated is not None and (slots.phase in PHASES or agent == SEAT):
            workflow, prompter = self._regulated
            turn.notice = ""
        try:
            action = await workflow.play(prompter, turn, slots)
            if slots.phase == TALK and action.get("message") and self._says_otherwise(turn):
                text = action["message"]
                action["message"] = InOtherWords(text, await prompter.in_other_words(turn, text))
            return action
        finally:
            if not turn.memory.empty:
                self._memories[agent] = turn.memory

    def _says_otherwise(self, turn: Turn) -> bool:
        """Whether what a player says now is delivered in other words of its own."""
        settings = self.episode.settings.in_round(turn.round, turn.agent)
        return settings.delivery == PARAPHRASE and settings.delivery_by == SPEAKER

    def _deal(self, episode: Episode, prompts: Prompts) -> Mapping[str, Persona | None]:
        """Deal the personas to the seats, in blocks as equal as possible."""
        names, seats = self.settings.personas, episode.seats
        dealt: dict[str, Persona | None] = dict.fromkeys(seats)
        if names:
            found = [prompts.persona(name) for name in names]
            order = list(range(len(seats)))
            if self.settings.deal == "shuffled":
                order = episode.rng.permutation(len(seats)).tolist()
            block = {seat: k * len(found) // len(seats) for k, seat in enumerate(order)}
            dealt = {name: found[block[seat]] for seat, name in enumerate(seats)}
        told = self.backgrounds
        if not told:
            return dealt
        return OnDemand(dealt, lambda seat: with_background(told.get(seat, ""), dealt[seat]))
