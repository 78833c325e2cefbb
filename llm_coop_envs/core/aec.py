"""The AEC faces of a parallel environment, as PettingZoo's own modules make them."""

from __future__ import annotations

from typing import Any

from pettingzoo.utils import AECEnv, OrderEnforcingWrapper
from pettingzoo.utils.conversions import parallel_to_aec
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper

from llm_coop_envs.core.env import ScenarioEnv


def bare_aec(parallel: ScenarioEnv) -> AECEnv[str, Any, Any]:
    """The agent-by-agent view without checks (`raw_env`)."""
    return parallel_to_aec(parallel)


def checked_aec(parallel: ScenarioEnv) -> AECEnv[str, Any, Any]:
    """The agent-by-agent view that checks actions and the order of calls (`env`)."""
    return OrderEnforcingWrapper(AssertOutOfBoundsWrapper(bare_aec(parallel)))
