"""The AEC faces of a parallel environment, as PettingZoo's own modules make them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pettingzoo.utils import AECEnv, OrderEnforcingWrapper
from pettingzoo.utils.conversions import parallel_to_aec
from pettingzoo.utils.wrappers import AssertOutOfBoundsWrapper

from llm_coop_envs.core.env import ScenarioEnv

Maker = Callable[..., AECEnv[str, Any, Any]]


def aec_makers(parallel_env: type[ScenarioEnv]) -> tuple[Maker, Maker]:
    """A scenario module's `env` and `raw_env`; both take what `parallel_env` takes."""
    return partial(_checked, parallel_env), partial(_bare, parallel_env)


def _bare(parallel_env: Callable[..., ScenarioEnv], **settings: Any) -> AECEnv[str, Any, Any]:
    return parallel_to_aec(parallel_env(**settings))


def _checked(parallel_env: Callable[..., ScenarioEnv], **settings: Any) -> AECEnv[str, Any, Any]:
    return OrderEnforcingWrapper(AssertOutOfBoundsWrapper(_bare(parallel_env, **settings)))
