"""Asking a model until there is an answer, or it is certain that there is none: prompt, reading, repair, second try."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from llm_coop_envs.policies.llm.chat import Chat, ChatError, ChatMessage, ChatReply, ChatRequest, RequestKey
from llm_coop_envs.policies.llm.parsing import (
    AMBIGUOUS,
    EMPTY,
    ILLEGAL,
    REFUSED,
    UNREADABLE,
    Reading,
)
from llm_coop_envs.policies.llm.playing.calls import CALLS, Call
from llm_coop_envs.policies.llm.playing.counters import CallCounts, Counters
from llm_coop_envs.policies.llm.playing.fitting import fit
from llm_coop_envs.policies.llm.playing.memory import Memory, Note
from llm_coop_envs.policies.llm.playing.packs import Pack, values_for
from llm_coop_envs.policies.llm.playing.personas import Persona
from llm_coop_envs.policies.llm.playing.readers import Reader, WordReader, object_schema
from llm_coop_envs.policies.llm.playing.settings import LLMSettings
from llm_coop_envs.policies.llm.playing.tokens import TokenCounter

T = TypeVar("T")

SUMMARY = "summary"
#: What a prompt is shortened to, as a share, when a provider finds it too long; and how often.
SHORTER = 0.75
_SHORTENINGS = 6


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
        attempts: how many requests were made in this turn, by call.
    """

    episode: str
    agent: str
    step: int
    round: int
    persona: Persona | None
    memory: Memory
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


class Asker:
    """Puts a policy's questions to a model.

    Args:
        chat: answers requests.
        settings: how it is asked.
        pack: the words.
        count: counts tokens.
        counters: where everything is counted.
    """

    def __init__(self, chat: Chat, settings: LLMSettings, pack: Pack, count: TokenCounter, counters: Counters) -> None:
        self.chat = chat
        self.settings = settings
        self.pack = pack
        self.counters = counters
        self._count = count
        self._count_item = functools.lru_cache(maxsize=1 << 13)(count)

    async def ask(
        self,
        turn: Turn,
        call: Call,
        known: Mapping[str, Any],
        reader: Reader[T],
        *,
        before: str = "",
        quiet: bool = False,
    ) -> Decision[T]:
        """Ask until there is an answer, or no try is left.

        Args:
            turn: whose turn it is.
            call: what is asked.
            known: all that the player knows; the prompt shows what the call may show.
            reader: reads the answers.
            before: a text to put before the prompt.
            quiet: whether nothing is an answer too.
        """
        counts = self.counters.of(call.name)
        counts.asked += 1
        question = _Question(self, turn, call, reader, counts, before)
        await question.prepare(known)
        reply, reading = await question.put()
        if reading.ok or (quiet and reading.status == EMPTY):
            counts.answered += 1
            counts.silent += not reading.ok
            return Decision(reading, reply.text)
        if self.settings.repairs and reader.repairable and reading.status in (UNREADABLE, AMBIGUOUS):
            mended = await question.repair(reply)
            if mended.ok:
                counts.repaired += 1
                return Decision(mended, reply.text)
        for _ in range(self.settings.tries):
            reply, reading = await question.put(reading)
            if reading.ok:
                counts.retried += 1
                return Decision(reading, reply.text)
        counts.fallbacks += 1
        return Decision(reading, reply.text)

    async def words(self, turn: Turn, call: Call, known: Mapping[str, Any], *, quiet: bool = False) -> str:
        """Ask for words; empty if there are none."""
        decision = await self.ask(turn, call, known, WordReader(call.key, turn.agent), quiet=quiet)
        return decision.reading.value or ""

    def known(self, turn: Turn, call: Call, slots: Mapping[str, Any], persona: str = "", **more: Any) -> dict[str, Any]:
        """All that may be shown at a call, with the words of the environment's persona and the player's own."""
        own = ""
        if turn.persona is not None and turn.round >= self.settings.persona_from:
            own = turn.persona.text(call.scenario, call.name)
        both = " ".join(text for text in (persona, own) if text)
        return {**slots, **call.nothing_left_out, "answer_as": self.settings.answers, "persona": both, **more}

    async def prompt(
        self, turn: Turn, call: Call, known: Mapping[str, Any], counts: CallCounts, *, limit: int | None = None
    ) -> tuple[str, int]:
        """A call's prompt, and how many tokens it may have.

        Args:
            turn: whose turn it is.
            call: what is asked.
            known: all that the player knows.
            counts: where it is counted what was left out.
            limit: the most tokens; the settings' by default.
        """
        most = self.settings.prompt_tokens(call.scenario, call.name) if limit is None else limit
        values = values_for(call, known)
        memory = turn.memory
        summarised = self.settings.summarise and "summary" in call.slots
        if summarised:
            values["heard"] = known["heard"][memory.summarised :]
            values["summary"] = memory.summary
        while True:
            fitted = fit(
                lambda v: self.pack.render(call.template, v), values, call.shrinks, most, self._count, self._count_item
            )
            excess = fitted.left_out.get("heard", 0)
            if not (summarised and excess and await self._summarise(turn, call, known["heard"], excess)):
                break
            values["heard"] = known["heard"][memory.summarised :]
            values["summary"] = memory.summary
        counts.left_out += sum(fitted.left_out.values())
        counts.overlong += not fitted.fits
        return fitted.text, most

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
        most = self.settings.prompt_tokens(call.scenario, call.name)
        # What does not fit into one summary waits for the next: the newest of these messages give way first.
        fitted = fit(
            lambda v: self.pack.render("summary.jinja", v),
            values,
            (("heard", "first"),),
            most,
            self._count,
            self._count_item,
        )
        taken = wanted - fitted.left_out.get("heard", 0)
        if not taken:
            counts.fallbacks += 1
            return False
        reply = await self._send(turn, SUMMARY, call, fitted.text, counts, None)
        text = WordReader("notes", turn.agent).read(reply.text, truncated=_cut(reply), refused=_refused(reply))
        _tally(counts, text, reply)
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
        schema: Mapping[str, Any] | None,
        *,
        temperature: float | None = None,
    ) -> ChatReply:
        """Make one request."""
        settings = self.settings
        parameters = settings.parameters_for(call.scenario, call.name)
        messages: tuple[ChatMessage, ...] = (ChatMessage("user", prompt),)
        if settings.system:
            messages = (ChatMessage("system", settings.system), *messages)
        counts.requests += 1
        return await self.chat.ask(
            turn.key(name),
            ChatRequest(
                model=settings.model,
                messages=messages,
                temperature=parameters.temperature if temperature is None else temperature,
                top_p=parameters.top_p,
                max_tokens=parameters.max_tokens,
                stop=parameters.stop,
                seed=parameters.seed,
                reasoning_effort=parameters.reasoning_effort,
                json_schema=schema,
                extra=parameters.extra,
            ),
        )


