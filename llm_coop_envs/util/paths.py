"""How functions for users take paths: as text or as any path object."""

from __future__ import annotations

import os

StrPath = str | os.PathLike[str]
