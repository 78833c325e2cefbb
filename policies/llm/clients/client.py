"""The base class of clients: one attempt, the form of constrained answers, errors of lost connections, and proxies."""

from __future__ import annotations

import asyncio
import os
import re
import time
import urllib.request
from abc import ABC, abstractmethod
from typing import Any
from urllib.parse import urlsplit

from llm_coop_envs.policies.llm.chat import UNREAD, ChatError, ChatReply, ChatRequest
from llm_coop_envs.policies.llm.clients import wire
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint, is_loopback
from llm_coop_envs.util.extras import need

NO_KEY = "none"  # SDKs insist on a key; a server that needs none ignores it
CONNECT_SECONDS = 30.0
LOOK_SECONDS = 5.0
_ABOUT_FORM = re.compile(r"response_?format|json_?schema|json_?object|schema|grammar|guided", re.IGNORECASE)


class Client(ABC):
    """Asks one endpoint, with one attempt per call; retries of an SDK are switched off.

    Attributes:
        form: the form (`wire.FORMS`) in which constrained answers are requested. It is loosened when the endpoint
            refuses it.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        # Most hosted providers refuse bounds in a schema. Our own server of local models takes the strictest form.
        hosted = endpoint.base_url is None or endpoint.is_openai
        self.form = wire.FORMS[0 if endpoint.is_local else 2 if hosted else 1]
        self._endpoint = endpoint
        self._refused: set[str] = set(wire.FORMS[: wire.FORMS.index(self.form)])
        self._answered = False

    async def complete(self, request: ChatRequest, *, idempotency_key: str = "") -> ChatReply:
        """Ask once; see `ChatClient.complete`."""
        started, form = time.perf_counter(), self.form
        try:
            completion = await self._ask(request, {"Idempotency-Key": idempotency_key} if idempotency_key else None)
        except ChatError as error:
            may_be_form = error.kind == "bad_request" and request.json_schema is not None
            if may_be_form and self._try_other_form(form, str(error)):
                raise ChatError(str(error), kind="form", status=error.status) from None
            if error.kind != "content_filter":
                raise
            return ChatReply(
                text="",
                usage=UNREAD,
                finish_reason="content_filter",
                model=request.model,
                latency=time.perf_counter() - started,
                refusal=str(error),
            )
        latency = round(time.perf_counter() - started, 6)
        self._answered |= request.json_schema is not None
        try:
            return wire.read_completion(completion, request, where=self._endpoint.where, latency=latency)
        except RecursionError:
            raise wire.bad_reply(self._endpoint.where, "JSON that is nested too deeply") from None

    @abstractmethod
    async def _ask(self, request: ChatRequest, headers: dict[str, str] | None) -> Any:
        """Send a request and return the chat completion object.

        Raises:
            ChatError: there is none.
        """

    @abstractmethod
    async def aclose(self) -> None:
        """Close all connections; may be called any number of times."""

    def __repr__(self) -> str:
        """The class and the endpoint, without secrets."""
        return f"{type(self).__name__}({self._endpoint.where})"

    def _try_other_form(self, form: str, refusal: str) -> bool:
        """Move on to the next form after a refused request, if the form may be the reason.

        Args:
            form: the form in which the refused request asked.
            refusal: the error's message.

        Returns:
            Whether the request is worth another attempt.
        """
        if form == self.form:  # else another request in flight has already moved on
            if self._answered and not _ABOUT_FORM.search(refusal):
                return False
            self._refused.add(form)
            self.form = next((candidate for candidate in wire.FORMS if candidate not in self._refused), form)
        return self.form != form

    def _body(self, request: ChatRequest) -> dict[str, Any]:
        endpoint = self._endpoint
        return wire.request_body(
            request,
            model=endpoint.name,
            tokens_field=endpoint.sent_tokens_field,
            stream=endpoint.stream,
            form=self.form,
        )

    def _connection_error(self, error: BaseException, aiohttp: Any) -> ChatError:
        """The error for a lost connection. Its text is left out, because it may contain headers or a proxy's password.

        The transports below OpenAI's SDK name the same loss differently (one of them calls a cut connection a "connect
        timeout"), so the exception that aiohttp raised decides.
        """
        where = self._endpoint.where
        cause: Any = root_cause(error, aiohttp)
        if isinstance(cause, ChatError):  # our own, wrapped by an SDK
            return cause
        if isinstance(cause, aiohttp.ServerTimeoutError):
            return ChatError(f"{where} took no connection for {CONNECT_SECONDS:g} s", kind="timeout")
        if isinstance(cause, aiohttp.ClientConnectorError):
            code = cause.os_error.errno  # asyncio's own message repeats the address and lacks the reason
            reason = (
                os.strerror(code) if code and code > 0 else cause.os_error.strerror or type(cause.os_error).__name__
            )
            return ChatError(f"{where} cannot be reached ({reason})", kind="network")
        return ChatError(f"{where} broke off the connection ({type(cause).__name__})", kind="network", maybe_paid=True)


def root_cause(error: BaseException, aiohttp: Any) -> BaseException:
    """The error behind an SDK's error: aiohttp's, or a `ChatError` of ours; else the error itself."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, aiohttp.ClientError | ChatError):
        cause = cause.__cause__ or cause.__context__
    return cause or error


def proxy_for(url: str) -> str | None:
    """The proxy that the environment variables name for an address.

    aiohttp's `trust_env` is not used, because it also sends the password that `~/.netrc` holds for the host.
    """
    parts = urlsplit(url)
    if is_loopback(url) or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)


async def is_reachable(endpoint: Endpoint) -> bool:
    """Whether a server answers at an endpoint's address, whatever its response; no key is sent.

    An address that only litellm knows counts as reachable.
    """
    if endpoint.base_url is None and not endpoint.is_openai:
        return True
    aiohttp = need("aiohttp", "asking a model", "openai")
    timeout = aiohttp.ClientTimeout(total=LOOK_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, auto_decompress=False) as session,
            session.get(endpoint.url, allow_redirects=False, proxy=proxy_for(endpoint.url)),
        ):
            return True
    except (aiohttp.ClientError, OSError, asyncio.TimeoutError, ValueError):
        return False
