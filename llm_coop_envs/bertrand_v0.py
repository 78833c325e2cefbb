"""Price competition, version 0: `parallel_env`, and agent by agent `env` (with checks) and `raw_env`.

Settings and presets: `llm_coop_envs.bertrand.settings.BertrandSettings`; spaces, phases and rewards:
`llm_coop_envs.bertrand.env.BertrandEnv`.

Version history:
    v0: first version.
"""

from llm_coop_envs.bertrand.env import BertrandEnv as parallel_env
from llm_coop_envs.core.aec import aec_makers

__all__ = ["env", "parallel_env", "raw_env"]

env, raw_env = aec_makers(parallel_env)
