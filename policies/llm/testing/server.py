"""The scripted server: OpenAI's chat format on a loopback address, with answers from a function, and faults."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from aiohttp import web

from llm_coop_envs.policies.llm.testing.faults import Faults
from llm_coop_envs.policies.llm.tokens import estimate_tokens
from llm_coop_envs.util.fastjson import dumps, loads

MODEL = "scripted"
_REFUSALS = {
    "rate_limit": (429, "Rate limit reached.", "rate_limit_exceeded"),
    "rate_limit_after": (429, "Rate limit reached; please wait.", "rate_limit_exceeded"),
    "server_error": (500, "The server had an error while processing your request.", "server_error"),
    "unavailable": (503, "The engine is currently overloaded.", "server_error"),
}
_PIECE = 16  # characters in one piece of a streamed answer


def digest_answer(text: str, metadata: Mapping[str, str] | None = None) -> str:
    """Answer any prompt with a number from 0 to 100, in a short sentence; the number depends on the whole prompt."""
    number = int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "big") % 101
    return f"I have thought about it. My choice is {number}."


class ScriptedServer:
    """An OpenAI-compatible server that is not a language model; `async with` starts and stops it.

    It answers `POST /v1/chat/completions` (in one piece or streamed), `GET /v1/models` and `GET /counts`.

    Args:
        answer: answers a prompt (the texts of its messages with empty lines between) and the request's metadata.
        faults: which requests go wrong.
        latency: seconds before each answer.
        count: counts a text's tokens for `usage` and for the limit on the answer; `None` leaves `usage` out.
        key: the key that requests must bring; `None` lets everyone in.
        at_once: requests beyond this number at the same time are refused with 429.
        remember: how many answers are cached by the request's body; saves work when clients are measured.
        port: 0 takes a free one.

    Attributes:
        asked: how often each question arrived, by idempotency key (or by a hash of the body).
        answered: how often each was answered in full.
        fates: how many requests were answered (`"answer"`) or went wrong, by kind of fault.
        most_in_flight: the largest number of questions that were being answered at the same time.
    """

    def __init__(
        self,
        answer: Callable[[str, Mapping[str, str]], str] = digest_answer,
        *,
        faults: Faults | None = None,
        latency: float = 0.0,
        count: Callable[[str], int] | None = estimate_tokens,
        key: str | None = None,
        at_once: int | None = None,
        remember: int = 0,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.faults = faults or Faults()
        self.latency = latency
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.fates: Counter[str] = Counter()
        self.in_flight = 0
        self.most_in_flight = 0
        self._answer = answer
        self._count = count
        self._key = key
        self._at_once = at_once
        self._remember = remember
        self._cached_responses: dict[bytes, bytes] = {}
        self._host = host
        self._port = port
        self._runner: web.ServerRunner | None = None

    @property
    def base_url(self) -> str:
        """The base URL for clients."""
        return f"http://{self._host}:{self._port}/v1"

    async def __aenter__(self) -> ScriptedServer:
        """Start listening."""
        self._closing = asyncio.Event()
        # A client that leaves takes its request with it, as with real servers.
        server = web.Server(self._handle, access_log=None, handler_cancellation=True)
        self._runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, self._host, self._port, backlog=4096)
        await site.start()
        self._port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop listening, and drop open requests."""
        if self._runner is not None:
            self._closing.set()
            await self._runner.cleanup()
            self._runner = None

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "POST" and request.path == "/v1/chat/completions":
            return await self._completion(request)
        if request.method == "GET" and request.path == "/v1/models":
            model = {"id": MODEL, "object": "model", "created": 0, "owned_by": "llm-coop-envs"}
            return web.json_response({"object": "list", "data": [model]})
        if request.method == "GET" and request.path == "/counts":
            return web.json_response({"asked": self.asked, "answered": self.answered, "fates": self.fates})
        return _error(404, f"there is nothing at {request.method} {request.path}")

    async def _completion(self, request: web.BaseRequest) -> web.StreamResponse:
        raw = await request.read()
        authorization = request.headers.get("Authorization", "")
        if self._key is not None and authorization != f"Bearer {self._key}":
            # As real servers do, the refusal quotes the key.
            key = authorization.removeprefix("Bearer ")
            return _error(401, f"Incorrect API key provided: {key}.", "invalid_api_key")
        question = request.headers.get("Idempotency-Key") or hashlib.blake2b(raw, digest_size=16).hexdigest()
        attempt = self.asked[question]
        self.asked[question] += 1
        if self._at_once is not None and self.in_flight >= self._at_once:
            self.fates["too many"] += 1
            return _error(429, "Too many requests at the same time.", "rate_limit_exceeded")
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            fault = self.faults.draw_fault(question, attempt)
            cached = self._cached_responses.get(raw) if fault is None else None
            body = loads(raw) if cached is None else {}
            self.fates[fault or "answer"] += 1
            if self.latency:
                await asyncio.sleep(self.latency)
            if cached is not None:
                self.answered[question] += 1
                return web.Response(body=cached, content_type="application/json")
            response = await self._respond(request, body, fault, question)
            if fault is None and len(self._cached_responses) < self._remember:
                response_body = getattr(response, "body", None)
                if isinstance(response_body, bytes):  # not streamed
                    self._cached_responses[raw] = response_body
        except (ValueError, KeyError, TypeError) as error:
            return _error(400, f"This is no chat request: {error!r}.", "invalid_request_error")
        finally:
            self.in_flight -= 1
        return response

    async def _respond(
        self, request: web.BaseRequest, body: dict[str, Any], fault: str | None, question: str
    ) -> web.StreamResponse:
        faults = self.faults
        if fault in _REFUSALS:
            response = _error(*_REFUSALS[fault])
            if fault == "rate_limit_after":
                response.headers["Retry-After"] = f"{faults.retry_after:g}"
            return response
        if fault == "timeout":
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._closing.wait(), faults.hang)
            return _error(504, "Gateway timeout.")
        if fault == "reset":
            _abort(request)
            return web.Response()
        if fault == "broken_json":
            return web.Response(text="<html><body><h1>502 Bad Gateway</h1></body></html>", content_type="text/html")
        if fault == "wrong_json":
            return web.json_response({"ok": True})
        completion = self._completed(body, fault)
        if body.get("stream"):
            sent = await self._streamed(request, body, completion, fault)
        else:
            sent = await self._whole(request, dumps(completion), fault)
        if fault not in ("half_body", "empty_choice"):
            self.answered[question] += 1
        return sent

    def _completed(self, body: dict[str, Any], fault: str | None) -> dict[str, Any]:
        """The completion object for a request."""
        prompt = "\n\n".join(str(message["content"]) for message in body["messages"])
        text, refusal, finish = self._answer(prompt, body.get("metadata") or {}), None, "stop"
        for stop in _stops(body):
            text = text.split(stop, 1)[0]
        if fault == "refusal":
            text, refusal = "", "I'm sorry, but I can't help with that."
        elif fault == "truncated":
            text, finish = text[: len(text) // 2], "length"
        elif fault == "garbage":
            text = "".join(chr(33 + ord(sign) * 7 % 90) for sign in text) + " \u0000\ufffd\u202e"
        elif fault == "huge":
            text = ("lorem ipsum " * (self.faults.huge // 12 + 1))[: self.faults.huge]
        max_tokens = body.get("max_completion_tokens") or body.get("max_tokens")
        count = self._count
        if max_tokens is not None and count is not None and fault != "huge":
            while text and count(text) > max_tokens:
                text, finish = (
                    text[: max(0, min(len(text) - 1, len(text) * max_tokens // max(count(text), 1)))],
                    "length",
                )
        message = {"role": "assistant", "content": None if refusal else text, "refusal": refusal}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        completion: dict[str, Any] = {
            "id": "chatcmpl-scripted",
            "object": "chat.completion",
            "created": 0,
            "model": f"{MODEL}:{body['model']}",
            "choices": [] if fault == "empty_choice" else [choice],
        }
        if count is not None:
            prompt_tokens, answer_tokens = count(prompt), count(text)
            completion["usage"] = {
                "prompt_tokens": prompt_tokens,
                "completion_tokens": answer_tokens,
                "total_tokens": prompt_tokens + answer_tokens,
            }
        return completion

    async def _whole(self, request: web.BaseRequest, raw: bytes, fault: str | None) -> web.StreamResponse:
        if fault not in ("half_body", "slow_bytes"):
            return web.Response(body=raw, content_type="application/json")
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(raw))})
        await response.prepare(request)
        half = len(raw) // 2
        if fault == "half_body":
            await response.write(raw[:half])
            _abort(request)
            return response
        for start in range(0, len(raw), max(1, len(raw) // 8)):
            await response.write(raw[start : start + max(1, len(raw) // 8)])
            await asyncio.sleep(self.faults.slow / 8)
        return response

    async def _streamed(
        self, request: web.BaseRequest, body: dict[str, Any], completion: dict[str, Any], fault: str | None
    ) -> web.StreamResponse:
        """The same completion as server-sent events."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await response.prepare(request)
        pieces = list(_pieces(completion))
        if (body.get("stream_options") or {}).get("include_usage") and "usage" in completion:
            head = {name: completion[name] for name in ("id", "created", "model")}
            pieces.append({**head, "object": "chat.completion.chunk", "choices": [], "usage": completion["usage"]})
        for number, piece in enumerate(pieces):
            if fault == "half_body" and number >= len(pieces) // 2:
                _abort(request)
                return response
            if fault == "slow_bytes":
                await asyncio.sleep(self.faults.slow / len(pieces))
            await response.write(b"data: " + json.dumps(piece).encode() + b"\n\n")
        await response.write(b"data: [DONE]\n\n")
        return response


@contextlib.contextmanager
def in_thread(server: ScriptedServer) -> Iterator[ScriptedServer]:
    """Run a server in a thread of its own, for tests and tools without an event loop."""
    started, ended, loop = threading.Event(), asyncio.Event(), asyncio.new_event_loop()

    async def serve() -> None:
        async with server:
            started.set()
            await ended.wait()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(serve())
        loop.close()

    thread = threading.Thread(target=run, name="scripted server", daemon=True)
    thread.start()
    started.wait()
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()


def _pieces(completion: dict[str, Any]) -> Iterator[dict[str, Any]]:
    head = {name: completion[name] for name in ("id", "created", "model")}
    head["object"] = "chat.completion.chunk"
    if not completion["choices"]:
        yield {**head, "choices": []}
        return
    choice = completion["choices"][0]
    deltas: list[dict[str, Any]] = [{"role": "assistant"}]
    text = choice["message"]["content"] or ""
    deltas += [{"content": text[start : start + _PIECE]} for start in range(0, len(text), _PIECE)]
    if choice["message"]["refusal"]:
        deltas.append({"refusal": choice["message"]["refusal"]})
    for delta in deltas:
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]}


def _stops(body: dict[str, Any]) -> list[str]:
    stop = body.get("stop") or []
    return [stop] if isinstance(stop, str) else list(stop)


def _error(status: int, message: str, code: str = "server_error") -> web.Response:
    return web.json_response({"error": {"message": message, "type": code, "param": None, "code": code}}, status=status)


def _abort(request: web.BaseRequest) -> None:
    """Close the connection without a response."""
    if request.transport is not None:
        request.transport.abort()
