"""Functions in plain Python that are compiled where the compiler is installed, with the same results.

The cache of a compiled function stands next to its source and notices changes of its own file only.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

numba: Any
try:
    import numba
except ImportError:  # slower, and no less right
    numba = None

F = TypeVar("F", bound=Callable[..., Any])


def compiled(function: F) -> F:
    """Compile a function to machine code that releases Python's lock.

    Without fast-math, sums and products keep their order and nothing is fused, so that all machines compute the same
    bits.
    """
    if numba is None:
        return function
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))
