"""Entries in PettingZoo's registries: `pettingzoo.make("parallel", "llm_coop/kbc-v0")` and siblings."""

from __future__ import annotations

from pettingzoo import aec_registry, parallel_registry, register

from llm_coop_envs.core.registry import shipped_names

NAMESPACE = "llm_coop"


def register_all() -> None:
    """Register every scenario in both registries; done again, it changes nothing.

    Entry points are strings, so that nothing is imported before somebody makes an environment.
    """
    for scenario in shipped_names():
        name = f"{NAMESPACE}/{scenario}-v0"
        module = f"llm_coop_envs.{scenario}_v0"
        if name not in parallel_registry:
            register("parallel", name, entry_point=f"{module}:parallel_env")
        if name not in aec_registry:
            register("aec", name, entry_point=f"{module}:env")
