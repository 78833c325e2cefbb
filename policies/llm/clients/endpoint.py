"""Settings of a model's endpoint: address, client, limits, retries. `connect` makes the client."""

from __future__ import annotations

import functools
import ipaddress
import math
import re
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from llm_coop_envs.core.settings import Settings
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.chat import LOCAL
from llm_coop_envs.util.checks import check_bool, check_choice, check_int, check_number
from llm_coop_envs.util.trust import check_address, check_key

OPENAI_URL = "https://api.openai.com/v1"
OPENAI_KEY = "OPENAI_API_KEY"
OTHER_KEY = "LLM_COOP_API_KEY"
#: Providers as litellm names them, by how their models' names begin; empty for weights that anybody may serve.
PROVIDERS = {
    "claude": "anthropic",
    "gemini": "gemini",
    "grok": "xai",
    "deepseek": "deepseek",
    "command": "cohere",
    "sonar": "perplexity",
    **dict.fromkeys(("mistral", "ministral", "magistral", "codestral", "devstral", "pixtral"), "mistral"),
    **dict.fromkeys(("llama", "qwen", "gemma", "phi", "smollm", "mixtral", "olmo", "granite"), ""),
}
_FAMILY = re.compile(r"[a-z]+")
CLIENTS = ("auto", "lean", "openai", "litellm")


@dataclass(frozen=True, kw_only=True)
class Limits(Settings):
    """Limits of one endpoint.

    Attributes:
        start: the limit on requests in flight at the beginning.
        most: the highest limit on requests in flight; the limit in force is found below it.
        requests_per_minute: the provider's limit; `None` for none.
        tokens_per_minute: the provider's limit, question and answer together; `None` for none.
    """

    start: int = 8
    most: int = 4096
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None

    def __post_init__(self) -> None:
        """Check the fields."""
        check_int(self, "most", 1, 1_000_000)
        check_int(self, "start", 1, self.most)
        check_int(self, "requests_per_minute", 1, optional=True)
        check_int(self, "tokens_per_minute", 1, optional=True)


@dataclass(frozen=True, kw_only=True)
class Retry(Settings):
    """How often and how long a failed attempt is repeated, by the dispatcher alone.

    Attributes:
        attempts: the most attempts at one question. With twelve attempts of which 30 % fail at random, one question
            in two million fails for good.
        first_pause: seconds. The pause after the n-th failure is uniform on 0 to `first_pause * 2**(n - 1)` ("full
            jitter": requests that failed together do not come back together).
        longest_pause: seconds; the upper bound of these pauses.
        total: seconds from the first attempt after which a question is given up, without time in which the whole
            endpoint is paused.
    """

    attempts: int = 12
    first_pause: float = 0.5
    longest_pause: float = 60.0
    total: float = 1800.0

    def __post_init__(self) -> None:
        """Check the fields."""
        check_int(self, "attempts", 1, 1000)
        check_number(self, "first_pause", 0)
        check_number(self, "longest_pause", 0)
        check_number(self, "total", 0, above=True)


