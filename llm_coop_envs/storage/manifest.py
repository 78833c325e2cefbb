"""What the manifest of every run folder holds, and what may stand in it."""

from __future__ import annotations

import re
from types import NoneType

#: What every manifest holds.
SHAPE = {
    "digest": str,
    "status": str,
    "sessions": [
        {
            "started": str,
            "ended": (str, NoneType),
            "command?": str,
            "host?": str,
            "versions?": {...: str},
            "asking?": {"endpoints?": [{"model": str}], "replay?": (str, NoneType)},
        }
    ],
    "files": {...: str},
}
#: A file's size and SHA-256.
RECORD = re.compile(r"[0-9]{1,18} [0-9a-f]{64}")


def is_file_name(name: str) -> bool:
    """Whether a name, with folders before it, is that of a file below a folder, on every system."""
    parts = name.split("/")
    return name.isprintable() and "\\" not in name and not {"", ".", ".."} & set(parts)
