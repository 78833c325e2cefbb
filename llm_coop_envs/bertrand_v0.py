"""Price competition, version 0: `parallel_env`, agent by agent `env` (with checks) and `raw_env`, copies `batch_env`.

Settings and presets: `llm_coop_envs.bertrand.settings.BertrandSettings`; spaces, phases and rewards:
`llm_coop_envs.bertrand.env.BertrandEnv`.

Version history:
    v0: first version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from typing_extensions import Unpack

from llm_coop_envs.bertrand.env import BertrandEnv
from llm_coop_envs.bertrand.fields import BertrandFields
from llm_coop_envs.bertrand.settings import BertrandSettings
from llm_coop_envs.core.makers import aec_makers, described

if TYPE_CHECKING:
    from llm_coop_envs.bertrand.batch import BertrandBatch

__all__ = ["batch_env", "env", "parallel_env", "raw_env"]


@described(BertrandSettings)
def parallel_env(**settings: Unpack[BertrandFields]) -> BertrandEnv:
    """Price competition as a parallel environment.

    Phases, spaces and rewards: see `BertrandEnv`. A wrong setting raises `SettingsError`.
    """
    return BertrandEnv(**settings)


env, raw_env = aec_makers(parallel_env)


def batch_env(copies: int, **settings: Unpack[BertrandFields]) -> BertrandBatch:
    """Copies of a market without talk that are stepped together, as arrays; `settings` as for `parallel_env`.

    See `llm_coop_envs.wrappers.batch.BatchEnv`. What cannot be played in a batch raises `SettingsError`.
    """
    from llm_coop_envs.bertrand.batch import BertrandBatch

    return BertrandBatch(BertrandEnv(**settings), copies)
