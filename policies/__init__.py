"""Policies: the contract, the implementations, and how to play an episode with them."""

from llm_coop_envs.core.base_policy import Action, Policy, ScriptedPolicy
from llm_coop_envs.core.policy import Episode, PolicyLike, Request, Seating
from llm_coop_envs.policies.functions import from_function
from llm_coop_envs.policies.kinds import make
from llm_coop_envs.policies.play import play, play_async

__all__ = [
    "Action",
    "Episode",
    "Policy",
    "PolicyLike",
    "Request",
    "ScriptedPolicy",
    "Seating",
    "from_function",
    "make",
    "play",
    "play_async",
]
