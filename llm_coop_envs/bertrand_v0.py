"""Price competition, version 0: `parallel_env`, and its agent-by-agent forms `env` (with checks) and `raw_env`.

Version history:
    v0: first release.
"""

from __future__ import annotations

from typing import Any

from pettingzoo.utils import AECEnv

from llm_coop_envs.bertrand.env import BertrandEnv
from llm_coop_envs.core.aec import bare_aec, checked_aec

__all__ = ["env", "parallel_env", "raw_env"]

parallel_env = BertrandEnv


def raw_env(**options: Any) -> AECEnv[str, Any, Any]:
    """The agent-by-agent view; takes what `parallel_env` takes."""
    return bare_aec(parallel_env(**options))


def env(**options: Any) -> AECEnv[str, Any, Any]:
    """The agent-by-agent view that checks actions and the order of calls; takes what `parallel_env` takes."""
    return checked_aec(parallel_env(**options))
