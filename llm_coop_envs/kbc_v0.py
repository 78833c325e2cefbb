"""The number contest, version 0: `parallel_env`, agent by agent `env` (with checks) and `raw_env`, copies `batch_env`.

Settings and presets: `llm_coop_envs.kbc.settings.KBCSettings`; spaces, phases and rewards:
`llm_coop_envs.kbc.env.KBCEnv`.

Version history:
    v0: first version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import Unpack

from llm_coop_envs.core.makers import aec_makers, described
from llm_coop_envs.kbc.env import KBCEnv
from llm_coop_envs.kbc.fields import KBCFields
from llm_coop_envs.kbc.settings import KBCSettings

if TYPE_CHECKING:
    from llm_coop_envs.kbc.batch import KBCBatch

__all__ = ["batch_env", "env", "parallel_env", "raw_env"]


@described(KBCSettings)
def parallel_env(**settings: Unpack[KBCFields]) -> KBCEnv:
    """The number contest as a parallel environment.

    Phases, spaces and rewards: see `KBCEnv`. A wrong setting raises `SettingsError`.
    """
    return KBCEnv(**settings)


env, raw_env = aec_makers(parallel_env)


def batch_env(copies: int, **settings: Unpack[KBCFields]) -> KBCBatch:
    """Copies of a contest without talk that are stepped together, as arrays; `settings` as for `parallel_env`.

    See `llm_coop_envs.wrappers.batch.BatchEnv`. What cannot be played in a batch raises `SettingsError`.
    """
    from llm_coop_envs.kbc.batch import KBCBatch

    return KBCBatch(KBCEnv(**settings), copies)
