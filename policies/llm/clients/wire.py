"""OpenAI's chat format, as compatible servers use it: build a request's body, parse a response."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping
from typing import Any

from llm_coop_envs.policies.llm.chat import ChatError, ChatReply, ChatRequest, Usage
from llm_coop_envs.policies.llm.tokens import estimate_tokens
from llm_coop_envs.util.fastjson import loads

LONGEST_REPLY = 16 * 1024 * 1024  # bytes; a longer body is a fault, not an answer
LONGEST_STREAM = 4 * LONGEST_REPLY  # most of a stream is not the answer's text
LONGEST_ERROR = 64 * 1024
# Names in a reply (model, finish reason) are recorded as they are, up to this length.
_LONGEST_NAME = 200
# We request uncompressed bodies, but some servers compress them all the same.
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})
_PIECE = 1 << 20


# The forms in which an answer of a JSON schema can be requested, strictest first; "none" relies on the prompt alone.
# Not all providers accept bounds on numbers and lengths.
# llama.cpp's translation of schemas drops the bounds of real numbers; llguidance grammars keep them.
FORMS = ("llguidance", "json_schema with bounds", "json_schema", "json_object with schema", "json_object", "none")
_BOUNDS = ("minimum", "maximum", "maxLength")
# If white space is free, a small model may fill the rest of its answer with it.
_SPACING = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


def request_body(
    request: ChatRequest, *, model: str, tokens_field: str, stream: bool, form: str = "json_schema"
) -> dict[str, Any]:
    """Build the JSON body of a request.

    Args:
        request: the question.
        model: the model as the provider names it.
        tokens_field: the field for `max_tokens`: `"max_completion_tokens"` for OpenAI, `"max_tokens"` elsewhere.
        stream: whether to request the answer in pieces, followed by its usage.
        form: the form (`FORMS`) in which an answer of a JSON schema is requested.
    """
    body: dict[str, Any] = {
        "model": model,
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
    }
    for name in ("temperature", "top_p", "seed", "reasoning_effort"):
        value = getattr(request, name)
        if value is not None:
            body[name] = value
    if request.max_tokens is not None:
        body[tokens_field] = request.max_tokens
    if request.stop:
        body["stop"] = list(request.stop)
    if request.json_schema is not None and form == "llguidance":
        schema = {"x-guidance": _SPACING, **request.json_schema}
        body["grammar"] = f"%llguidance {{}}\nstart: %json {json.dumps(schema)}"
    elif request.json_schema is not None and form != "none":
        schema = _without_bounds(request.json_schema) if form == "json_schema" else dict(request.json_schema)
        named = {"name": "answer", "schema": schema, "strict": True}
        kind, _, with_schema = form.partition(" ")
        schema_field = {"json_schema": named} if kind == "json_schema" else {"schema": schema} if with_schema else {}
        body["response_format"] = {"type": kind, **schema_field}
    if stream:
        body["stream"] = True
        body["stream_options"] = {"include_usage": True}
    body.update(request.extra)
    return body


def _without_bounds(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    return {name: _without_bounds(value) for name, value in schema.items() if name not in _BOUNDS}


def unpack_body(parts: AsyncIterable[bytes], packing: str, where: str) -> AsyncIterable[bytes]:
    """Decompress a body in pieces of at most 1 MiB: a small body may expand to more than the memory.

    Iterating raises a `ChatError` of kind `"bad_reply"` if it cannot be decompressed.
    """
    return _unpack(parts, where) if packing.strip().lower() in _PACKED else parts


async def _unpack(parts: AsyncIterable[bytes], where: str) -> AsyncIterator[bytes]:
    unpacker = zlib.decompressobj(wbits=47)
    async for part in parts:
        try:
            while part:
                yield unpacker.decompress(part, _PIECE)
                part = unpacker.unconsumed_tail
        except zlib.error:
            raise bad_reply(where, "a body that cannot be unpacked") from None


async def limit_length(parts: AsyncIterable[bytes], where: str, longest: int = LONGEST_REPLY) -> AsyncIterator[bytes]:
    """Yield the parts of a body.

    Raises:
        ChatError: of kind `"bad_reply"`: they are longer than any answer.
    """
    size = 0
    async for part in parts:
        size += len(part)
        if size > longest:
            raise too_long(where)
        yield part


async def truncate(parts: AsyncIterable[bytes]) -> AsyncIterator[bytes]:
    """Yield the beginning of an error's body, up to `LONGEST_ERROR` bytes."""
    remaining = LONGEST_ERROR
    async for part in parts:
        yield part[:remaining]
        remaining -= len(part)
        if remaining <= 0:
            return


def load_body(raw: bytes, where: str) -> Any:
    """Parse a complete response.

    Raises:
        ChatError: of kind `"bad_reply"`: it is too long or no JSON.
    """
    if len(raw) > LONGEST_REPLY:
        raise too_long(where)
    try:
        return loads(raw)
    except ValueError:
        raise bad_reply(where, "something that is not JSON") from None


