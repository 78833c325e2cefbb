"""Imports pygame, without its greeting, and with an error that says what to install if it is missing."""

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
