"""The lean client: OpenAI-compatible servers through aiohttp alone, for many requests at once."""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator
from typing import Any

import aiohttp

from llm_coop_envs.policies.llm.chat import ChatRequest
from llm_coop_envs.policies.llm.clients import wire
from llm_coop_envs.policies.llm.clients.client import CONNECT_SECONDS, Client, proxy_for
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint
from llm_coop_envs.policies.llm.clients.failures import status_error
from llm_coop_envs.util.fastjson import dumps
from llm_coop_envs.util.keys import read_key

KEEP_ALIVE_SECONDS = 15.0  # shorter than most servers', so that no request goes into a connection being closed


class LeanClient(Client):
    """Asks an OpenAI-compatible server."""

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._key = read_key(endpoint.key_variable, required=endpoint.needs_key)
        self._url = f"{endpoint.url}/chat/completions"
        self._proxy = proxy_for(endpoint.url)
        self._session: aiohttp.ClientSession | None = None

    async def _ask(self, request: ChatRequest, headers: dict[str, str] | None) -> Any:
        endpoint = self._endpoint
        try:
            async with self._open().post(
                # The body is built in the call, so that nothing refers to its data while the answer is awaited.
                self._url,
                data=dumps(self._body(request)),
                headers=headers,
                allow_redirects=False,
                proxy=self._proxy,
            ) as response:
                if response.status != 200:
                    parts = wire.truncate(_parts(response, endpoint.where))
                    error_text = b"".join([part async for part in parts]).decode("utf-8", "replace")
                    raise status_error(endpoint.where, response.status, error_text, response.headers, key=self._key)
                if endpoint.stream and response.content_type == "text/event-stream":
                    return await self._streamed(response)
                parts = wire.limit_length(_parts(response, endpoint.where), endpoint.where)
                raw = b"".join([part async for part in parts])
        except (aiohttp.ClientError, OSError) as error:
            raise self._connection_error(error, aiohttp) from None
        return wire.load_body(raw, endpoint.where)

    async def aclose(self) -> None:
        """Close all connections; may be called any number of times."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            headers = {"Content-Type": "application/json", "Accept-Encoding": "identity"}
            if self._key is not None:
                headers["Authorization"] = f"Bearer {self._key.reveal()}"
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE_SECONDS, ttl_dns_cache=300),
                headers=headers,
                # The dispatcher limits the time of the whole attempt.
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
            )
        return self._session

    async def _streamed(self, response: aiohttp.ClientResponse) -> Any:
        where = self._endpoint.where
        reply = wire.StreamedReply()
        async for line in _lines(_parts(response, where), where):
            try:
                for piece in wire.stream_events([line]):
                    reply.add(piece, where)
            except ValueError:
                raise wire.bad_reply(where, "a stream with something that is not JSON") from None
        return reply.completion(where)


def _parts(response: aiohttp.ClientResponse, where: str) -> AsyncIterable[bytes]:
    """A response's body as it arrives, decompressed."""
    return wire.unpack_body(response.content.iter_any(), response.headers.get("Content-Encoding", ""), where)


async def _lines(parts: AsyncIterable[bytes], where: str) -> AsyncIterator[bytes]:
    """Yield the lines of a body; aiohttp's own line reader has a limit far below the length of an answer."""
    begun: list[bytes] = []
    size = 0
    async for part in parts:
        first, *others = part.split(b"\n")
        begun.append(first)
        size += len(first)
        if size > wire.LONGEST_REPLY:
            raise wire.too_long(where)
        for line in others:
            yield b"".join(begun)
            begun, size = [line], len(line)
    yield b"".join(begun)