def read_completion(data: Any, request: ChatRequest, *, where: str, latency: float) -> ChatReply:
    """Read a reply from a chat completion object.

    Raises:
        ChatError: of kind `"bad_reply"`: it is no chat completion.
    """
    choices = data.get("choices") if isinstance(data, dict) else None
    if not isinstance(choices, list):
        raise bad_reply(where, "JSON that is no chat completion")
    if not choices:
        raise bad_reply(where, "a chat completion without a choice")
    choice = choices[0]
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise bad_reply(where, "a chat completion without a message")
    text = _text(message.get("content"))
    if len(text) > LONGEST_REPLY:
        raise too_long(where)
    if not text:
        text = _tool_arguments(message.get("tool_calls"))
    reasoning = message.get("reasoning_content") or message.get("reasoning")
    reasoning = clean(reasoning) if isinstance(reasoning, str) else None
    refusal = message.get("refusal") or _field(message.get("provider_specific_fields"), "refusal")
    usage, cost = _usage(data.get("usage"), request, text, reasoning)
    return ChatReply(
        text=text,
        usage=usage,
        finish_reason=_name(choice.get("finish_reason")) or "unknown",
        model=_name(data.get("model")) or request.model,
        latency=latency,
        cost=cost,
        refusal=clean(refusal) if isinstance(refusal, str) and refusal else None,
        reasoning=reasoning,
    )


class StreamedReply:
    """Joins the pieces of a streamed answer."""

    def __init__(self) -> None:
        self._message: dict[str, list[str]] = {"content": [], "refusal": [], "reasoning_content": []}
        self._arguments: list[str] = []
        self._finish: str | None = None
        self._model: str | None = None
        self._usage: Any = None
        self._pieces = 0
        self._size = 0

    def add(self, piece: Any, where: str) -> None:
        """Add the next piece.

        Raises:
            ChatError: the piece reports an error or is invalid, or the answer grows too long.
        """
        if not isinstance(piece, dict):
            raise bad_reply(where, "a stream that is no chat completion")
        if piece.get("error"):
            raise ChatError(f"{where} broke off its answer with an error", kind="server", maybe_paid=True)
        self._model = piece.get("model") or self._model
        self._usage = piece.get("usage") or self._usage
        choices = piece.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return
        self._pieces += 1
        self._finish = choices[0].get("finish_reason") or self._finish
        delta = choices[0].get("delta")
        if not isinstance(delta, dict):
            return
        for name, parts in self._message.items():
            value = delta.get(name) or (delta.get("reasoning") if name == "reasoning_content" else None)
            if isinstance(value, str):
                parts.append(value)
                self._size += len(value)
        self._arguments.append(_tool_arguments(delta.get("tool_calls")))
        if self._size > LONGEST_REPLY:
            raise too_long(where)

    def completion(self, where: str) -> dict[str, Any]:
        """The complete answer as a chat completion object.

        Raises:
            ChatError: of kind `"bad_reply"`: the stream ended before the answer did.
        """
        if not self._pieces:
            raise bad_reply(where, "a stream without a choice")
        if self._finish is None:
            raise bad_reply(where, "a stream that broke off")
        joined: dict[str, Any] = {name: "".join(parts) or None for name, parts in self._message.items()}
        arguments = "".join(self._arguments)
        if arguments:
            joined["tool_calls"] = [{"function": {"arguments": arguments}}]
        choice = {"message": joined, "finish_reason": self._finish}
        return {"choices": [choice], "model": self._model, "usage": self._usage}


def stream_events(lines: Iterable[bytes]) -> Iterable[Any]:
    """Yield the JSON objects in lines of server-sent events up to `[DONE]`.

    Raises:
        ValueError: a line's data is no JSON.
    """
    for line in lines:
        if not line.startswith(b"data:"):
            continue
        data = line[5:].strip()
        if data == b"[DONE]":
            return
        if data:
            yield loads(data)


def bad_reply(where: str, content: str) -> ChatError:
    """The error for an answer that arrived but cannot be read; it may be billed."""
    return ChatError(f"{where} answered with {content}", kind="bad_reply", maybe_paid=True)


def too_long(where: str) -> ChatError:
    """The error for an answer that is too long."""
    return bad_reply(where, f"more than {LONGEST_REPLY // 2**20} MiB")


def clean(text: str) -> str:
    """Replace lone surrogates, which no file or request can hold; a cut emoji leaves one."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _name(name: Any) -> str:
    return clean(name[:_LONGEST_NAME]) if isinstance(name, str) else ""


def _text(content: Any) -> str:
    if isinstance(content, str):
        return clean(content)
    if isinstance(content, list):  # some servers send the answer in typed parts
        return clean("".join(str(part.get("text") or "") for part in content if isinstance(part, dict)))
    return ""


def _field(where: Any, name: str) -> Any:
    return where.get(name) if isinstance(where, dict) else None


def _tool_arguments(calls: Any) -> str:
    """The arguments of the first tool call, which are the answer of a model that answers through a tool."""
    if isinstance(calls, list) and calls and isinstance(calls[0], dict):
        function = calls[0].get("function")
        if isinstance(function, dict):
            arguments = function.get("arguments")
            return arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""
    return ""


def _usage(counted: Any, request: ChatRequest, text: str, reasoning: str | None) -> tuple[Usage, float | None]:
    """Tokens, and the cost if the provider states it (OpenRouter does). `settle` checks their plausibility."""
    prompt, answer = _count(counted, "prompt_tokens"), _count(counted, "completion_tokens")
    cost = _cost(_field(counted, "cost"))
    if prompt is None or answer is None:
        prompt = sum(estimate_tokens(message.content) for message in request.messages)
        hidden = estimate_tokens(reasoning or "")
        return Usage(prompt, estimate_tokens(text) + hidden, reasoning_tokens=hidden, estimated=True), cost
    return (
        Usage(
            prompt_tokens=prompt,
            completion_tokens=answer,
            reasoning_tokens=_count(_field(counted, "completion_tokens_details"), "reasoning_tokens") or 0,
            cached_tokens=_count(_field(counted, "prompt_tokens_details"), "cached_tokens") or 0,
        ),
        cost,
    )


def _count(where: Any, name: str) -> int | None:
    value = _field(where, name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _cost(value: Any) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf
