"""The lean client: OpenAI-compatible servers through aiohttp alone, for many requests at once."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

import aiohttp

from llm_coop_envs.core.keys import read_key
from llm_coop_envs.policies.llm.chat import ChatError, ChatReply, ChatRequest
from llm_coop_envs.policies.llm.clients import wire
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint, is_loopback
from llm_coop_envs.policies.llm.clients.failures import status_error
from llm_coop_envs.policies.llm.fastjson import dumps

CONNECT_SECONDS = 30.0
KEEP_ALIVE_SECONDS = 15.0  # shorter than most servers', so that no request goes into a connection being closed
LONGEST_ERROR = 64 * 1024


class LeanClient:
    """Asks an OpenAI-compatible server, one attempt per call.

    Args:
        endpoint: where the server is.

    Raises:
        SettingsError: the key is needed and missing.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._key = read_key(endpoint.key_variable, required=endpoint.needs_key)
        self._url = f"{endpoint.url}/chat/completions"
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def complete(self, request: ChatRequest, *, idempotency_key: str = "") -> ChatReply:
        """Ask once.

        Raises:
            ChatError: the attempt failed.
        """
        endpoint = self._endpoint
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else None
        started = time.perf_counter()
        try:
            async with self._open().post(
                self._url, data=self._body(request), headers=headers, allow_redirects=False
            ) as response:
                if response.status != 200:
                    said = (await response.content.read(LONGEST_ERROR)).decode("utf-8", "replace")
                    raise status_error(endpoint.where, response.status, said, response.headers, key=self._key)
                if endpoint.stream and response.content_type == "text/event-stream":
                    return await self._streamed(response, request, started)
                raw = await _read(response, endpoint.where)
        except ChatError as error:
            if error.kind == "content_filter":
                return wire.filtered_reply(error, request, time.perf_counter() - started)
            raise
        except aiohttp.ServerTimeoutError:
            raise ChatError(f"{endpoint.where} took no connection for {CONNECT_SECONDS:g} s", kind="timeout") from None
        except aiohttp.ClientConnectorError as error:
            # The exception's own text could hold a proxy's address with a password.
            why = error.os_error.strerror or type(error.os_error).__name__
            raise ChatError(f"{endpoint.where} cannot be reached ({why})", kind="network") from None
        except (aiohttp.ClientError, OSError) as error:
            raise ChatError(
                f"{endpoint.where} broke off the connection ({type(error).__name__})", kind="network", maybe_paid=True
            ) from None
        return wire.read_body(raw, request, where=endpoint.where, latency=time.perf_counter() - started)

    async def aclose(self) -> None:
        """Close all connections."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def __repr__(self) -> str:
        """Nothing that is secret."""
        return f"LeanClient({self._endpoint.where})"

    def _body(self, request: ChatRequest) -> bytes:
        """A request as it is sent; what it is made of is not held while its answer is waited for."""
        endpoint = self._endpoint
        return dumps(
            wire.request_body(
                request, model=endpoint.name, tokens_field=endpoint.sent_tokens_field, stream=endpoint.stream
            )
        )

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            headers = {"Content-Type": "application/json"}
            if self._key is not None:
                headers["Authorization"] = f"Bearer {self._key.reveal()}"
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS, ttl_dns_cache=300),
                headers=headers,
                # The dispatcher times the whole attempt.
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=not is_loopback(self._endpoint.url),
            )
        return self._session

    async def _streamed(self, response: aiohttp.ClientResponse, request: ChatRequest, started: float) -> ChatReply:
        where = self._endpoint.where
        reply = wire.StreamedReply()
        async for line in _lines(response):
            try:
                for piece in wire.stream_events([line]):
                    reply.add(piece, where)
            except ValueError:
                raise wire.bad_reply(where, "a stream with something that is not JSON") from None
        return reply.finish(request, where=where, latency=time.perf_counter() - started)


async def _read(response: aiohttp.ClientResponse, where: str) -> bytes:
    """A complete body, unless it is longer than any answer."""
    length = response.content_length
    if length is not None and length <= wire.LONGEST_REPLY:
        return await response.read()
    parts, size = [], 0
    async for part in response.content.iter_any():
        parts.append(part)
        size += len(part)
        if size > wire.LONGEST_REPLY:
            raise wire.bad_reply(where, f"more than {wire.LONGEST_REPLY // 2**20} MiB")
    return b"".join(parts)


async def _lines(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """The lines of a body, of any length (aiohttp's own reader has a limit)."""
    rest = b""
    async for part in response.content.iter_any():
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            yield line
    if rest:
        yield rest
