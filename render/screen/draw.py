"""Draw any scene onto a surface, a pure function of the scene and its `View`. No display is needed."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.registry import scenario_of
from llm_coop_envs.errors import SceneError, StudyError
from llm_coop_envs.render.scenes.base import Scene
from llm_coop_envs.render.scenes.table import TableScene
from llm_coop_envs.render.screen.canvas import INK, PAPER, Canvas, View
from llm_coop_envs.render.screen.page import Picture as Picture
from llm_coop_envs.render.screen.pygame_import import pygame
from llm_coop_envs.render.screen.table import TABLE
from llm_coop_envs.util.references import load

#: The masks of a surface whose bytes are red, green, blue.
_RGB_BYTES = (0xFF, 0xFF00, 0xFF0000, 0) if sys.byteorder == "little" else (0xFF0000, 0xFF00, 0xFF, 0)
#: The size of a picture that reports an error.
ERROR_SIZE = (1000, 640)
#: Pictures wider or higher than this are refused.
MAX_SIDE = 16_000


def draw(scene: Scene, view: View | None = None, *, onto: pygame.Surface | None = None) -> pygame.Surface:
    """Draw a scene.

    Args:
        scene: the scene.
        view: how to draw it.
        onto: the surface to draw over; by default a new one of the view's size.

    Raises:
        SceneError: there is no picture of such a scene, or the size is out of range.
    """
    view = view or View()
    paint = picture_of(scene).draw
    canvas = Canvas(pygame.Surface(_size(scene, view), depth=32) if onto is None else onto, view)
    paint(scene, canvas)
    if view.hint:
        where, width = (canvas.px(12), canvas.rect.bottom - canvas.px(5)), canvas.rect.width - canvas.px(24)
        canvas.text(where, view.hint, size=11, colour=(107, 114, 128), anchor="bottomleft", width=width)
    return canvas.surface


def frame(scene: Scene, view: View | None = None) -> NDArray[np.uint8]:
    """Draw a scene as an (height, width, 3) array."""
    view = view or View()
    return array_of(draw(scene, view, onto=_paper(_size(scene, view), "drawn")))


def _size(scene: Scene, view: View) -> tuple[int, int]:
    """The size of a picture in pixels."""
    width, height = (round(side * view.scale) for side in (view.size or picture_of(scene).size))
    if not (1 <= width <= MAX_SIDE and 1 <= height <= MAX_SIDE):
        raise SceneError(f"a picture of {width} x {height} pixels cannot be drawn; sides are 1 to {MAX_SIDE}")
    return width, height


@lru_cache(maxsize=4)
def _paper(size: tuple[int, int], use: str) -> pygame.Surface:
    """A surface to draw over again and again: new memory for every frame would cost more than drawing does."""
    if use == "packed":
        return pygame.Surface(size, 0, 24, _RGB_BYTES)
    return pygame.Surface(size, depth=32)


def picture_of(scene: Scene) -> Picture:
    """The picture of a scene's scenario, or the table if the scenario has none.

    Raises:
        SceneError: it is no scene, or its scenario is unknown or has scenes of its own without a picture.
    """
    if not isinstance(scene, Scene):
        raise SceneError(f"there is no picture of a {type(scene).__name__}")
    try:
        picture: Picture | None = load(scenario_of(scene.scenario).picture)
    except StudyError as error:
        raise SceneError(f"there is no picture of {scene.scenario!r}: {error}") from error
    if picture is None and not isinstance(scene, TableScene):
        raise SceneError(f"{scene.scenario!r} has scenes of its own, but no picture of them")
    return picture or TABLE


def array_of(surface: pygame.Surface) -> NDArray[np.uint8]:
    """A surface as an (height, width, 3) array."""
    width, height = surface.get_size()
    # SDL reorders the bytes several times faster than numpy or `tobytes` do.
    packed = _paper((width, height), "packed")
    packed.blit(surface, (0, 0))
    buffer: Any = packed.get_buffer()
    rows: NDArray[np.uint8] = np.frombuffer(buffer, dtype=np.uint8)
    pixels = rows.reshape(height, packed.get_pitch())[:, : 3 * width].reshape(height, width, 3)
    copy: NDArray[np.uint8] = pixels.copy()
    return copy


def error_frame(sentence: str, size: tuple[int, int] = ERROR_SIZE) -> NDArray[np.uint8]:
    """A picture with a sentence instead of a scene, as an (height, width, 3) array."""
    surface = pygame.Surface(size, depth=32)
    surface.fill(PAPER)
    try:
        canvas = Canvas(surface, View(system_fonts=False))
        canvas.paragraph(canvas.rect.inflate(-60, -60), sentence, size=15, colour=INK)
    except Exception:
        # Whatever goes wrong, an empty picture is better than a lost episode.
        return np.full((size[1], size[0], 3), 255, dtype=np.uint8)
    return array_of(surface)
