"""Asking a model for one decision: prompt, read, ask what the answer meant, ask again."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from llm_coop_envs.core.base_policy import Action
from llm_coop_envs.interface.question import Question
from llm_coop_envs.policies.llm.chat import Chat, ChatError, ChatMessage, ChatReply, ChatRequest
from llm_coop_envs.policies.llm.parsing import AMBIGUOUS, EMPTY, REFUSED, UNREADABLE, Reading
from llm_coop_envs.policies.llm.parsing.tokens import remove_template_tokens
from llm_coop_envs.policies.llm.parsing.tokens import shorten as shorten_answer
from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts, CallCounts
from llm_coop_envs.policies.llm.playing.answer_readers import MOVE_FACTS, MessageReader, Reader
from llm_coop_envs.policies.llm.playing.calls import Call
from llm_coop_envs.policies.llm.playing.context_window import shorten
from llm_coop_envs.policies.llm.playing.counted_reading import read_reply, to_choice
from llm_coop_envs.policies.llm.playing.memory import Note
from llm_coop_envs.policies.llm.playing.move_readers import reader_for
from llm_coop_envs.policies.llm.playing.packs import Prompts
from llm_coop_envs.policies.llm.playing.paraphrasing import PARAPHRASE, paraphrase_prompt
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.playing.turn import Turn
from llm_coop_envs.policies.llm.tokens import TokenCounter

T = TypeVar("T")

SUMMARY = "summary"
#: How the names of models that answer by script begin; their requests carry the question as data.
SCRIPTED = "scripted"
#: The share to which a prompt is shortened when a provider finds it too long; and how often it is tried.
SHORTENED_SHARE = 0.75
_SHORTENINGS = 6
#: Tokens per word, on the safe side: an answer of as many words as a prompt allows is then not cut.
TOKENS_PER_WORD = 2
_TOO_LONG = (
    "the question is as short as it can be: let the server take longer ones, then run again to continue (every answer "
    "so far is kept, and this question is asked again)"
)


@dataclass(frozen=True, slots=True)
class Decision(Generic[T]):
    """The outcome of a question.

    Attributes:
        reading: the last reading; usable if it is `ok`.
        text: the answer from which it was read.
    """

    reading: Reading[T]
    text: str


class Prompter:
    """Asks a model a policy's questions.

    Args:
        chat: answers requests.
        settings: how the model is asked.
        prompts: the templates.
        count: counts tokens.
        counters: counts what became of the answers.
        scripted: whether answers come from a script: requests then carry the question as data, in `metadata`.
    """

    def __init__(
        self,
        chat: Chat,
        settings: LLMSettings,
        prompts: Prompts,
        count: TokenCounter,
        counters: AnswerCounts,
        *,
        scripted: bool = False,
    ) -> None:
        self.chat = chat
        self.settings = settings
        self.prompts = prompts
        self.counters = counters
        self._scripted = scripted or settings.model.startswith(SCRIPTED)
        self._count = count
        self._count_item = functools.lru_cache(maxsize=1 << 13)(count)

    async def ask(
        self,
        turn: Turn,
        call: Call,
        facts: Mapping[str, Any],
        reader: Reader[T],
        *,
        preamble: str = "",
        quiet: bool = False,
        extract: bool = False,
    ) -> Decision[T]:
        """Ask until an answer can be used, or no try is left.

        Args:
            turn: whose turn it is.
            call: what is asked.
            facts: all that the player knows; the prompt shows what the call may show.
            reader: reads the answers.
            preamble: a text to put before the prompt.
            quiet: whether an empty answer counts as one.
            extract: whether every answer is read by asking the model what it meant.
        """
        counts = self.counters.for_call(call.name)
        counts.asked += 1
        prompt, limit = await self.prompt(turn, call, facts, counts)
        question = _Question(self, turn, call, facts, reader, counts, preamble, prompt, limit)
        reply, reading = await question.ask(extract=extract)
        if reading.ok or (quiet and reading.status == EMPTY):
            counts.answered += 1
            counts.silent += not reading.ok
            return Decision(reading, reply.text)
        if self.settings.repairs and reader.repairable and not extract and reading.status in (UNREADABLE, AMBIGUOUS):
            repaired = await question.repair(reply, reading)
            if repaired.ok:
                counts.repaired += 1
                return Decision(repaired, reply.text)
        for _ in range(self.settings.tries):
            reply, reading = await question.ask(reading, extract=extract)
            if reading.ok:
                counts.retried += 1
                return Decision(reading, reply.text)
        counts.fallbacks += 1
        self.counters.note_unread(reading.status, reply.text)
        return Decision(reading, reply.text)

    async def words(self, turn: Turn, call: Call, facts: Mapping[str, Any], *, quiet: bool = False) -> str:
        """Ask for a text; empty if none could be read."""
        decision = await self.ask(turn, call, facts, MessageReader(call.key, turn.agent), quiet=quiet)
        return decision.reading.value or ""

    async def message(self, turn: Turn, call: Call, facts: Mapping[str, Any]) -> Action:
        """Ask for a player's message; it may be silent."""
        return {"message": await self.words(turn, call, facts, quiet=True)}

    async def paraphrase(self, turn: Turn, text: str) -> str:
        """Ask for a message in other words; empty if none could be read."""
        facts = self.facts(turn, PARAPHRASE, {"message": Note(turn.round, text)})
        counts = self.counters.for_call(PARAPHRASE.name)
        counts.asked += 1
        prompt = paraphrase_prompt(self.prompts.pack.manifest.language, facts)
        reader = MessageReader(PARAPHRASE.key, turn.agent)
        reply = await self._send(turn, PARAPHRASE.name, PARAPHRASE, prompt, counts, reader)
        reading = read_reply(reader, reply, counts)
        counts.answered += reading.ok
        counts.fallbacks += not reading.ok
        return reading.value or ""

    async def choose(
        self,
        turn: Turn,
        call: Call,
        facts: Mapping[str, Any],
        question: Question,
        *,
        preamble: str = "",
        extract: bool = False,
    ) -> tuple[Action, str]:
        """Ask for a choice.

        Besides the facts, the prompt may show the question's kind, its key, and what is legal.

        Returns:
            The action, empty if no choice could be read; and the answer from which it was read.
        """
        reader = reader_for(question, self.prompts.word)
        facts = {"kind": reader.kind, "key": reader.key, **reader.legal, **facts}
        is_text = reader.kind == "text"
        decision = await self.ask(turn, call, facts, reader, preamble=preamble, quiet=is_text, extract=extract)
        if is_text and decision.reading.status == EMPTY:
            return {"choice": ""}, decision.text
        choice = to_choice(question, decision.reading, self.counters.for_call(call.name))
        if choice is None and not decision.reading.ok:
            return {}, decision.text
        return {"choice": choice}, decision.text

    def facts(
        self, turn: Turn, call: Call, slots: Mapping[str, Any], persona: str = "", **private: Any
    ) -> dict[str, Any]:
        """All that may be shown at a call, with the environment's `persona` for the player before the policy's own."""
        own_persona = ""
        if turn.persona is not None and turn.round >= self.settings.persona_from:
            own_persona = turn.persona.text(call.name)
        personas = " ".join(text for text in (persona, own_persona) if text)
        tokens = self.settings.parameters_for(self.prompts.scenario, call.name).max_tokens
        shared = {
            "answer_as": self.settings.answers,
            "answer_words": None if tokens is None else max(1, tokens // TOKENS_PER_WORD),
            "persona": personas,
        }
        return {**slots, **call.nothing_left_out, **shared, **private}

    async def prompt(
        self, turn: Turn, call: Call, facts: Mapping[str, Any], counts: CallCounts, *, limit: int | None = None
    ) -> tuple[str, int]:
        """Render a call's prompt; also returns how many tokens it may have.

        Args:
            turn: whose turn it is.
            call: what is asked.
            facts: all that the player knows.
            counts: counts what was left out.
            limit: the most tokens; the settings' by default.
        """
        max_tokens = self.settings.prompt_tokens(self.prompts.scenario, call.name) if limit is None else limit
        values = call.values(facts)
        memory = turn.memory
        summarised = self.settings.summarise and "summary" in call.slots
        if summarised:
            values["heard"] = facts["heard"][memory.summarised :]
            values["summary"] = memory.summary

        def render(values: Mapping[str, Any]) -> str:
            text = self.prompts.templates.render(call.template, values)
            return f"{turn.notice}\n\n{text}" if turn.notice else text

        while True:
            prompt = shorten(
                render,
                values,
                call.shrinks,
                max_tokens,
                self._count,
                self._count_item,
            )
            excess = prompt.left_out.get("heard", 0)
            if not (summarised and excess and await self._summarise(turn, call, facts["heard"], excess)):
                break
            values["heard"] = facts["heard"][memory.summarised :]
            values["summary"] = memory.summary
        counts.left_out += sum(prompt.left_out.values())
        counts.overlong += not prompt.fits
        return prompt.text, max_tokens

    async def _summarise(self, turn: Turn, call: Call, heard: tuple[Any, ...], excess: int) -> bool:
        """Replace the oldest messages by the model's summary of them; returns whether that was done."""
        counts = self.counters.for_call(SUMMARY)
        counts.asked += 1
        memory = turn.memory
        waiting = heard[memory.summarised :]
        # A quarter more than must go, so that not every new message asks for a new summary.
        replaced = min(len(waiting), excess + max(1, len(waiting) // 4))
        values = {
            "me": turn.agent,
            "heard": waiting[:replaced],
            "summary": memory.summary,
            "words": self.settings.summary_words,
        }
        max_tokens = self.settings.prompt_tokens(self.prompts.scenario, call.name)
        # What does not fit into one summary waits for the next: the newest of these messages give way first.
        prompt = shorten(
            functools.partial(self.prompts.pack.templates.render, "summary.jinja"),
            values,
            (("heard", "first"),),
            max_tokens,
            self._count,
            self._count_item,
        )
        summarised = replaced - prompt.left_out.get("heard", 0)
        if not summarised:
            counts.fallbacks += 1
            return False
        reader = MessageReader("notes", turn.agent)
        reply = await self._send(turn, SUMMARY, call, prompt.text, counts, reader)
        text = read_reply(reader, reply, counts)
        if not text.ok or text.value is None:
            counts.fallbacks += 1
            return False
        counts.answered += 1
        memory.summary = Note(turn.round, text.value)
        memory.summarised += summarised
        return True

    async def _send(
        self,
        turn: Turn,
        name: str,
        call: Call,
        prompt: str,
        counts: CallCounts,
        reader: Reader[Any],
        *,
        repair: bool = False,
    ) -> ChatReply:
        """Make one request."""
        settings = self.settings
        parameters = settings.parameters_for(self.prompts.scenario, call.name)
        messages: tuple[ChatMessage, ...] = (ChatMessage("user", prompt),)
        if settings.system:
            messages = (ChatMessage("system", settings.system), *messages)
        temperature, extra = parameters.temperature, parameters.extra
        if repair and temperature is not None:
            # Nothing is to be made up here; a provider that sets the temperature itself keeps doing so.
            temperature = 0.0
        as_object = settings.answers == "json" and name != SUMMARY
        if self._scripted:
            form = "plain" if name == SUMMARY or (repair and not as_object) else settings.answers
            legal = {name: value for name, value in reader.legal.items() if value or name not in MOVE_FACTS}
            question = {"kind": reader.kind, "key": reader.key, "form": form, "repair": repair, **legal}
            extra = {**extra, "metadata": {"question": json.dumps(question, ensure_ascii=False)}}
        schema = None
        if as_object:
            schema = reader.object_schema(repair=repair, max_tokens=parameters.max_tokens, beside=call.beside)
        counts.requests += 1
        return await self.chat.ask(
            turn.key(name),
            ChatRequest(
                model=settings.model,
                messages=messages,
                temperature=temperature,
                top_p=parameters.top_p,
                max_tokens=parameters.max_tokens,
                stop=parameters.stop,
                seed=parameters.seed,
                reasoning_effort=parameters.reasoning_effort,
                json_schema=schema,
                extra=extra,
            ),
        )


@dataclass(slots=True)
class _Question(Generic[T]):
    """A question with its prompt, and how it is put: again, shorter, or for what an answer meant."""

    _prompter: Prompter
    _turn: Turn
    _call: Call
    _facts: Mapping[str, Any]
    _reader: Reader[T]
    _counts: CallCounts
    _preamble: str
    _prompt: str
    _limit: int

    async def put_once(self, failed: Reading[T] | None = None) -> tuple[ChatReply, Reading[T]]:
        """Put the question once; after a first answer, with what was wrong with it."""
        reader, addition = self._reader, ""
        if failed is not None:
            values = {**reader.legal, "why": failed.status, "kind": reader.kind, "value": reader.value_text(failed)}
            addition = "\n\n" + self._prompter.prompts.pack.templates.render("again.jinja", values)
        shortenings = 0
        while True:
            try:
                reply = await self._send(self._preamble + self._prompt + addition)
                return reply, read_reply(reader, reply, self._counts)
            except ChatError as error:
                if error.kind != "context_too_long":
                    raise
                if shortenings == _SHORTENINGS or not await self._shorten():
                    raise ChatError(f"{error}; {_TOO_LONG}", kind=error.kind, status=error.status) from None
                shortenings += 1

    async def ask(self, failed: Reading[T] | None = None, *, extract: bool) -> tuple[ChatReply, Reading[T]]:
        """Put the question; with `extract` the model is then asked what its answer meant, if there is one."""
        reply, reading = await self.put_once(failed)
        if extract and reading.status not in (EMPTY, REFUSED):
            reading = await self.repair(reply, reading)
        return reply, reading

    async def repair(self, reply: ChatReply, reading: Reading[T]) -> Reading[T]:
        """Ask the model what its answer meant; a value that the answer does not name is made up, and unreadable."""
        prompter, reader = self._prompter, self._reader
        values = {
            **reader.legal,
            "kind": reader.kind,
            "answer": Note(self._turn.round, shorten_answer(remove_template_tokens(reply.text)[0])),
            "answer_as": "json" if prompter.settings.answers == "json" else "plain",
            "key": reader.key,
        }
        prompt = prompter.prompts.pack.templates.render("repair.jinja", values)
        repaired = read_reply(reader, await self._send(prompt, repair=True), self._counts)
        if repaired.ok and not reader.is_quoted(reading, repaired, reply.text):
            self._counts.unreadable += 1
            return Reading(UNREADABLE)
        return repaired

    async def _send(self, prompt: str, *, repair: bool = False) -> ChatReply:
        name, call = self._call.name, self._call
        return await self._prompter._send(self._turn, name, call, prompt, self._counts, self._reader, repair=repair)

    async def _shorten(self) -> bool:
        """Shorten the prompt; returns whether it became shorter."""
        prompter, prompt = self._prompter, self._prompt
        self._limit = int(min(self._limit, prompter._count(prompt)) * SHORTENED_SHARE)
        self._prompt, _ = await prompter.prompt(self._turn, self._call, self._facts, self._counts, limit=self._limit)
        if self._prompt == prompt:
            return False
        self._counts.shortened += 1
        return True
