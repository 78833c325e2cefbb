"""Emergency evacuation, version 0: `parallel_env`, and agent by agent `env` (with checks) and `raw_env`.

Settings and presets: `llm_coop_envs.evacuation.settings.EvacuationSettings`; spaces, phases and rewards:
`llm_coop_envs.evacuation.env.EvacuationEnv`.

Version history:
    v0: first version.
"""

from llm_coop_envs.core.aec import aec_makers
from llm_coop_envs.evacuation.env import EvacuationEnv as parallel_env

__all__ = ["env", "parallel_env", "raw_env"]

env, raw_env = aec_makers(parallel_env)
