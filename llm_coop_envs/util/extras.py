"""Optional libraries, imported when they are first needed."""

from __future__ import annotations

import importlib
from typing import Any

from llm_coop_envs.errors import MissingExtra


def need(module: str, purpose: str, extra: str) -> Any:
    """Import a library that an extra brings.

    Raises:
        MissingExtra: it is not installed, and without it `what` cannot be done.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtra(purpose, extra) from error
