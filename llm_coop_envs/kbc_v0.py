"""The number contest, version 0: `parallel_env`, and agent by agent `env` and `raw_env`.

Settings and presets: `llm_coop_envs.kbc.settings.KBCSettings`; spaces, phases and rewards:
`llm_coop_envs.kbc.env.KBCEnv`.

History: v0, the first version.
"""

from __future__ import annotations

from typing import Any

from pettingzoo.utils import AECEnv

from llm_coop_envs.core.aec import bare_aec, checked_aec
from llm_coop_envs.kbc.env import KBCEnv as parallel_env

__all__ = ["env", "parallel_env", "raw_env"]


def raw_env(**kwargs: Any) -> AECEnv[str, Any, Any]:
    """Agent by agent, without checks; arguments as for `parallel_env`."""
    return bare_aec(parallel_env(**kwargs))


def env(**kwargs: Any) -> AECEnv[str, Any, Any]:
    """Agent by agent, checking actions and the order of calls; arguments as for `parallel_env`."""
    return checked_aec(parallel_env(**kwargs))
