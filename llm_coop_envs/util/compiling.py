"""Functions in plain Python that are compiled where the compiler is installed, with the same results.

The cache of a compiled function stands next to its source. Numba itself notices changes of that file only, and not
before it has read what is kept: the name of a class that is gone since the last version stops it.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from llm_coop_envs.version import __version__

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


def compiled_into_callers(function: F) -> F:
    """As `compiled`, of a small function that becomes a part of its callers: a call with arrays would cost more."""
    return _compiled(function, forceinline=True)


def _compiled(function: F, **options: Any) -> F:
    if numba is None:
        return function
    dispatcher = numba.njit(cache=True, nogil=True, error_model="numpy", **options)(function)
    with contextlib.suppress(AttributeError):  # a Numba that keeps it elsewhere: then it notices what it notices
        dispatcher._cache._cache_file._version += f" {_sources(function)}"
    return cast(F, dispatcher)


def _sources(function: Callable[..., Any]) -> str:
    """This version, and a hash of the sources that a function is compiled from.

    They are its own module, the modules of whatever that imports from this package, and, where those are compiled
    functions, their sources in turn.
    """
    package = __name__.partition(".")[0] + "."
    members = list(vars(sys.modules[function.__module__]).values())
    names = {function.__module__, *(str(getattr(member, "__module__", "")) for member in members)}
    hashed = [_hash_of(name) for name in sorted(names) if name.startswith(package)]
    for member in members:
        with contextlib.suppress(AttributeError):
            hashed.append(member._cache._cache_file._version)
    return f"{__version__} {hashlib.sha256(repr(hashed).encode()).hexdigest()[:16]}"


@functools.cache
def _hash_of(module: str) -> str:
    file = getattr(sys.modules.get(module), "__file__", None)
    return hashlib.sha256(Path(file).read_bytes()).hexdigest() if file else ""
