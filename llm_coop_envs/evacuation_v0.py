"""Emergency evacuation, version 0: `parallel_env`, and agent by agent `env` (with checks) and `raw_env`.

Settings and presets: `llm_coop_envs.evacuation.settings.EvacuationSettings`; spaces, phases and rewards:
`llm_coop_envs.evacuation.env.EvacuationEnv`.

Version history:
    v0: first version.
"""

from typing_extensions import Unpack

from llm_coop_envs.core.makers import aec_makers, described
from llm_coop_envs.evacuation.env import EvacuationEnv
from llm_coop_envs.evacuation.fields import EvacuationFields
from llm_coop_envs.evacuation.settings import EvacuationSettings

__all__ = ["env", "parallel_env", "raw_env"]


@described(EvacuationSettings)
def parallel_env(**settings: Unpack[EvacuationFields]) -> EvacuationEnv:
    """An emergency evacuation as a parallel environment.

    Phases, spaces and rewards: see `EvacuationEnv`. A wrong setting raises `SettingsError`.
    """
    return EvacuationEnv(**settings)


env, raw_env = aec_makers(parallel_env)
