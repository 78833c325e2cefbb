"""The one place where pygame is imported: quietly, and with a sentence if it is not there."""

from __future__ import annotations

import os

from llm_coop_envs.errors import MissingExtra

os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")

try:
    import pygame
    import pygame.font
except ImportError as error:
    raise MissingExtra("drawing scenes", "render") from error

__all__ = ["pygame"]
