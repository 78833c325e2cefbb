"""Clients: one attempt at one question, through OpenAI's SDK, litellm, or aiohttp alone.

No client repeats an attempt; the dispatcher does. `Endpoint` says where a model is, `connect` makes the fitting client.
"""

from llm_coop_envs.policies.llm.clients.choice import connect
from llm_coop_envs.policies.llm.clients.endpoint import Endpoint, Limits, Retry

__all__ = ["Endpoint", "Limits", "Retry", "connect"]
