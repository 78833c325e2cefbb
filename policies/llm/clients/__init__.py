"""Clients make one attempt at one question, through OpenAI's SDK, litellm, or aiohttp alone.

No client repeats an attempt; the dispatcher does. `Endpoint` describes where a model is, `connect` makes its client.
"""

from importlib.util import find_spec

from llm_coop_envs.errors import MissingExtra
from llm_coop_envs.policies.llm.chat import ChatClient
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint, Limits, Retry, check_trusted
from llm_coop_envs.util.extras import need

__all__ = ["Endpoint", "Limits", "Retry", "connect", "need_client"]


def need_client(endpoint: Endpoint) -> None:
    """Check that an endpoint may be asked, and that what asks there is installed.

    Raises:
        MissingExtra: it is not.
        TrustError: a run of somebody else names its address or the variable of its key.
    """
    # First, as nobody should install something for a folder that will be refused.
    for address in endpoint.each:
        check_trusted(address)
    if endpoint.is_local:
        need("xllamacpp", f"running {endpoint.model}", "local")
    elif endpoint.kind == "litellm":
        for name in ("litellm", "openai", "aiohttp"):
            if find_spec(name) is None:
                raise MissingExtra(f"asking {endpoint.model} through litellm", "llm")
    else:
        for name in ("aiohttp",) if endpoint.kind == "lean" else ("openai", "aiohttp"):
            need(name, "asking a model", "openai")


def connect(endpoint: Endpoint) -> ChatClient:
    """Make the client for an endpoint.

    Raises:
        MissingExtra: its library is not installed.
        SettingsError: its key is missing.
        TrustError: a run of somebody else names its address or the variable of its key.
    """
    check_trusted(endpoint)
    need_client(endpoint)
    if endpoint.kind == "lean":
        from llm_coop_envs.policies.llm.clients.lean import LeanClient

        return LeanClient(endpoint)
    if endpoint.kind == "openai":
        from llm_coop_envs.policies.llm.clients.openai_sdk import OpenAIClient

        return OpenAIClient(endpoint)
    from llm_coop_envs.policies.llm.clients.litellm_sdk import LitellmClient

    return LitellmClient(endpoint)
