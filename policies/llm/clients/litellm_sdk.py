"""The litellm client, for providers without an OpenAI-compatible API."""

from __future__ import annotations

import asyncio
import contextlib
import os
import warnings
from typing import Any

from llm_coop_envs.policies.llm.chat import ChatError, ChatRequest, ErrorKind
from llm_coop_envs.policies.llm.clients import wire
from llm_coop_envs.policies.llm.clients.client import NO_KEY, Client, root_cause
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint
from llm_coop_envs.policies.llm.clients.failures import status_error
from llm_coop_envs.policies.llm.clients.openai_sdk import OpenAIClient
from llm_coop_envs.util.extras import need
from llm_coop_envs.util.keys import read_key, scrub

# Keep litellm from fetching tables from the network on import or first use; its bundled copies are enough.
_LOCAL = (
    "LITELLM_LOCAL_MODEL_COST_MAP",
    "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS",
    "LITELLM_LOCAL_BLOG_POSTS",
    "LITELLM_LOCAL_POLICY_TEMPLATES",
    "LITELLM_LOCAL_AUTOROUTER_PRESETS",
)
# Statuses of requests refused before any work; after any other failure the request may be billed.
_NOT_PAID = frozenset({400, 401, 402, 403, 404, 408, 413, 422, 429, 503})
_BY_NAME: dict[str, ErrorKind] = {
    "ContextWindowExceededError": "context_too_long",
    "ContentPolicyViolationError": "content_filter",
    "PaymentRequiredError": "quota",
}


def import_litellm() -> Any:
    """Import litellm without letting it fetch tables or print advice.

    Raises:
        MissingExtra: it is not installed.
    """
    for name in _LOCAL:
        os.environ.setdefault(name, "True")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        litellm = need("litellm", "asking a model through litellm", "llm")
    # litellm's own filters, which `catch_warnings` has just undone: pydantic's warnings about its types.
    for message in (
        ".*conflict with protected namespace.*",
        ".*`ReadOnly` qualifier.*",
        "Pydantic serializer warnings.*",
    ):
        warnings.filterwarnings("ignore", message=message)
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.num_retries = 0
    return litellm


class LitellmClient(Client):
    """Asks through litellm.

    Without a `base_url` it reads the provider from the model's name and the key from the provider's own variables.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(endpoint)
        self._litellm = import_litellm()
        self._openai = need("openai", "asking a model through litellm", "llm")
        self._aiohttp = need("aiohttp", "asking a model through litellm", "llm")
        own_server = endpoint.base_url is not None
        named = endpoint.key_env is not None
        self._key = read_key(endpoint.key_variable, required=named) if own_server or named else None
        self._model = endpoint.model
        self._own_server: OpenAIClient | None = None
        self._more: dict[str, Any] = {"num_retries": 0, "max_retries": 0, "timeout": endpoint.timeout}
        if own_server:
            self._model = f"openai/{endpoint.model}"
            self._more["api_base"] = endpoint.url
            self._more["api_key"] = NO_KEY
            # litellm's own client follows redirects, with the prompts.
            self._own_server = OpenAIClient(endpoint)
            self._more["client"] = self._own_server.sdk
        if self._key is not None:
            self._more["api_key"] = self._key.reveal()

    async def _ask(self, request: ChatRequest, headers: dict[str, str] | None) -> Any:
        # litellm itself translates `max_tokens` for models that want another field.
        body = wire.request_body(request, model=self._model, tokens_field="max_tokens", stream=False, form=self.form)
        if self._endpoint.base_url is not None and headers is not None:
            body["extra_headers"] = headers
        try:
            answer = await self._litellm.acompletion(**{**body, **self._more})
            return answer.model_dump()
        except Exception as error:
            # litellm lets through whatever its providers' code raises, far beyond its own error classes.
            raise self._failure(error) from None

    async def aclose(self) -> None:
        """Close all connections, including those of other litellm clients in this process."""
        if self._own_server is not None:
            await self._own_server.aclose()
        # Some versions of litellm leave OpenAI clients in their cache open.
        for cached_client in list(getattr(self._litellm.in_memory_llm_clients_cache, "cache_dict", {}).values()):
            if isinstance(cached_client, self._openai.AsyncOpenAI):
                with contextlib.suppress(Exception):  # it may belong to an event loop that is gone
                    await cached_client.close()
        await self._litellm.close_litellm_async_clients()
        self._litellm.in_memory_llm_clients_cache.flush_cache()  # else a later run is given the closed ones

    def _failure(self, error: Exception) -> ChatError:
        """The `ChatError` for an exception that litellm raised."""
        where, openai = self._endpoint.where, self._openai
        text = str(getattr(error, "message", None) or error)
        name = type(error).__name__
        if isinstance(error, ImportError) or "No module named" in text:
            return ChatError(scrub(f"{where}: litellm lacks a library for it ({text[:200]})"), kind="bad_request")
        if isinstance(root_cause(error, self._aiohttp), self._aiohttp.ClientError | ChatError):
            return self._connection_error(error, self._aiohttp)  # litellm calls it a server error
        if isinstance(error, openai.APITimeoutError | TimeoutError | asyncio.TimeoutError):
            return ChatError(f"{where} did not answer in time", kind="timeout", maybe_paid=True)
        if isinstance(error, openai.APIConnectionError | OSError):
            return ChatError(f"{where} broke off the connection ({name})", kind="network", maybe_paid=True)
        status = getattr(error, "status_code", None)
        if not isinstance(status, int) or isinstance(error, openai.APIResponseValidationError):
            return wire.bad_reply(where, f"what litellm cannot read ({name})")
        headers = getattr(getattr(error, "response", None), "headers", None)
        headers = getattr(error, "litellm_response_headers", None) or headers or {}
        failed = status_error(where, status, text, dict(headers), key=self._key)
        kind: ErrorKind = _BY_NAME.get(name, failed.kind)
        return ChatError(
            str(failed),
            kind=kind,
            status=status,
            retry_after=failed.retry_after,
            maybe_paid=status not in _NOT_PAID,
        )
