"""What is asked of a chat model and what it answers: the one protocol between policies and providers.

The chain, from the outside in: a policy asks a `Chat` (journal, then budget, then dispatcher), which asks a
`ChatClient` (one provider's adapter, one attempt, no retry of its own).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from llm_coop_envs.errors import LlmCoopError


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a conversation with a model.

    Attributes:
        role: `"system"`, `"user"` or `"assistant"`.
        content: its text.
    """

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class RequestKey:
    """Which decision a request belongs to; unique inside a run, whatever the order of arrival.

    Attributes:
        episode: the episode's name in the run, such as `"kbc-talk/0003"`.
        agent: who decides.
        step: the environment's step.
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


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One question to a model; everything the answer may depend on, and nothing else.

    Attributes:
        model: the model's name as the provider knows it.
        messages: the conversation so far.
        temperature: sampling temperature; `None` leaves it to the provider.
        top_p: nucleus sampling; likewise.
        max_tokens: the longest answer in tokens; likewise.
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


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one answer, as the provider counted them.

    Attributes:
        prompt_tokens: tokens of the question.
        completion_tokens: tokens of the answer, hidden reasoning included.
        reasoning_tokens: the hidden part.
        cached_tokens: tokens of the question that the provider had cached.
        estimated: whether the provider sent no usage and these are our estimate.
    """

    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    estimated: bool = False


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
        refusal: the provider's refusal text, if it marks refusals.
    """

    text: str
    usage: Usage
    finish_reason: str
    model: str
    latency: float
    cost: float | None = None
    refusal: str | None = None


class ChatError(LlmCoopError):
    """An attempt failed.

    Args:
        message: one sentence; never holds a key or a header.
        kind: `"rate_limit"`, `"server"`, `"network"`, `"timeout"`, `"bad_reply"`, `"auth"`, `"bad_request"`,
            `"context_too_long"`, `"quota"`.
        status: the HTTP status, if there was one.
        retry_after: seconds the provider asked to wait.
    """

    def __init__(self, message: str, *, kind: str, status: int | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status
        self.retry_after = retry_after

    @property
    def may_retry(self) -> bool:
        """Whether the same request may succeed later."""
        return self.kind in ("rate_limit", "server", "network", "timeout", "bad_reply")


class ChatClient(Protocol):
    """One provider: one attempt per call."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Ask once.

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
            ChatError: no answer can be had (attempts used up, or of a kind that cannot succeed).
            LlmCoopError: the budget is used up, or replay found no entry: the run stops, resumable.
        """
        ...
