"""Processes that this program starts: none searches the working directory for modules; it may be somebody else's run.

`python -m`, and the `python -c` of `multiprocessing`, would put it first on the module search path.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from importlib.machinery import all_suffixes
from pathlib import Path

from llm_coop_envs.errors import RunError

_VARIABLE, _OURS = "PYTHONSAFEPATH", "llm-coop"
_RUN_MODULE = """\
import sys
if sys.path[:1] == [""]:
    del sys.path[0]
import runpy
runpy.run_module({!r}, run_name="__main__", alter_sys=True)
"""


def module_command(module: str, *arguments: str) -> list[str]:
    """The command that runs a module as a program."""
    return [sys.executable, "-c", _RUN_MODULE.format(module), *arguments]


@contextlib.contextmanager
def safe_path() -> Iterator[None]:
    """Let processes that `multiprocessing` spawns in this block find modules as this process does.

    Raises:
        RunError: Python 3.10 cannot, and the working directory has modules that would be imported.
    """
    if sys.version_info < (3, 11):
        if shadowing := list_shadowing(Path.cwd()):
            raise RunError(
                f"{Path.cwd()}: worker processes would import {shadowing[0]} from there; choose another working "
                "directory, or --workers 1"
            )
    is_set = os.environ.setdefault(_VARIABLE, _OURS) != _OURS
    try:
        yield
    finally:
        if not is_set:
            forget_safe_path()


def list_shadowing(folder: Path) -> list[str]:
    """The files and folders that Python would take for modules of its own library, such as `random.py`."""
    names = []
    for path in folder.iterdir():
        name, dot, ending = path.name.partition(".")
        is_package = not dot and any((path / f"__init__{suffix}").exists() for suffix in all_suffixes())
        if name in sys.stdlib_module_names and (is_package or dot + ending in all_suffixes()):
            names.append(path.name)
    return sorted(names)


def forget_safe_path() -> None:
    """Let processes that a spawned process starts, such as a policy's own, be what they would be without us."""
    if os.environ.get(_VARIABLE) == _OURS:
        del os.environ[_VARIABLE]


def usable_cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
