"""What all clients share: the attempt around what each of them sends, and the names of lost connections."""

from __future__ import annotations

import asyncio
import os
import re
import time
import urllib.request
from abc import ABC, abstractmethod
from typing import Any
from urllib.parse import urlsplit

from llm_coop_envs.core.extras import need
from llm_coop_envs.policies.llm.chat import UNREAD, ChatError, ChatReply, ChatRequest
from llm_coop_envs.policies.llm.clients import wire
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint, is_loopback

NO_KEY = "none"  # SDKs insist on a key; a server that wants none ignores this one
CONNECT_SECONDS = 30.0
LOOK_SECONDS = 5.0
_ABOUT_FORM = re.compile(r"response_?format|json_?schema|json_?object|schema|grammar|guided", re.IGNORECASE)


class Client(ABC):
    """Asks one endpoint, one attempt per call; an SDK's own retries are off.

    Attributes:
        form: the form (`wire.FORMS`) in which constrained answers are asked for; found by asking.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        # Hosted models are not asked for bounds, which most providers refuse; the server of a local model is our own.
        hosted = endpoint.base_url is None or endpoint.is_openai
        self.form = wire.FORMS[0 if endpoint.is_local else 2 if hosted else 1]
        self._endpoint = endpoint
        self._refused = set(wire.FORMS[: wire.FORMS.index(self.form)])
        self._answered = False

    async def complete(self, request: ChatRequest, *, idempotency_key: str = "") -> ChatReply:
        """Ask once; see `ChatClient.complete`."""
        started, form = time.perf_counter(), self.form
        try:
            completion = await self._ask(request, {"Idempotency-Key": idempotency_key} if idempotency_key else None)
        except ChatError as error:
            if error.kind == "bad_request" and request.json_schema is not None and self._other_form(form, str(error)):
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
        latency = time.perf_counter() - started
        self._answered |= request.json_schema is not None
        try:
            return wire.read_completion(completion, request, where=self._endpoint.where, latency=latency)
        except RecursionError:
            raise wire.bad_reply(self._endpoint.where, "JSON that is nested too deeply") from None

    @abstractmethod
    async def _ask(self, request: ChatRequest, headers: dict[str, str] | None) -> Any:
        """The chat completion object; a `ChatError` if there is none."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close all connections; may be called any number of times."""

    def __repr__(self) -> str:
        """Nothing that is secret."""
        return f"{type(self).__name__}({self._endpoint.where})"

    def _other_form(self, form: str, refusal: str) -> bool:
        """Whether a request that was refused is worth another attempt with another form."""
        if form == self.form:  # else a question that was under way beside this one has found it out
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

    def _lost(self, error: BaseException, aiohttp: Any) -> ChatError:
        """What a lost connection was; its text is not told, because it may hold headers or a proxy's password.

        The transports below OpenAI's SDK give different names to the same loss (a connection that is cut is a
        "connect timeout" to one of them), so what aiohttp raised at the bottom decides.
        """
        where = self._endpoint.where
        error = root(error, aiohttp)
        if isinstance(error, ChatError):  # ours, wrapped by an SDK
            return error
        if isinstance(error, aiohttp.ServerTimeoutError):
            return ChatError(f"{where} took no connection for {CONNECT_SECONDS:g} s", kind="timeout")
        if isinstance(error, aiohttp.ClientConnectorError):
            code = error.os_error.errno  # asyncio's own words for it name the address again, and not what is wrong
            reason = (
                os.strerror(code) if code and code > 0 else error.os_error.strerror or type(error.os_error).__name__
            )
            return ChatError(f"{where} cannot be reached ({reason})", kind="network")
        return ChatError(f"{where} broke off the connection ({type(error).__name__})", kind="network", maybe_paid=True)


def root(error: BaseException, aiohttp: Any) -> BaseException:
    """What stands behind an SDK's error: what aiohttp raised, or one of ours; else the error itself."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, aiohttp.ClientError | ChatError):
        cause = cause.__cause__ or cause.__context__
    return cause or error


def proxy_for(url: str) -> str | None:
    """The proxy that the environment names for an address.

    Not left to aiohttp's `trust_env`, which also sends the password that `~/.netrc` holds for the host.
    """
    parts = urlsplit(url)
    if is_loopback(url) or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    return urllib.request.getproxies().get(parts.scheme)


async def is_reachable(endpoint: Endpoint) -> bool:
    """Whether a server answers at an endpoint's address, whatever it says; no key is sent.

    Where litellm knows the address and we do not, the answer is yes.
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
