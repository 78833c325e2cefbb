"""Price competition, version 0: `parallel_env`, and agent by agent `env` (with checks) and `raw_env`.

Settings and presets: `llm_coop_envs.bertrand.settings.BertrandSettings`; spaces, phases and rewards:
`llm_coop_envs.bertrand.env.BertrandEnv`.

Version history:
    v0: first version.
"""

from typing_extensions import Unpack

from llm_coop_envs.bertrand.env import BertrandEnv
from llm_coop_envs.bertrand.fields import BertrandFields
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.core.makers import aec_makers, described

__all__ = ["env", "parallel_env", "raw_env"]


@described(BertrandSettings)
def parallel_env(**settings: Unpack[BertrandFields]) -> BertrandEnv:
    """Price competition as a parallel environment.

    Phases, spaces and rewards: see `BertrandEnv`. A wrong setting raises `SettingsError`.
    """
    return BertrandEnv(**settings)


env, raw_env = aec_makers(parallel_env)
