"""What is asked of a chat model and what it answers: the one protocol between policies and providers.

The chain, from the outside in: a policy asks a `Chat` (journal, then budget, then dispatcher), which asks a
`ChatClient` (one provider's adapter, one attempt, no retry of its own).

Of the errors, a policy handles one: `ChatError` of kind `"context_too_long"`, by asking a shorter question. All
others end the run, which can be continued: an answer that could not be had is never made up.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol

from llm_coop_envs.errors import LlmCoopError

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
]

#: What the names of models begin with that this machine serves itself.
LOCAL = "local:"

RETRYABLE: frozenset[str] = frozenset({"rate_limit", "server", "network", "timeout", "bad_reply", "form"})

# Hashes of request settings, begun; with `seed` set anew for every request there could be any number of them.
_known_settings: dict[tuple[Any, ...], Any] = {}
_MOST_SETTINGS = 1000

_encode = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation with a model; `role` is `"system"`, `"user"` or `"assistant"`."""

    role: str
    content: str


class RequestKey(NamedTuple):
    """Which decision a request belongs to; unique inside a run, whatever the order of arrival.

    Attributes:
        episode: the episode's name in the run, such as `"kbc-talk/0003"`.
        call: what is asked: `"talk"`, `"plan"`, `"price"`, `"choose"`, `"panic"`, `"evaluate"`, `"exit"`, `"move"`,
            `"summary"`.
        attempt: 0 for the question, 1.. for repair questions and second tries of the policy (not the
            dispatcher's retries).
    """

    episode: str
    agent: str
    step: int
    call: str
    attempt: int = 0

    def __str__(self) -> str:
        """The key as messages name it."""
        again = f", attempt {self.attempt}" if self.attempt else ""
        return f"{self.episode}, {self.agent}, step {self.step}, {self.call}{again}"


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model; everything the answer may depend on, and nothing else.

    Attributes:
        model: the model as the user names it; it selects the endpoint (`Endpoint.model`).
        messages: the conversation so far.
        temperature: sampling temperature; `None` leaves it to the provider.
        top_p: nucleus sampling; likewise.
        max_tokens: the longest answer in tokens, hidden reasoning included; likewise.
        stop: texts that end the answer.
        seed: the provider's sampling seed, where it has one.
        reasoning_effort: for reasoning models, `"low"`, `"medium"`, `"high"`.
        json_schema: ask for an answer of this JSON schema, where the model supports it.
        extra: further fields of the request body, for providers that know them.
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
        """All but the messages, as JSON data; unset fields are left out."""
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
        """The complete request as JSON data, as it is journalled."""
        return {"messages": [[message.role, message.content] for message in self.messages], **self.settings()}

    def _settings_digest(self) -> Any:
        if self.json_schema is not None or self.extra:
            return hashlib.sha256(_encode(self.settings()).encode("ascii"))
        # Most questions of a run share these, and encoding them would cost as much as hashing the messages.
        name = (
            self.model,
            repr(self.temperature),  # 1 and 1.0 are equal, and not the same as JSON
            repr(self.top_p),
            self.max_tokens,
            self.stop,
            self.seed,
            self.reasoning_effort,
        )
        digest = _known_settings.get(name)
        if digest is None:
            if len(_known_settings) >= _MOST_SETTINGS:
                _known_settings.clear()
            digest = _known_settings[name] = hashlib.sha256(_encode(self.settings()).encode("ascii"))
        return digest

    def digest(self) -> str:
        """What tells this request from another one: SHA-256 in hex.

        Hashed are the settings as JSON (sorted keys, no spaces, ASCII), then for each message its role, the length
        of its text in bytes, and the text in UTF-8 (lone surrogates included). Messages, the bulk, are hashed as they
        are because escaping them would cost six times as much as hashing.
        """
        digest = self._settings_digest().copy()
        for message in self.messages:
            text = message.content.encode("utf-8", "surrogatepass")
            digest.update(f"\n{message.role} {len(text)}\n".encode("utf-8", "surrogatepass"))
            digest.update(text)
        name: str = digest.hexdigest()
        return name


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer, as the provider counted them.

    Attributes:
        prompt_tokens: tokens of the question.
        completion_tokens: tokens of the answer, hidden reasoning included.
        reasoning_tokens: the hidden part.
        cached_tokens: tokens of the question that the provider had cached.
        estimated: whether these are our estimate, because the provider sent no usage (`tokens.estimate_tokens`), or
            tokens or a cost that cannot be (then they are the most that there can be).
    """

    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False


UNREAD = Usage(0, 0)  # what is rejected unread is not billed


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What a model answered.

    Attributes:
        text: the answer; empty for a refusal without text.
        usage: tokens.
        finish_reason: the provider's word: `"stop"`, `"length"`, `"content_filter"`, ...
        model: the model as the provider reports it.
        latency: seconds from sending to the whole answer.
        cost: US dollars; `None` if the price is not known.
        refusal: the provider's refusal text, if it marks refusals. A request that the provider's content filter
            rejected comes back as a reply with this text and the finish reason `"content_filter"`.
        reasoning: the model's visible reasoning, where the provider sends it apart from the answer.
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
        """The answer as JSON data, as it is journalled; fields without a value are left out."""
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
        """The answer that `plain` described; a `KeyError` if a field is missing."""
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
        message: one sentence; never holds a key or a header.
        kind: what failed; `RETRYABLE` holds the kinds after which a later attempt may succeed. `"form"` says that the
            endpoint does not take constrained answers in this form; the next attempt is made with another.
        status: the HTTP status, if there was one.
        retry_after: seconds the provider asked to wait.
        maybe_paid: whether the provider may have worked on the request, and bill it, although no answer arrived.
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
        """Whether the same request may succeed later."""
        return self.kind in RETRYABLE

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the parts, so that the error survives a process pool."""
        return functools.partial(ChatError, **vars(self)), (str(self),)


class RunStopped(LlmCoopError, RuntimeError):
    """No further answer can be had now; every answer paid for is kept, and the same run can be continued."""


class BudgetReached(RunStopped):
    """The next request could pass the budget."""


class EndpointStopped(RunStopped):
    """The endpoint refuses this run (key, quota, request) or gave no answer in all attempts."""


class NotInJournal(LlmCoopError, RuntimeError):
    """A replayed run asked what its journal does not hold, or holds for another question."""


class ChatClient(Protocol):
    """One provider: one attempt per call."""

    async def complete(self, request: ChatRequest, *, idempotency_key: str = "") -> ChatReply:
        """Ask once.

        The `idempotency_key` is the same for all attempts at one question of one run; it is sent along where the
        provider may use it to avoid working twice.

        Raises:
            ChatError: the attempt failed.
        """
        ...

    async def aclose(self) -> None:
        """Close connections; may be called any number of times."""
        ...


class Chat(Protocol):
    """What a policy asks: an answer comes from the journal, or is paid for once and journalled before it is used."""

    async def ask(self, key: RequestKey, request: ChatRequest) -> ChatReply:
        """The answer to `request`.

        Raises:
            ChatError: always of kind `"context_too_long"`: ask a shorter question under the next `attempt`. It is
                journalled, so a replay raises it again.
            RunStopped: the budget is used up, or the endpoint refuses or is gone; do not catch it.
            NotInJournal: a replay asked something new, or this run asks another question under the same key.
        """
        ...
