"""The client on OpenAI's SDK and its aiohttp transport, for OpenAI and compatible servers (openai 2 and 3)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from llm_coop_envs.policies.llm.chat import ChatRequest
from llm_coop_envs.policies.llm.clients import wire
from llm_coop_envs.policies.llm.clients.client import CONNECT_SECONDS, NO_KEY, Client
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint, is_loopback
from llm_coop_envs.policies.llm.clients.failures import status_error
from llm_coop_envs.util.extras import need
from llm_coop_envs.util.keys import read_key

_WHAT = "asking a model through OpenAI's SDK"


class OpenAIClient(Client):
    """Asks through OpenAI's SDK.

    Answers are parsed from the raw body by the lean client's reader, so that all clients agree on what an answer is.

    Attributes:
        sdk: the SDK's client. It follows no redirects and decompresses no more of a body than is read.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._openai = need("openai", _WHAT, "openai")
        # openai 3 stands on httpx2 and brings the transport; openai 2 stands on httpx and asks for httpx-aiohttp.
        major = int(str(self._openai.__version__).split(".")[0])
        http = need("httpx2" if major >= 3 else "httpx", _WHAT, "openai")
        self._aiohttp = need("aiohttp", _WHAT, "openai")
        if major < 3:
            need("httpx_aiohttp", _WHAT, "openai")
        super().__init__(endpoint)
        self._key = read_key(endpoint.key_variable, required=endpoint.needs_key)
        # The dispatcher limits requests in flight and the time of each attempt; the SDK must do neither.
        self._bytes: type[Any] = http.AsyncByteStream
        self.sdk = self._openai.AsyncOpenAI(
            api_key=NO_KEY if self._key is None else self._key.reveal(),
            base_url=endpoint.url,
            max_retries=0,
            timeout=http.Timeout(None, connect=CONNECT_SECONDS),
            http_client=self._openai.DefaultAioHttpClient(
                limits=http.Limits(max_connections=0, max_keepalive_connections=None, keepalive_expiry=15.0),
                timeout=http.Timeout(None, connect=CONNECT_SECONDS),
                trust_env=not is_loopback(endpoint.url),
                # A redirect would send the prompts and the key to another address.
                follow_redirects=False,
                headers={"Accept-Encoding": "identity"},
                event_hooks={"response": [self._unpack_response]},
            ),
        )
        self._broken_off: tuple[type[Exception], ...] = (
            self._openai.APIConnectionError,
            http.TransportError,
            self._aiohttp.ClientError,  # not mapped by the transport: a bad status line, header or length
        )

    async def _ask(self, request: ChatRequest, headers: dict[str, str] | None) -> Any:
        endpoint, openai = self._endpoint, self._openai
        body = self._body(request)
        # The SDK takes these fields as arguments and all others in its `extra_body`.
        names = ("model", "messages", "stream") if endpoint.stream else ("model", "messages")
        named = {name: body.pop(name) for name in names}
        completions = self.sdk.chat.completions
        create = completions.create if endpoint.stream else completions.with_raw_response.create
        try:
            response = await create(**named, extra_body=body, extra_headers=headers)
            if not endpoint.stream:
                return wire.load_body(response.http_response.content, endpoint.where)
            reply = wire.StreamedReply()
            try:
                async for piece in response:
                    reply.add(piece.model_dump(), endpoint.where)
            finally:
                await response.close()
            return reply.completion(endpoint.where)
        except openai.APIStatusError as error:
            raise status_error(
                endpoint.where, error.status_code, error.response.text, dict(error.response.headers), key=self._key
            ) from None
        except self._broken_off as error:
            raise self._connection_error(error, self._aiohttp) from None
        except (openai.OpenAIError, OSError, ValueError, RecursionError) as error:
            raise wire.bad_reply(endpoint.where, f"what the SDK cannot read ({type(error).__name__})") from None

    async def _unpack_response(self, response: Any) -> None:
        """Replace httpx's decompression, which expands a whole body at once; called after the headers have arrived."""
        where, packed = self._endpoint.where, response.stream
        body = wire.unpack_body(packed, response.headers.pop("Content-Encoding", ""), where)
        if response.status_code >= 300:
            parts = wire.truncate(body)
        else:
            parts = wire.limit_length(body, where, wire.LONGEST_STREAM if self._endpoint.stream else wire.LONGEST_REPLY)

        # The base class is that of httpx or httpx2, which is known only at run time.
        class Unpacked(self._bytes):  # type: ignore[name-defined, misc]
            def __aiter__(self) -> AsyncIterator[bytes]:
                return parts

            async def aclose(self) -> None:
                await packed.aclose()

        response.stream = Unpacked()

    async def aclose(self) -> None:
        """Close all connections; may be called any number of times."""
        await self.sdk.close()
