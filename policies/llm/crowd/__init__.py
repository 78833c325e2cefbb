"""Crowds whose answers are texts: asked one by one or many at a time, journalled, and submitted as arrays."""

from llm_coop_envs.policies.llm.crowd.policy import TextCrowd
from llm_coop_envs.policies.llm.journal import CrowdQuestion

__all__ = ["CrowdQuestion", "TextCrowd"]
