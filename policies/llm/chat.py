"""Requests to chat models and their replies: the one protocol between policies and providers.

A policy asks a `Chat` (journal, then budget, then dispatcher). The chat asks a `ChatClient` (the adapter of one
provider: one attempt, no retries).

A policy handles a single error: `ChatError` of kind `"context_too_long"`, by asking a shorter question. All other
errors end the run, which can be continued. A missing answer is never made up.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from llm_coop_envs.errors import LlmCoopError
from llm_coop_envs.util.fastjson import dumps
from llm_coop_envs.util.fixed_schema import FixedSchema

ErrorKind = Literal[
    "rate_limit",
    "server",
    "network",
    "timeout",
    "bad_reply",
    "auth",
    "quota",
    "not_found",
    "bad_request",
    "form",
    "content_filter",
    "context_too_long",
    "lost",
]

#: The prefix of models that this machine serves itself.
LOCAL = "local:"

RETRYABLE: frozenset[str] = frozenset({"rate_limit", "server", "network", "timeout", "bad_reply", "form"})

# Request settings as JSON, and hash objects already fed with it. A new `seed` for every request could make any number
# of them. Schemas are known by their identity, and kept so that no other can take it.
_known_settings: dict[tuple[Any, ...], tuple[Any, bytes, Any]] = {}
_MOST_SETTINGS = 1000

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation with a model; `role` is `"system"`, `"user"` or `"assistant"`."""

    role: str
    content: str


class RequestKey(NamedTuple):
    """The decision that a request belongs to; unique within a run.

    Attributes:
        episode: the episode's name in the run, such as `"kbc-talk/0003"`.
        agent: the player.
        step: steps of the environment before this one.
        call: the kind of question: `"talk"`, `"plan"`, `"price"`, `"choose"`, `"panic"`, `"evaluate"`, `"exit"`,
            `"move"`, `"summary"`.
        attempt: 0 for the question; 1 and up for the policy's repair questions and second tries (not the dispatcher's
            retries).
    """

    episode: str
    agent: str
    step: int
    call: str
    attempt: int = 0

    def __str__(self) -> str:
        """The key, as messages name it."""
        again = f", attempt {self.attempt}" if self.attempt else ""
        return f"{self.episode}, {self.agent}, step {self.step}, {self.call}{again}"


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model: everything the answer may depend on, and nothing else.

    Attributes:
        model: the model as the user names it; it selects the endpoint (`Endpoint.model`).
        messages: the conversation so far.
        temperature: sampling temperature; `None` for the provider's default.
        top_p: nucleus sampling; likewise.
        max_tokens: the longest answer in tokens, including hidden reasoning; likewise.
        stop: texts that end the answer.
        seed: the provider's sampling seed, if it has one.
        reasoning_effort: for reasoning models, `"low"`, `"medium"`, `"high"`.
        json_schema: the JSON schema of the answer, if the model supports one.
        extra: further fields of the request's body.
    """

    model: str
    messages: tuple[ChatMessage, ...]
    temperature: float | None = None
    top_p: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    reasoning_effort: str | None = None
    json_schema: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def settings(self) -> dict[str, Any]:
        """All fields but the messages, as JSON data, without unset fields."""
        settings: dict[str, Any] = {"model": self.model}
        for name in ("temperature", "top_p", "max_tokens"):
            if (value := getattr(self, name)) is not None:
                settings[name] = value
        if self.stop:
            settings["stop"] = list(self.stop)
        for name in ("seed", "reasoning_effort"):
            if (value := getattr(self, name)) is not None:
                settings[name] = value
        if self.json_schema is not None:
            settings["json_schema"] = dict(self.json_schema)
        if self.extra:
            settings["extra"] = dict(self.extra)
        return settings

    def plain(self) -> dict[str, Any]:
        """The complete request as JSON data, as the journal records it."""
        return {"messages": [[message.role, message.content] for message in self.messages], **self.settings()}

    def packed(self) -> bytes:
        """The complete request as JSON, as the journal records it."""
        messages = dumps([[message.role, message.content] for message in self.messages])
        return b'{"messages":%b,%b' % (messages, self._settings_packed[1][1:])

    @property
    def _settings_packed(self) -> tuple[Any, bytes, Any]:
        """A hash object that was fed with the settings as JSON, and the JSON; whoever uses the former copies it."""
        schema = self.json_schema
        if self.extra or not (schema is None or isinstance(schema, FixedSchema)):
            return _pack_settings(self)
        # Most questions of a run share their settings, and encoding these costs as much as hashing the messages.
        name = (
            self.model,
            repr(self.temperature),  # 1 and 1.0 are equal but differ in JSON
            repr(self.top_p),
            self.max_tokens,
            self.stop,
            self.seed,
            self.reasoning_effort,
            None if schema is None else id(schema),
        )
        entry = _known_settings.get(name)
        if entry is None:
            if len(_known_settings) >= _MOST_SETTINGS:
                _known_settings.clear()
            entry = _known_settings[name] = _pack_settings(self)
        return entry

    def digest(self) -> str:
        """The SHA-256 of the request, in hex.

        It covers the settings as JSON (sorted keys, no spaces, ASCII), then for each message its role, the length of
        its text in bytes, and the text in UTF-8 (with lone surrogates). Messages are hashed without JSON's escapes,
        which would cost six times as much as hashing.
        """
        digest = self._settings_packed[0].copy()
        for message in self.messages:
            text = message.content.encode("utf-8", "surrogatepass")
            digest.update(f"\n{message.role} {len(text)}\n".encode("utf-8", "surrogatepass"))
            digest.update(text)
        name: str = digest.hexdigest()
        return name


def _pack_settings(request: ChatRequest) -> tuple[Any, bytes, Any]:
    packed = _encode(request.settings()).encode("ascii")
    return hashlib.sha256(packed), packed, request.json_schema


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer, as the provider counted them.

    Attributes:
        prompt_tokens: tokens of the question.
        completion_tokens: tokens of the answer, including hidden reasoning.
        reasoning_tokens: tokens of the hidden reasoning.
        cached_tokens: tokens of the question that the provider had cached.
        estimated: whether these are our own figures: an estimate (`tokens.estimate_tokens`) if the provider stated no
            usage, or upper bounds if its tokens or cost were impossible.
    """

    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False


