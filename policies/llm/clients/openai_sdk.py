"""OpenAI's SDK on its aiohttp transport, for OpenAI and every compatible server; works with openai 2 and 3."""

from __future__ import annotations

import time
from typing import Any

from llm_coop_envs.core.extras import need
from llm_coop_envs.core.keys import read_key
from llm_coop_envs.policies.llm.chat import ChatError, ChatReply, ChatRequest
from llm_coop_envs.policies.llm.clients import wire
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint, is_loopback
from llm_coop_envs.policies.llm.clients.failures import status_error

_WHAT = "asking a model through OpenAI's SDK"
# The SDK insists on a key; a server that wants none ignores this one.
NO_KEY = "none"
CONNECT_SECONDS = 30.0


class OpenAIClient:
    """Asks through OpenAI's SDK, one attempt per call; the SDK's own retries are off.

    Answers are read from the raw body by the same reader as the lean client's, so that all clients agree on what
    an answer is.

    Args:
        endpoint: where the model is.

    Raises:
        MissingExtra: openai or its aiohttp transport is not installed.
        SettingsError: the key is needed and missing.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._openai = need("openai", _WHAT, "openai")
        # openai 3 stands on httpx2 and brings the transport; openai 2 stands on httpx and asks for httpx-aiohttp.
        major = int(str(self._openai.__version__).split(".")[0])
        http = need("httpx2" if major >= 3 else "httpx", _WHAT, "openai")
        self._aiohttp = need("aiohttp", _WHAT, "openai")
        if major < 3:
            need("httpx_aiohttp", _WHAT, "openai")
        self._endpoint = endpoint
        self._key = read_key(endpoint.key_variable, required=endpoint.needs_key)
        # The dispatcher limits requests in flight and times each attempt; the SDK must do neither.
        self._client = self._openai.AsyncOpenAI(
            api_key=NO_KEY if self._key is None else self._key.reveal(),
            base_url=endpoint.url,
            max_retries=0,
            timeout=http.Timeout(None, connect=CONNECT_SECONDS),
            http_client=self._openai.DefaultAioHttpClient(
                limits=http.Limits(max_connections=0, max_keepalive_connections=None, keepalive_expiry=15.0),
                timeout=http.Timeout(None, connect=CONNECT_SECONDS),
                trust_env=not is_loopback(endpoint.url),
            ),
        )
        self._broken_off: type[Exception] = http.TransportError

    async def complete(self, request: ChatRequest, *, idempotency_key: str = "") -> ChatReply:
        """Ask once.

        Raises:
            ChatError: the attempt failed.
        """
        endpoint, openai = self._endpoint, self._openai
        body = wire.request_body(
            request, model=endpoint.name, tokens_field=endpoint.sent_tokens_field, stream=endpoint.stream
        )
        # Named fields go where the SDK wants them, all others into its `extra_body`.
        named = {name: body.pop(name) for name in ("model", "messages")}
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else None
        create = self._client.chat.completions.with_raw_response.create
        started = time.perf_counter()
        try:
            if endpoint.stream:
                named["stream"] = body.pop("stream")
                return await self._streamed(named, body, headers, request, started)
            response = await create(**named, extra_body=body, extra_headers=headers)
            raw = response.http_response.content
        except ChatError:
            raise
        except openai.APIStatusError as error:
            failed = status_error(
                endpoint.where, error.status_code, error.response.text, dict(error.response.headers), key=self._key
            )
            if failed.kind == "content_filter":
                return wire.filtered_reply(failed, request, time.perf_counter() - started)
            raise failed from None
        except (openai.APIConnectionError, self._broken_off) as error:
            raise self._connection_error(error) from None
        except (openai.OpenAIError, OSError, ValueError) as error:
            raise wire.bad_reply(endpoint.where, f"what the SDK cannot read ({type(error).__name__})") from None
        return wire.read_body(raw, request, where=endpoint.where, latency=time.perf_counter() - started)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._client.close()

    def __repr__(self) -> str:
        """Nothing that is secret."""
        return f"OpenAIClient({self._endpoint.where})"

    async def _streamed(
        self, named: dict[str, Any], body: dict[str, Any], headers: Any, request: ChatRequest, started: float
    ) -> ChatReply:
        where = self._endpoint.where
        reply = wire.StreamedReply()
        stream = await self._client.chat.completions.create(**named, extra_body=body, extra_headers=headers)
        try:
            async for piece in stream:
                reply.add(piece.model_dump(), where)
        finally:
            await stream.close()
        return reply.finish(request, where=where, latency=time.perf_counter() - started)

    def _connection_error(self, error: BaseException) -> ChatError:
        """What a lost connection was; only its type is told, because its text may hold headers.

        The transports below the SDK give different names to the same loss (a connection that is cut is a "connect
        timeout" to one of them), so what aiohttp raised at the bottom decides.
        """
        where, aiohttp = self._endpoint.where, self._aiohttp
        cause = error
        while cause.__cause__ is not None and not isinstance(cause, aiohttp.ClientError):
            cause = cause.__cause__
        name = type(cause).__name__
        if isinstance(cause, aiohttp.ServerTimeoutError):
            return ChatError(f"{where} took no connection for {CONNECT_SECONDS:g} s", kind="timeout")
        if isinstance(cause, aiohttp.ClientConnectorError):
            return ChatError(f"{where} cannot be reached ({name})", kind="network")
        return ChatError(f"{where} broke off the connection ({name})", kind="network", maybe_paid=True)
