"""Optional libraries, imported when they are first needed."""

from __future__ import annotations

import importlib
from typing import Any

from llm_coop_envs.errors import MissingExtra


def need(module: str, what: str, extra: str) -> Any:
    """Import a library of an extra.

    Args:
        module: what to import.
        what: what cannot be done without it.
        extra: the extra that brings it.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(what, extra) from error
