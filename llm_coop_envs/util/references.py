"""References: objects, or `"module:attribute"` as a string, which is imported when it is first needed."""

from __future__ import annotations

import importlib
from typing import Any


def load(reference: Any) -> Any:
    """What a reference stands for: itself, or what `"module:attribute"` names."""
    if not isinstance(reference, str):
        return reference
    module, _, name = reference.partition(":")
    return getattr(importlib.import_module(module), name)