@dataclass(frozen=True, kw_only=True)
class Endpoint(Settings):
    """Where and how a model is asked.

    Attributes:
        model: the model as requests name it. Without `base_url`: `"gpt-4o-mini"` or `"openai/gpt-4o-mini"` is
            OpenAI's, and any other `"provider/name"` goes through litellm. With `base_url`, the name is sent as it is.
            `"local:name"` runs on this machine; each run fills in the `base_url` of its server.
        base_url: an OpenAI-compatible server, such as `http://127.0.0.1:11434/v1`, without user, password or query.
            Several servers of the same model can be given as a list; they share the questions, and limits hold for
            each.
        client: `"auto"`, `"openai"` (OpenAI's SDK), `"lean"` (aiohttp alone, cheapest per call) or `"litellm"`.
            `"auto"` is lean for a `base_url`, the SDK for OpenAI and litellm for the rest.
        key_env: the environment variable that holds the key. The default is `OPENAI_API_KEY` for OpenAI itself and
            `LLM_COOP_API_KEY` for a `base_url`, so that OpenAI's key is never sent elsewhere by accident. litellm finds
            each provider's own variables.
        timeout: seconds for one attempt, from sending to the complete answer.
        wait: seconds in which a server that has never answered may still be started.
        stream: request answers in pieces, for gateways that cut silent connections. Not possible through litellm,
            which treats a broken stream as complete.
        tokens_field: the field for the answer's maximum length: `"max_tokens"`, `"max_completion_tokens"`, or `"auto"`
            (the latter for OpenAI itself, the former elsewhere).
        limits: limits on requests in flight and per minute.
        retry: how often and how long a failed attempt is repeated.
    """

    model: str
    base_url: str | tuple[str, ...] | None = None
    client: str = "auto"
    key_env: str | None = None
    timeout: float = 300.0
    wait: float = 20.0
    stream: bool = False
    tokens_field: str = "auto"
    limits: Limits = field(default_factory=Limits)
    retry: Retry = field(default_factory=Retry)

    def __post_init__(self) -> None:
        """Check the fields."""
        if not isinstance(self.model, str) or not self.model.strip():
            raise SettingsError("model", self.model, "must name a model, such as 'openai/gpt-4o-mini' or 'llama3.1'")
        if isinstance(self.base_url, list | tuple):
            object.__setattr__(self, "base_url", tuple(self.base_url))
            if not self.base_url:
                raise SettingsError("base_url", [], "must name at least one address")
        for number, url in enumerate(self._urls):
            _check_url(url)
            if url.rstrip("/") in [other.rstrip("/") for other in self._urls[:number]]:
                raise SettingsError("base_url", url, "is given twice; name each address once")
        check_choice(self, "client", CLIENTS)
        check_choice(self, "tokens_field", ("auto", "max_tokens", "max_completion_tokens"))
        check_number(self, "timeout", 0, above=True)
        check_number(self, "wait", 0)
        check_bool(self, "stream")
        self._check_provider()
        if self.stream and self.kind == "litellm":
            raise SettingsError("stream", True, "is not possible through litellm; use the client 'openai' or 'lean'")
        if self.key_env is not None and (not self.key_env or not self.key_env.isidentifier()):
            # The value is not shown: it may be a key, put where the variable's name belongs, and must not be logged.
            raise SettingsError(
                "key_env", "[hidden]", "must be the name of an environment variable, never the key itself"
            )

    def _check_provider(self) -> None:
        """Refuse a model of another provider, or with open weights, that would be looked for at OpenAI.

        Raises:
            SettingsError: it is one; the sentence says what to write.
        """
        if self.base_url is not None or self.kind != "openai" or "/" in self.model:
            return
        start = _FAMILY.match(self.model.lower())
        provider = PROVIDERS.get(start[0]) if start else None
        if provider == "":
            reason = "is no model of OpenAI's: say with base_url (--base-url) where it is served"
            raise SettingsError("model", self.model, reason)
        if provider is not None:
            raise SettingsError(
                "model",
                self.model,
                f"is no model of OpenAI's: write {provider}/{self.model}, with the extra 'llm' (pip install "
                "'llm-coop-envs[llm]'), or say with base_url (--base-url) where it is served",
            )

    @property
    def kind(self) -> str:
        """The client to use: `"lean"`, `"openai"` or `"litellm"`."""
        if self.client != "auto":
            return self.client
        if self.base_url is not None or self.is_local:
            return "lean"
        return "openai" if self.is_openai else "litellm"

    @property
    def _urls(self) -> tuple[str, ...]:
        if self.base_url is None:
            return ()
        return self.base_url if isinstance(self.base_url, tuple) else (self.base_url,)

    @property
    def each(self) -> tuple[Endpoint, ...]:
        """The endpoint once for each of its addresses."""
        return tuple(replace(self, base_url=url) for url in self._urls) or (self,)

    @property
    def url(self) -> str:
        """The server's base URL without a trailing slash; the first one of several."""
        return (self._urls or (OPENAI_URL,))[0].rstrip("/")

    @property
    def name(self) -> str:
        """The model as the provider names it."""
        if self.base_url is None and self.kind != "litellm" and self.model.startswith("openai/"):
            return self.model.removeprefix("openai/")
        return self.model

    @functools.cached_property
    def where(self) -> str:
        """The endpoint as messages name it."""
        return " and ".join(url.rstrip("/") for url in self._urls) or self.model

    @property
    def is_local(self) -> bool:
        """Whether this machine runs the model."""
        return self.model.startswith(LOCAL)

    @property
    def is_openai(self) -> bool:
        """Whether OpenAI's own servers are asked."""
        if self.base_url is not None:
            return any(urlsplit(url).hostname == urlsplit(OPENAI_URL).hostname for url in self._urls)
        return ("/" not in self.model and not self.is_local) or self.model.startswith("openai/")

    @property
    def key_variable(self) -> str:
        """The environment variable that the key is read from, except by litellm without a `base_url`."""
        return self.key_env or (OPENAI_KEY if self.is_openai else OTHER_KEY)

    @property
    def needs_key(self) -> bool:
        """Whether a key is required: by OpenAI, or because `key_env` is set."""
        return self.is_openai or self.key_env is not None

    @property
    def sent_tokens_field(self) -> str:
        """The field for `max_tokens` in a request's body."""
        if self.tokens_field != "auto":
            return self.tokens_field
        return "max_completion_tokens" if self.is_openai else "max_tokens"

    def describe(self) -> dict[str, Any]:
        """Describe the endpoint for a run's manifest, without the key."""
        return {"model": self.model, "endpoint": self.where, "client": self.kind, "stream": self.stream}


def check_trusted(endpoint: Endpoint) -> None:
    """Check that an endpoint may be asked, and get the key that it names, where a run of somebody else may name both.

    A model's own provider and servers of this machine may be asked with the key that they have by default.

    Raises:
        TrustError: the user has named neither.
    """
    variable = endpoint.key_variable
    for url in endpoint._urls:
        if not (is_loopback(url) or url.rstrip("/") == OPENAI_URL):
            check_address(endpoint.model, url, variable)
    if endpoint.base_url is None and "://" in endpoint.model:  # some of litellm's providers take it for an address
        check_address(endpoint.model, endpoint.model, variable)
    if variable != (OPENAI_KEY if endpoint.is_openai else OTHER_KEY):
        check_key(endpoint.model, endpoint.where, variable)


def is_loopback(url: str) -> bool:
    """Whether a URL points at this machine; such requests never go through a proxy."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _check_url(url: object) -> None:
    requirement = "must be the address of an OpenAI-compatible server, such as http://127.0.0.1:8000/v1"
    try:
        parts = urlsplit(url) if isinstance(url, str) else None
        sound = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
        sound = sound and (parts is None or parts.port is None or math.isfinite(parts.port))
    except ValueError:
        parts, sound = None, False
    secret = parts is not None and (parts.username or parts.password or parts.query or parts.fragment)
    # An address that cannot be parsed may contain a secret anywhere, so it is not shown.
    if secret or (not sound and any(sign in str(url) for sign in "@?#")):
        raise SettingsError(
            "base_url", "[hidden]", f"{requirement}, without user, password, '?' or '#'; keys come from key_env"
        )
    if not sound:
        raise SettingsError("base_url", url, requirement)
