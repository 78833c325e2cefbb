"""Prompting a model until there is an answer, or it is certain that there is none: question, repair, second try."""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from llm_coop_envs.core.base_policy import Action
from llm_coop_envs.interface.question import Number, Options
from llm_coop_envs.interface.wording import Templates
from llm_coop_envs.policies.llm.chat import Chat, ChatError, ChatMessage, ChatReply, ChatRequest, RequestKey
from llm_coop_envs.policies.llm.parsing import AMBIGUOUS, EMPTY, ILLEGAL, REFUSED, UNREADABLE, Reading
from llm_coop_envs.policies.llm.parsing.tokens import INVISIBLE, TEMPLATE_TOKENS, TOO_LONG, without_tokens
from llm_coop_envs.policies.llm.parsing.tokens import shorten as shorten_answer
from llm_coop_envs.policies.llm.playing.answer_counts import AnswerCounts, CallCounts
from llm_coop_envs.policies.llm.playing.calls import Call, names
from llm_coop_envs.policies.llm.playing.context_window import shorten
from llm_coop_envs.policies.llm.playing.memory import Memory, Note
from llm_coop_envs.policies.llm.playing.packs import Prompts
from llm_coop_envs.policies.llm.playing.personas import Persona
from llm_coop_envs.policies.llm.playing.readers import Reader, WordReader, reader_of
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.tokens import TokenCounter

T = TypeVar("T")

SUMMARY = "summary"
PARAPHRASE = Call("paraphrase", "message", names("message"))
_PARAPHRASES = Path(__file__).parents[1] / "packs" / "paraphrase"
#: Models that answer by script: their requests carry the question as data.
SCRIPTED = "scripted"
#: What a prompt is shortened to, as a share, when a provider finds it too long; and how often.
SHORTER = 0.75
_SHORTENINGS = 6
#: Tokens that a word takes at most, on average, so that an answer of so many words is not cut.
TOKENS_A_WORD = 2
_TOO_LONG = (
    "the question is as short as it can be: let the server take longer ones, then run again to continue (every answer "
    "so far is kept, and this question is asked again)"
)


@dataclass(slots=True)
class Turn:
    """One player's turn in one step.

    Attributes:
        episode: the episode's name.
        agent: who decides.
        step: the environment's step.
        round: the round, as the environment counts.
        persona: who the player is, or `None`.
        memory: what it remembers.
        text: the environment's own text, where the workflow asks with it; else empty.
        notice: what a regulator says to the player, for workflows that ask with their own words; put before them.
        attempts: how many requests were made in this turn, by call.
    """

    episode: str
    agent: str
    step: int
    round: int
    persona: Persona | None
    memory: Memory
    text: str = ""
    notice: str = ""
    attempts: dict[str, int] = field(default_factory=dict)

    def key(self, call: str) -> RequestKey:
        """The key of the next request of a call."""
        attempt = self.attempts.get(call, 0)
        self.attempts[call] = attempt + 1
        return RequestKey(self.episode, self.agent, self.step, call, attempt)


@dataclass(frozen=True, slots=True)
class Decision(Generic[T]):
    """What came of a question.

    Attributes:
        reading: the last reading; usable if it is `ok`.
        text: the answer it was read from.
    """

    reading: Reading[T]
    text: str


