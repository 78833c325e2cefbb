"""Clients: one attempt at one question, through OpenAI's SDK, litellm, or aiohttp alone.

No client retries; `dispatch` does. `Endpoint` says where a model is, and makes the client that fits.
"""

from llm_coop_envs.policies.llm.clients.endpoint import Endpoint

__all__ = ["Endpoint"]
