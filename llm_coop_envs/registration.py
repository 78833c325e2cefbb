"""Entries in PettingZoo's and Gymnasium's registries.

`import llm_coop_envs` makes them; then `pettingzoo.make("parallel", "llm_coop/kbc-v0")` gives an environment, and
`gymnasium.make("llm_coop/kbc-v0")` one seat of it. Gymnasium imports the package by itself if the id says so:
`gymnasium.make("llm_coop_envs:llm_coop/kbc-v0")`. PettingZoo has nothing of that kind.
"""

from __future__ import annotations

import gymnasium
from pettingzoo import aec_registry, parallel_registry, register

from llm_coop_envs.core.registry import shipped_names

NAMESPACE = "llm_coop"


def register_all() -> None:
    """Register every scenario in all registries; done again, it changes nothing.

    Entry points are strings, so that nothing is imported before somebody makes an environment.
    """
    for scenario in shipped_names():
        name = f"{NAMESPACE}/{scenario}-v0"
        module = f"llm_coop_envs.{scenario}_v0"
        if name not in parallel_registry:
            register("parallel", name, entry_point=f"{module}:parallel_env")
        if name not in aec_registry:
            register("aec", name, entry_point=f"{module}:env")
        if name not in gymnasium.registry:
            maker = "llm_coop_envs.wrappers.single_agent:make_single_agent"
            gymnasium.register(name, entry_point=maker, kwargs={"scenario": scenario})