class Prompter:
    """Puts a policy's questions to a model.

    Args:
        chat: answers requests.
        settings: how it is asked.
        prompts: the words.
        count: counts tokens.
        counters: where it is counted what became of the answers.
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
        before: str = "",
        quiet: bool = False,
        extract: bool = False,
    ) -> Decision[T]:
        """Ask until there is an answer, or no try is left.

        Args:
            turn: whose turn it is.
            call: what is asked.
            facts: all that the player knows; the prompt shows what the call may show.
            reader: reads the answers.
            before: a text to put before the prompt.
            quiet: whether nothing is an answer too.
            extract: whether a second question reads every answer.
        """
        counts = self.counters.of(call.name)
        counts.asked += 1
        prompt, limit = await self.prompt(turn, call, facts, counts)
        question = _Question(self, turn, call, facts, reader, counts, before, prompt, limit)
        reply, reading = await question.answered(extract=extract)
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
            reply, reading = await question.answered(reading, extract=extract)
            if reading.ok:
                counts.retried += 1
                return Decision(reading, reply.text)
        counts.fallbacks += 1
        return Decision(reading, reply.text)

    async def words(self, turn: Turn, call: Call, facts: Mapping[str, Any], *, quiet: bool = False) -> str:
        """Ask for words; empty if there are none."""
        decision = await self.ask(turn, call, facts, WordReader(call.key, turn.agent), quiet=quiet)
        return decision.reading.value or ""

    async def message(self, turn: Turn, call: Call, facts: Mapping[str, Any]) -> Action:
        """Ask what a player says; it may be silent."""
        return {"message": await self.words(turn, call, facts, quiet=True)}

    async def in_other_words(self, turn: Turn, text: str) -> str:
        """Ask for a message in other words; empty if there are none."""
        facts = self.facts(turn, PARAPHRASE, {"message": Note(turn.round, text)})
        counts = self.counters.of(PARAPHRASE.name)
        counts.asked += 1
        prompt = _paraphrasing().render(_paraphrase_file(self.prompts.pack.manifest.language), PARAPHRASE.values(facts))
        reader = WordReader(PARAPHRASE.key, turn.agent)
        reading = _read(reader, await self._send(turn, PARAPHRASE.name, PARAPHRASE, prompt, counts, reader), counts)
        counts.answered += reading.ok
        counts.fallbacks += not reading.ok
        return reading.value or ""

    async def choose(
        self,
        turn: Turn,
        call: Call,
        facts: Mapping[str, Any],
        question: Number | Options,
        *,
        before: str = "",
        extract: bool = False,
    ) -> tuple[Action, str]:
        """Ask for a choice; see `choice_of`.

        The prompt may also show what the question says: its kind, its key, and what is legal.

        Returns:
            The action, empty if no choice could be read; and the answer it was read from.
        """
        reader = reader_of(question, self.prompts.word)
        facts = {"kind": reader.kind, "key": reader.key, **reader.legal, **facts}
        decision = await self.ask(turn, call, facts, reader, before=before, extract=extract)
        choice = choice_of(question, decision.reading, self.counters.of(call.name))
        return {} if choice is None else {"choice": choice}, decision.text

    def facts(self, turn: Turn, call: Call, slots: Mapping[str, Any], persona: str = "", **more: Any) -> dict[str, Any]:
        """All that may be shown at a call, with the words of the environment's persona and the player's own."""
        own = ""
        if turn.persona is not None and turn.round >= self.settings.persona_from:
            own = turn.persona.text(call.name)
        both = " ".join(text for text in (persona, own) if text)
        tokens = self.settings.parameters_for(self.prompts.scenario, call.name).max_tokens
        shared = {
            "answer_as": self.settings.answers,
            "answer_words": None if tokens is None else max(1, tokens // TOKENS_A_WORD),
            "persona": both,
        }
        return {**slots, **call.nothing_left_out, **shared, **more}

    async def prompt(
        self, turn: Turn, call: Call, facts: Mapping[str, Any], counts: CallCounts, *, limit: int | None = None
    ) -> tuple[str, int]:
        """A call's prompt, and how many tokens it may have.

        Args:
            turn: whose turn it is.
            call: what is asked.
            facts: all that the player knows.
            counts: where it is counted what was left out.
            limit: the most tokens; the settings' by default.
        """
        most = self.settings.prompt_tokens(self.prompts.scenario, call.name) if limit is None else limit
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
                most,
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
        return prompt.text, most

    async def _summarise(self, turn: Turn, call: Call, heard: tuple[Any, ...], excess: int) -> bool:
        """Replace the oldest messages by notes; whether that was done."""
        counts = self.counters.of(SUMMARY)
        counts.asked += 1
        memory = turn.memory
        waiting = heard[memory.summarised :]
        # A quarter more than must go, so that not every new message asks for new notes.
        wanted = min(len(waiting), excess + max(1, len(waiting) // 4))
        values = {
            "me": turn.agent,
            "heard": waiting[:wanted],
            "summary": memory.summary,
            "words": self.settings.summary_words,
        }
        most = self.settings.prompt_tokens(self.prompts.scenario, call.name)
        # What does not fit into one summary waits for the next: the newest of these messages give way first.
        prompt = shorten(
            functools.partial(self.prompts.pack.templates.render, "summary.jinja"),
            values,
            (("heard", "first"),),
            most,
            self._count,
            self._count_item,
        )
        taken = wanted - prompt.left_out.get("heard", 0)
        if not taken:
            counts.fallbacks += 1
            return False
        reader = WordReader("notes", turn.agent)
        reply = await self._send(turn, SUMMARY, call, prompt.text, counts, reader)
        text = _read(reader, reply, counts)
        if not text.ok or text.value is None:
            counts.fallbacks += 1
            return False
        counts.answered += 1
        memory.summary = Note(turn.round, text.value)
        memory.summarised += taken
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
            question = {"kind": reader.kind, "key": reader.key, "form": form, "repair": repair, **reader.legal}
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
    """One question with its prompt, as often as it is put."""

    _prompter: Prompter
    _turn: Turn
    _call: Call
    _facts: Mapping[str, Any]
    _reader: Reader[T]
    _counts: CallCounts
    _before: str
    _prompt: str
    _limit: int

    async def put(self, last: Reading[T] | None = None) -> tuple[ChatReply, Reading[T]]:
        """Ask; after a first answer, with what was wrong with it."""
        reader, after = self._reader, ""
        if last is not None:
            values = {**reader.legal, "why": last.status, "kind": reader.kind, "value": reader.said(last)}
            after = "\n\n" + self._prompter.prompts.pack.templates.render("again.jinja", values)
        shortenings = 0
        while True:
            try:
                reply = await self._send(self._before + self._prompt + after)
                return reply, _read(reader, reply, self._counts)
            except ChatError as error:
                if error.kind != "context_too_long":
                    raise
                if shortenings == _SHORTENINGS or not await self._shorten():
                    raise ChatError(f"{error}; {_TOO_LONG}", kind=error.kind, status=error.status) from None
                shortenings += 1

    async def answered(self, last: Reading[T] | None = None, *, extract: bool) -> tuple[ChatReply, Reading[T]]:
        """Ask, and let a second question read what was answered, if that is wanted and anything was."""
        reply, reading = await self.put(last)
        if extract and reading.status not in (EMPTY, REFUSED):
            reading = await self.repair(reply, reading)
        return reply, reading

    async def repair(self, reply: ChatReply, reading: Reading[T]) -> Reading[T]:
        """Ask what an answer meant; what it does not name itself is made up, and not taken."""
        prompter, reader = self._prompter, self._reader
        values = {
            **reader.legal,
            "kind": reader.kind,
            "answer": Note(self._turn.round, shorten_answer(without_tokens(reply.text)[0])),
            "answer_as": "json" if prompter.settings.answers == "json" else "plain",
            "key": reader.key,
        }
        prompt = prompter.prompts.pack.templates.render("repair.jinja", values)
        repaired = _read(reader, await self._send(prompt, repair=True), self._counts)
        named = {*reading.named, reading.value} if reading.ok else reading.named
        said = re.escape(reader.said(repaired)) if reading.ok else ""
        told = bool(said) and re.search(rf"(?<![\d.]){said}(?!\.?\d)", reply.text) is not None
        if repaired.ok and repaired.value not in named and not told:
            self._counts.unreadable += 1
            return Reading(UNREADABLE)
        return repaired

    async def _send(self, prompt: str, *, repair: bool = False) -> ChatReply:
        name, call = self._call.name, self._call
        return await self._prompter._send(self._turn, name, call, prompt, self._counts, self._reader, repair=repair)

    async def _shorten(self) -> bool:
        """Make the prompt shorter; whether it could be."""
        prompter, before = self._prompter, self._prompt
        self._limit = int(min(self._limit, prompter._count(before)) * SHORTER)
        self._prompt, _ = await prompter.prompt(self._turn, self._call, self._facts, self._counts, limit=self._limit)
        if self._prompt == before:
            return False
        self._counts.shortened += 1
        return True


def _paraphrase_file(language: str) -> str:
    return f"{language if (_PARAPHRASES / f'{language}.jinja').is_file() else 'en'}.jinja"


@functools.cache
def _paraphrasing() -> Templates:
    """What asks for other words, by language; in no pack, whose hash it would change."""
    return Templates(_PARAPHRASES, {path.name: PARAPHRASE.names for path in _PARAPHRASES.glob("*.jinja")})


def _read(reader: Reader[T], reply: ChatReply, counts: CallCounts) -> Reading[T]:
    """Read an answer, and count what it was like."""
    cut = reply.finish_reason == "length"
    refused = reply.finish_reason == "content_filter" or (bool(reply.refusal) and not reply.text.strip())
    counts.truncated += cut
    return read_text_of(reader, reply.text, counts, truncated=cut, refused=refused)


def read_text_of(
    reader: Reader[T], text: str, counts: CallCounts, *, truncated: bool = False, refused: bool = False
) -> Reading[T]:
    """Read an answer's text, and count what it was like."""
    reading = reader.read(text, truncated=truncated, refused=refused)
    counts.empty += reading.status == EMPTY
    counts.refused += reading.status == REFUSED
    counts.unreadable += reading.status == UNREADABLE
    counts.ambiguous += reading.status == AMBIGUOUS
    counts.illegal += reading.status == ILLEGAL
    counts.too_long += TOO_LONG in reading.flags
    counts.cleaned += TEMPLATE_TOKENS in reading.flags or INVISIBLE in reading.flags
    return reading


def choice_of(question: Number | Options, reading: Reading[Any], counts: CallCounts) -> float | int | None:
    """What is submitted for a reading; `None` if no choice could be read.

    A number with decimals where integers are asked for is rounded, halves up, and counted. A number that stays outside
    the bounds is submitted all the same, so that the environment replaces and flags it.
    """
    value: float | None = reading.value
    if value is None or isinstance(question, Options):
        return value
    if question.integer and reading.ok and not float(value).is_integer():
        counts.rounded += 1
        value = math.floor(value + 0.5)
    return question.choice(value)
