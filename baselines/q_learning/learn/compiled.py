"""The compiler's decorators, with types, and one sentence if the compiler is missing.

Compiled functions are cached next to their source. The cache of a function notices changes of its own file only: after
editing a compiled function that others call, delete `__pycache__/*.nb*` in this folder.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

from llm_coop_envs.errors import MissingExtra

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


def compiled(function: F) -> F:
    """Compile a function to machine code that runs without Python's lock.

    No fast-math: sums and products keep their order, and nothing is fused, so that all machines compute the same bits.
    """
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def part(function: F) -> F:
    """Compile a function as a part of those that call it: a call with arrays costs more than most of them do."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(function))


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the compiler's own code, given as LLVM instructions."""
    return cast(Callable[..., Any], intrinsic(function))
