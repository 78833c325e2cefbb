"""The number contest, version 0: `parallel_env`, and agent by agent `env` (with checks) and `raw_env`.

Settings and presets: `llm_coop_envs.kbc.settings.KBCSettings`; spaces, phases and rewards:
`llm_coop_envs.kbc.env.KBCEnv`.

Version history:
    v0: first version.
"""

from typing_extensions import Unpack

from llm_coop_envs.core.makers import aec_makers, described
from llm_coop_envs.kbc.env import KBCEnv
from llm_coop_envs.kbc.fields import KBCFields
from llm_coop_envs.kbc.settings import KBCSettings

__all__ = ["env", "parallel_env", "raw_env"]


@described(KBCSettings)
def parallel_env(**settings: Unpack[KBCFields]) -> KBCEnv:
    """The number contest as a parallel environment.

    Phases, spaces and rewards: see `KBCEnv`. A wrong setting raises `SettingsError`.
    """
    return KBCEnv(**settings)


env, raw_env = aec_makers(parallel_env)
