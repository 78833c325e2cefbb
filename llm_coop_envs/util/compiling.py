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
    return _compiled(function)


def compiled_in_place(function: F) -> F:
    """As `compiled`, of a function that makes no arrays: references to those it is given are not counted.

    Counting takes two locked instructions for each row of an array that is looked at, half the time of a game.
    """
    return _compiled(function, _nrt=False)


def _compiled(function: F, **options: Any) -> F:
    if numba is None:
        return function
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function))
