"""Entries in PettingZoo's and Gymnasium's registries.

`import llm_coop_envs` makes them; then `pettingzoo.make("parallel", "llm_coop/kbc-v0")` gives an environment, and
`gymnasium.make("llm_coop/kbc-v0")` one seat of it. Gymnasium imports the package by itself if the id says so:
`gymnasium.make("llm_coop_envs:llm_coop/kbc-v0")`. PettingZoo has nothing of that kind.
"""

from __future__ import annotations

from llm_coop_envs.core.registry import enter, installed_names, shipped_names


def register_all() -> None:
    """Enter every scenario that comes with the package or is installed beside it; done again, it changes nothing."""
    for name in (*shipped_names(), *installed_names()):
        enter(name)
