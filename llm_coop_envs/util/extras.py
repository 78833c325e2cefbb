"""Optional libraries, imported when they are first needed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from llm_coop_envs.errors import MissingExtra

#: Extras that come with others.
BROUGHT_BY = {
    "openai": ("llm", "local", "view"),
    "render": ("film",),
    "sb3": ("rl",),
    "study": ("export", "tables", "view"),
}


def need_all(*checks: Callable[[], object]) -> None:
    """Make several checks, so that a user installs once.

    Raises:
        MissingExtra: one for all extras that they miss, without those that come with another one.
    """
    missing: dict[str, str] = {}
    for check in checks:
        try:
            check()
        except MissingExtra as error:
            for name in error.extra.split(","):
                missing.setdefault(name, error.what)
    names = [name for name in missing if missing.keys().isdisjoint(BROUGHT_BY.get(name, ()))]
    if names:
        raise MissingExtra(" and ".join(dict.fromkeys(missing.values())), ",".join(names))


def need(module: str, purpose: str, extra: str) -> Any:
    """Import a library that an extra brings.

    Raises:
        MissingExtra: it is not installed, and without it `what` cannot be done.
    """
    try:
        importlib.import_module(module.partition(".")[0])  # what was imported before stays importable without it
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(purpose, extra) from error
