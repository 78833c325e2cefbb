"""The lean client: OpenAI-compatible servers through aiohttp alone, for many requests at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from llm_coop_envs.core.keys import read_key
from llm_coop_envs.policies.llm.chat import ChatRequest
from llm_coop_envs.policies.llm.clients import wire
from llm_coop_envs.policies.llm.clients.client import CONNECT_SECONDS, Client
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint, is_loopback
from llm_coop_envs.policies.llm.clients.failures import status_error
from llm_coop_envs.policies.llm.fastjson import dumps

KEEP_ALIVE_SECONDS = 15.0  # shorter than most servers', so that no request goes into a connection being closed
LONGEST_ERROR = 64 * 1024


class LeanClient(Client):
    """Asks an OpenAI-compatible server."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._key = read_key(endpoint.key_variable, required=endpoint.needs_key)
        self._url = f"{endpoint.url}/chat/completions"
        self._session: aiohttp.ClientSession | None = None

    async def _ask(self, request: ChatRequest, headers: dict[str, str] | None) -> Any:
        endpoint = self._endpoint
        try:
            async with self._open().post(
                # What the body is made of is not held while its answer is waited for.
                self._url,
                data=dumps(self._body(request)),
                headers=headers,
                allow_redirects=False,
            ) as response:
                if response.status != 200:
                    said = (await response.content.read(LONGEST_ERROR)).decode("utf-8", "replace")
                    raise status_error(endpoint.where, response.status, said, response.headers, key=self._key)
                if endpoint.stream and response.content_type == "text/event-stream":
                    return await self._streamed(response)
                raw = await _read(response, endpoint.where)
        except (aiohttp.ClientError, OSError) as error:
            raise self._lost(error, aiohttp) from None
        return wire.load_body(raw, endpoint.where)

    async def aclose(self) -> None:
        """Close all connections; may be called any number of times."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

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

    async def _streamed(self, response: aiohttp.ClientResponse) -> Any:
        where = self._endpoint.where
        reply = wire.StreamedReply()
        async for line in _lines(response):
            try:
                for piece in wire.stream_events([line]):
                    reply.add(piece, where)
            except ValueError:
                raise wire.bad_reply(where, "a stream with something that is not JSON") from None
        return reply.completion(where)


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
            raise wire.too_long(where)
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
