"""Emergency evacuation: people leave a room, see the crowd, talk to those near, choose an exit and every move.

Version history:
    v0: first version.
"""

from __future__ import annotations

from typing import Any

from pettingzoo.utils import AECEnv

from llm_coop_envs.core.aec import bare_aec, checked_aec
from llm_coop_envs.evacuation.env import EvacuationEnv as parallel_env

__all__ = ["env", "parallel_env", "raw_env"]


def raw_env(**given: Any) -> AECEnv[str, Any, Any]:
    """The agent-by-agent environment without checks; takes the arguments of `parallel_env`."""
    return bare_aec(parallel_env(**given))


def env(**given: Any) -> AECEnv[str, Any, Any]:
    """The agent-by-agent environment that checks actions and the order of calls; arguments as for `parallel_env`."""
    return checked_aec(parallel_env(**given))
