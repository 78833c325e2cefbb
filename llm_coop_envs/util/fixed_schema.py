"""A JSON schema that is made once."""

from __future__ import annotations

import functools
import json
from typing import Any


class FixedSchema(dict[str, Any]):
    """A JSON schema that nobody changes any more: what is computed from it once holds for good."""

    @functools.cached_property
    def size(self) -> int:
        """Its length as JSON."""
        return len(json.dumps(self))
