"""PettingZoo environments for one question: do agents that compete start to cooperate on their own?

    import llm_coop_envs
    env = llm_coop_envs.bertrand_v0.parallel_env()

The scenario modules are imported when they are first used.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from llm_coop_envs.core.registry import register
from llm_coop_envs.registration import register_all
from llm_coop_envs.renamed_modules import install
from llm_coop_envs.version import __version__

if TYPE_CHECKING:
    import llm_coop_envs.bertrand_v0 as bertrand_v0
    import llm_coop_envs.evacuation_v0 as evacuation_v0
    import llm_coop_envs.kbc_v0 as kbc_v0
    import llm_coop_envs.policies as policies
    import llm_coop_envs.wrappers as wrappers

__all__ = ["__version__", "bertrand_v0", "evacuation_v0", "kbc_v0", "policies", "register", "register_all", "wrappers"]

_LAZY = ("bertrand_v0", "evacuation_v0", "kbc_v0", "policies", "wrappers")


def __getattr__(name: str) -> ModuleType:
    """Import a scenario module, the policies or the wrappers on first use."""
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, those not yet imported included."""
    return sorted({*globals(), *_LAZY})


register_all()
install()
