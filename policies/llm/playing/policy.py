"""The policy of language models, for any seat of any scenario."""

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
from llm_coop_envs.mechanisms.settings import MECHANISM_PHASES
from llm_coop_envs.policies.llm.chat import Chat
from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts
from llm_coop_envs.policies.llm.playing.calls import workflow_class, workflow_classes
from llm_coop_envs.policies.llm.playing.memory import Memory
from llm_coop_envs.policies.llm.playing.packs import Prompts, load_pack
from llm_coop_envs.policies.llm.playing.personas import Persona, with_background
from llm_coop_envs.policies.llm.playing.prompter import Prompter
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.playing.turn import Turn
from llm_coop_envs.policies.llm.playing.workflow import GenericWorkflow, NoSettings, Workflow
from llm_coop_envs.policies.llm.tokens import TokenCounter, counter_for
from llm_coop_envs.treatments.delivery import PARAPHRASE, SPEAKER
from llm_coop_envs.treatments.regulator import PHASES, SEAT
from llm_coop_envs.util.on_demand import OnDemand
from llm_coop_envs.util.waiting import by_hands

#: How many players of a crowd are asked at the same time, where the chat names no number.
DEFAULT_CONCURRENCY = 4096


class LLMPolicy(Policy):
    """Plays its seats with a language model, by the scenario's workflow.

    It renders prompts from a pack, from what the environment lets the player know, and from the player's private
    memory. It asks for all players on turn at the same time, and reads the answers. The `Chat` decides how many
    requests are under way.

    Args:
        chat: answers requests: a journal, a budget and a dispatcher in front of a provider, or anything else. A chat
            with a true attribute `scripted` answers by script, and gets each question as data too.
        settings: the model, how it is asked, and what it remembers.
        count_tokens: counts tokens for the model; by default its own tokenizer if its tables are on this machine,
            else an estimate.

    Attributes:
        counters: counts of what became of the answers in the running episode.
        token_counter: the tokenizer's name, `"estimate"`, or `"given"`.
        backgrounds: by seat, a text about its player that precedes the persona; read at `begin`.

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

    def __repr__(self) -> str:
        """The model, and the pack whose prompts it is asked."""
        return f"{type(self).__name__}, {self.settings.model}, pack {self.settings.pack}"

    def begin(self, episode: Episode) -> None:
        """Begin an episode: memories and counters start empty, personas are dealt.

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
        self._memories = defaultdict(Memory)  # only of players who remember something
        self._personas = self._deal(episode, prompts)
        kind = workflow_class(scenario)
        self._workflow = workflow = kind(self.settings.workflow_settings(kind), episode, self._personas)
        self._regulated = None
        mechanism = episode.settings.mechanism
        if episode.settings.regulator is not None or (mechanism is not None and mechanism.is_elected):
            beside = self.pack.prompts(scenario.name, generic=True)
            prompter = Prompter(self.chat, self.settings, beside, self._count, self.counters, scripted=self._scripted)
            self._regulated = GenericWorkflow(NoSettings(), episode, self._personas), prompter
        # Prompts are rendered from slots alone, except for regulators and workflows that use the environment's text.
        self.slots_only = not workflow.from_text and self._regulated is None

    async def act(self, requests: Sequence[Request]) -> Sequence[Action]:
        """Ask the model for all these decisions at once.

        Raises:
            ChatError: an answer cannot be had. Raised when all other answers have come, so that none that was paid
                for is lost.
        """
        if len(requests) == 1:
            return [await self._decide(requests[0])]
        outcomes = await asyncio.gather(*map(self._decide, requests), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]

    async def answer(self, chunk: Chunk) -> Submissions:
        """Ask the model for a chunk of players; a player's request is made only when it is asked.

        Raises:
            ChatError: as `act`.
        """
        reading, waiting = chunk.reading(), chunk.stream()

        async def work() -> None:
            for position, request in waiting:
                reading.take(position, request.agent, await self._decide(request))

        await by_hands(work, min(len(chunk), max(DEFAULT_CONCURRENCY, getattr(self.chat, "most", 0))))
        return reading.submissions

    def personas(self) -> dict[str, str]:
        """The name of each seat's persona; `"none"` without one."""
        return {seat: "none" if persona is None else persona.name for seat, persona in self._personas.items()}

    def describe(self, played: Iterable[str] | None = None) -> dict[str, Any]:
        """What a run records of the policy: its settings, the pack with its hash, and how tokens are counted.

        Args:
            played: the names of the scenarios that the run plays; all by default.
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
        """The private memories, as plain data. With the environment's `get_state` an episode can be branched here."""
        return {seat: self._memories.get(seat, Memory()).to_json() for seat in self.episode.seats}

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Restore the memories that `get_state` gave; call it after `begin`."""
        memories = {seat: Memory.from_json(state[seat]) for seat in self.episode.seats}
        self._memories = defaultdict(Memory, memories)

    def continue_from(self, earlier: Policy) -> None:
        """Share the memories of another language model's seats; settings, personas and counters stay separate."""
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
        if self._regulated is not None and (slots.phase in (*PHASES, *MECHANISM_PHASES) or agent == SEAT):
            workflow, prompter = self._regulated
            turn.notice = ""
        try:
            action = await workflow.play(prompter, turn, slots)
            if slots.phase == TALK and action.get("message") and self._paraphrases_itself(turn):
                action["paraphrase"] = await prompter.paraphrase(turn, action["message"])
            return action
        finally:
            if not turn.memory.empty:
                self._memories[agent] = turn.memory

    def _paraphrases_itself(self, turn: Turn) -> bool:
        """Whether a player's message of this turn is delivered in the player's own paraphrase."""
        settings = self.episode.settings.in_round(turn.round, turn.agent)
        return settings.delivery == PARAPHRASE and settings.delivery_by == SPEAKER

    def _deal(self, episode: Episode, prompts: Prompts) -> Mapping[str, Persona | None]:
        """Deal the personas to the seats, in blocks as equal as possible."""
        names, seats = self.settings.personas, episode.seats
        dealt: dict[str, Persona | None] = dict.fromkeys(seats)
        if names:
            personas = [prompts.persona(name) for name in names]
            order = list(range(len(seats)))
            if self.settings.deal == "shuffled":
                order = episode.rng.permutation(len(seats)).tolist()
            block = {seat: k * len(personas) // len(seats) for k, seat in enumerate(order)}
            dealt = {name: personas[block[seat]] for seat, name in enumerate(seats)}
        backgrounds = self.backgrounds
        if not backgrounds:
            return dealt
        return OnDemand(dealt, lambda seat: with_background(backgrounds.get(seat, ""), dealt[seat]))
