"""The way to pictures: what draws is imported, with pygame, only when somebody asks for a picture."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from llm_coop_envs.errors import MissingExtra
from llm_coop_envs.util.references import load

#: The render modes that need pygame.
GRAPHICAL = ("human", "rgb_array")
_RENDERER = "llm_coop_envs.render.live:Renderer"


def check_pygame(mode: str) -> None:
    """Fail at once, and not in mid-episode, if a render mode cannot work.

    Raises:
        MissingExtra: pygame is not installed.
    """
    if find_spec("pygame") is None:
        raise MissingExtra(f"render_mode={mode!r}", "render")


def make_renderer(game: Any, fps: float) -> Any:
    """What draws an environment: it has `scene()`, `frame()`, `show()` and `close()`.

    Args:
        game: the environment.
        fps: how many steps a window shows per second.
    """
    return load(_RENDERER)(game, fps)
