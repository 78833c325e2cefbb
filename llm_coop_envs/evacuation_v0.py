"""Emergency evacuation, version 0: `parallel_env`, agent by agent `env` and `raw_env`, copies `batch_env`.

Settings and presets: `llm_coop_envs.evacuation.settings.EvacuationSettings`; spaces, phases and rewards:
`llm_coop_envs.evacuation.env.EvacuationEnv`.

Version history:
    v0: first version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import Unpack

from llm_coop_envs.core.makers import aec_makers, described
from llm_coop_envs.evacuation.env import EvacuationEnv
from llm_coop_envs.evacuation.fields import EvacuationFields
from llm_coop_envs.evacuation.settings import EvacuationSettings

if TYPE_CHECKING:
    from llm_coop_envs.evacuation.batch import EvacuationBatch

__all__ = ["batch_env", "env", "parallel_env", "raw_env"]


@described(EvacuationSettings)
def parallel_env(**settings: Unpack[EvacuationFields]) -> EvacuationEnv:
    """An emergency evacuation as a parallel environment.

    Phases, spaces and rewards: see `EvacuationEnv`. A wrong setting raises `SettingsError`.
    """
    return EvacuationEnv(**settings)


env, raw_env = aec_makers(parallel_env)


def batch_env(copies: int, **settings: Unpack[EvacuationFields]) -> EvacuationBatch:
    """Copies of an evacuation without talk that are stepped together, as arrays; `settings` as for `parallel_env`.

    It needs the compiler. See `llm_coop_envs.wrappers.batch.BatchEnv`. What cannot be played in a batch raises
    `SettingsError`.
    """
    from llm_coop_envs.evacuation.batch import EvacuationBatch

    return EvacuationBatch(EvacuationEnv(**settings), copies)
