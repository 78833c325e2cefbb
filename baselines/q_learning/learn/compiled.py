"""Typed decorators of the compiler, and one sentence if it is not installed.

Compiled functions are cached next to their source. The cache of a function notices changes of its own file only. After
editing a compiled function that others call, delete `__pycache__/*.nb*` in this folder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from llm_coop_envs.errors import MissingExtra
from llm_coop_envs.util.compiling import compiled

try:
    import numba
    from llvmlite import ir
    from numba import types
    from numba.core import cgutils
    from numba.extending import intrinsic
except ImportError as error:
    raise MissingExtra("Q-learning", "rl") from error

__all__ = ["cgutils", "compiled", "inlined", "ir", "part", "types"]

F = TypeVar("F", bound=Callable[..., Any])


def part(function: F) -> F:
    """Compile a function into its callers: a call with arrays would cost more than most of these functions do."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(function))


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a compiled function of LLVM instructions."""
    return cast(Callable[..., Any], intrinsic(function))
