"""Clients make one attempt at one question, through OpenAI's SDK, litellm, or aiohttp alone.

No client repeats an attempt; the dispatcher does. `Endpoint` describes where a model is, `connect` makes its client.
"""

from llm_coop_envs.policies.llm.chat import ChatClient
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint, Limits, Retry, check_trusted
from llm_coop_envs.util.extras import need

__all__ = ["Endpoint", "Limits", "Retry", "connect"]


def connect(endpoint: Endpoint) -> ChatClient:
    """Make the client for an endpoint.

    Raises:
        MissingExtra: its library is not installed.
        SettingsError: its key is missing.
        TrustError: a run of somebody else names its address or the variable of its key.
    """
    check_trusted(endpoint)
    if endpoint.kind == "lean":
        need("aiohttp", "asking a model", "openai")
        from llm_coop_envs.policies.llm.clients.lean import LeanClient

        return LeanClient(endpoint)
    if endpoint.kind == "openai":
        from llm_coop_envs.policies.llm.clients.openai_sdk import OpenAIClient

        return OpenAIClient(endpoint)
    from llm_coop_envs.policies.llm.clients.litellm_sdk import LitellmClient

    return LitellmClient(endpoint)
