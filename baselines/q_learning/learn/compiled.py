"""Typed decorators of the compiler, and one sentence if it is not installed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from llm_coop_envs.errors import MissingExtra
from llm_coop_envs.util.compiling import compiled
from llm_coop_envs.util.compiling import compiled_into_callers as part

try:
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
except ImportError as error:
    raise MissingExtra("Q-learning", "rl") from error

__all__ = ["cgutils", "compiled", "inlined", "ir", "part", "types"]


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a compiled function of LLVM instructions."""
    return cast(Callable[..., Any], intrinsic(function))