UNREAD = Usage(0, 0)  # of a request that was rejected unread, which is not billed


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A model's answer.

    Attributes:
        text: the answer; empty for a refusal without text.
        usage: tokens.
        finish_reason: as the provider states it: `"stop"`, `"length"`, `"content_filter"`, ...
        model: the model as the provider reports it.
        latency: seconds from sending to the complete answer.
        cost: US dollars; `None` if the price is not known.
        refusal: the provider's refusal text, if it marks refusals. If the provider's content filter rejects a request,
            the reply has this text and the finish reason `"content_filter"`.
        reasoning: the model's visible reasoning, if the provider separates it from the answer.
    """

    text: str
    usage: Usage
    finish_reason: str
    model: str
    latency: float
    cost: float | None = None
    refusal: str | None = None
    reasoning: str | None = None

    def plain(self) -> dict[str, Any]:
        """The answer as JSON data, as the journal records it, without unset fields."""
        usage = self.usage
        tokens: dict[str, Any] = {"prompt": usage.prompt_tokens, "completion": usage.completion_tokens}
        if usage.reasoning_tokens:
            tokens["reasoning"] = usage.reasoning_tokens
        if usage.cached_tokens:
            tokens["cached"] = usage.cached_tokens
        if usage.estimated:
            tokens["estimated"] = True
        data: dict[str, Any] = {
            "text": self.text,
            "finish_reason": self.finish_reason,
            "model": self.model,
            "latency": self.latency,
            "usage": tokens,
        }
        for name in ("cost", "refusal", "reasoning"):
            if (value := getattr(self, name)) is not None:
                data[name] = value
        return data

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> ChatReply:
        """Read an answer from the data that `plain` returns.

        Raises:
            KeyError: a field is missing.
        """
        tokens = data["usage"]
        return cls(
            text=data["text"],
            usage=Usage(
                tokens["prompt"],
                tokens["completion"],
                tokens.get("reasoning", 0),
                tokens.get("cached", 0),
                tokens.get("estimated", False),
            ),
            finish_reason=data["finish_reason"],
            model=data["model"],
            latency=data["latency"],
            cost=data.get("cost"),
            refusal=data.get("refusal"),
            reasoning=data.get("reasoning"),
        )


class ChatError(LlmCoopError):
    """An attempt failed.

    Args:
        message: one sentence, without keys or headers.
        kind: the kind of failure. After the kinds in `RETRYABLE` a later attempt may succeed. `"form"` means that the
            endpoint does not accept this form of constrained answers; the next attempt uses another one.
        status: the HTTP status, if there was one.
        retry_after: seconds that the provider asked to wait.
        maybe_paid: whether the provider may have processed the request, and may bill it, although no answer arrived.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: ErrorKind,
        status: int | None = None,
        retry_after: float | None = None,
        maybe_paid: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind: ErrorKind = kind
        self.status = status
        self.retry_after = retry_after
        self.maybe_paid = maybe_paid

    @property
    def may_retry(self) -> bool:
        """Whether the same request may succeed in a later attempt."""
        return self.kind in RETRYABLE

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the error with its fields, so that it survives a process pool."""
        return functools.partial(ChatError, **vars(self)), (str(self),)


class RunStopped(LlmCoopError, RuntimeError):
    """No further answers can be obtained now. Every paid answer is kept, and the run can be continued."""


class BudgetReached(RunStopped):
    """The next request could exceed the budget."""


class EndpointStopped(RunStopped):
    """The endpoint refuses the run (key, quota, request) or has not answered in any attempt."""


class ClaimLost(LlmCoopError, RuntimeError):
    """Another part of the run has taken an episode over; this one asks nothing for it any more."""


class NotInJournal(LlmCoopError, RuntimeError):
    """A question is not in the journal of a replayed run, or the journal has another question under its key."""


class ChatClient(Protocol):
    """The adapter of one provider, with one attempt per call."""

    async def complete(self, request: ChatRequest, *, idempotency_key: str = "") -> ChatReply:
        """Ask once.

        The `idempotency_key` is the same for all attempts at one question of one run. Providers may use it to avoid
        processing a question twice.

        Raises:
            ChatError: the attempt failed.
        """
        ...

    async def aclose(self) -> None:
        """Close connections; may be called any number of times."""
        ...


class Chat(Protocol):
    """The interface between policies and models. Every answer is paid for once and journalled before it is used."""

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """Answer a request, from the journal or from the model.

        Raises:
            ChatError: always of kind `"context_too_long"`: ask a shorter question under the next `attempt`. The error
                is journalled, so a replay raises it again.
            RunStopped: the budget is used up, or the endpoint refuses or is gone; do not catch it.
            NotInJournal: a replay asked something new, or this run asked another question under the same key.
        """
        ...