class _Question(Generic[T]):
    """One question with its prompt, as often as it is put."""

    def __init__(
        self, asker: Asker, turn: Turn, call: Call, reader: Reader[T], counts: CallCounts, before: str
    ) -> None:
        self._asker = asker
        self._turn = turn
        self._call = call
        self._reader = reader
        self._counts = counts
        self._before = before
        self._known: Mapping[str, Any] = {}
        self._prompt = ""
        self._limit = 0

    async def prepare(self, known: Mapping[str, Any]) -> None:
        """Make the prompt."""
        self._known = known
        self._prompt, self._limit = await self._asker.prompt(self._turn, self._call, known, self._counts)

    async def put(self, last: Reading[T] | None = None) -> tuple[ChatReply, Reading[T]]:
        """Ask; after a first answer, with what was wrong with it."""
        asker, reader = self._asker, self._reader
        after = ""
        if last is not None:
            values = {"why": last.status, "kind": reader.kind, "value": reader.said(last), **reader.words()}
            after = "\n\n" + asker.pack.render("again.jinja", values)
        schema = None
        if asker.settings.answers == "json":
            reasoned = reader.kind != "text"
            schema = object_schema(self._call.key, reader.schema(self._call.key), reasoned=reasoned)
        shortenings = 0
        while True:
            prompt = self._before + self._prompt + after
            try:
                reply = await asker._send(self._turn, self._call.name, self._call, prompt, self._counts, schema)
                break
            except ChatError as error:
                if error.kind != "context_too_long" or shortenings == _SHORTENINGS or not await self._shorten():
                    raise
                shortenings += 1
        reading = reader.read(reply.text, truncated=_cut(reply), refused=_refused(reply))
        _tally(self._counts, reading, reply)
        return reply, reading

    async def repair(self, reply: ChatReply) -> Reading[T]:
        """Ask what an answer meant."""
        asker, reader, call = self._asker, self._reader, self._call
        as_object = asker.settings.answers == "json"
        values = {
            "kind": reader.kind,
            "answer": Note(self._turn.round, reply.text[:4000]),
            "answer_as": "json" if as_object else "plain",
            "key": call.key,
            **reader.words(),
        }
        schema = None
        if as_object:
            schema = object_schema(call.key, reader.schema(call.key, optional=True), reasoned=False)
        # Nothing is to be made up here; a provider that sets the temperature itself keeps doing so.
        parameters = asker.settings.parameters_for(call.scenario, call.name)
        cold = None if parameters.temperature is None else 0.0
        prompt = asker.pack.render("repair.jinja", values)
        mended = await asker._send(self._turn, call.name, call, prompt, self._counts, schema, temperature=cold)
        reading = reader.read(mended.text, truncated=_cut(mended), refused=_refused(mended))
        _tally(self._counts, reading, mended)
        return reading

    async def _shorten(self) -> bool:
        """Make the prompt shorter; whether it could be."""
        asker = self._asker
        before = self._prompt
        self._limit = int(min(self._limit, asker._count(before)) * SHORTER)
        self._prompt, _ = await asker.prompt(self._turn, self._call, self._known, self._counts, limit=self._limit)
        if self._prompt == before:
            return False
        self._counts.shortened += 1
        return True


def _cut(reply: ChatReply) -> bool:
    return reply.finish_reason == "length"


def _refused(reply: ChatReply) -> bool:
    return reply.finish_reason == "content_filter" or (bool(reply.refusal) and not reply.text.strip())


def _tally(counts: CallCounts, reading: Reading[Any], reply: ChatReply) -> None:
    """Count what an answer was like."""
    counts.truncated += _cut(reply)
    counts.empty += reading.status == EMPTY
    counts.refused += reading.status == REFUSED
    counts.unreadable += reading.status == UNREADABLE
    counts.ambiguous += reading.status == AMBIGUOUS
    counts.illegal += reading.status == ILLEGAL


def call_of(scenario: str, name: str) -> Call:
    """A scenario's call by name."""
    return CALLS[scenario, name]
