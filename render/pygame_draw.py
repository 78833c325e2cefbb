"""Drawing any scene onto a surface: a pure function of the scene and of how it is looked at. No display is needed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.errors import SceneError
from llm_coop_envs.render.pygame_bertrand import SIZE as BERTRAND_SIZE
from llm_coop_envs.render.pygame_bertrand import draw_bertrand
from llm_coop_envs.render.pygame_canvas import INK, PAPER, Canvas, View
from llm_coop_envs.render.pygame_evacuation import SIZE as EVACUATION_SIZE
from llm_coop_envs.render.pygame_evacuation import draw_evacuation
from llm_coop_envs.render.pygame_kbc import SIZE as KBC_SIZE
from llm_coop_envs.render.pygame_kbc import draw_kbc
from llm_coop_envs.render.pygame_library import pygame
from llm_coop_envs.render.scenes import AnyScene, BertrandScene, EvacuationScene, KbcScene

_DRAWN: dict[type[Any], tuple[Callable[[Any, Canvas], None], tuple[int, int]]] = {
    EvacuationScene: (draw_evacuation, EVACUATION_SIZE),
    BertrandScene: (draw_bertrand, BERTRAND_SIZE),
    KbcScene: (draw_kbc, KBC_SIZE),
}
#: The masks of a surface whose bytes are red, green, blue.
_RGB_BYTES = (0xFF, 0xFF00, 0xFF0000, 0) if sys.byteorder == "little" else (0xFF0000, 0xFF00, 0xFF, 0)
#: Pictures wider or higher than this are refused.
MAX_SIDE = 16_000


def draw(scene: AnyScene, view: View | None = None, *, onto: pygame.Surface | None = None) -> pygame.Surface:
    """Draw a scene.

    Args:
        scene: what there is to see.
        view: how it is looked at.
        onto: draw here, over the whole surface, instead of on a new one of the view's size.

    Raises:
        SceneError: there is no picture of such a scene, or the size is impossible.
    """
    view = view or View()
    paint, usual = _painter(scene)
    if onto is None:
        size = tuple(round(side * view.scale) for side in (view.size or usual))
        if not all(1 <= side <= MAX_SIDE for side in size):
            raise SceneError(f"a picture of {size[0]} x {size[1]} pixels cannot be drawn; sides are 1 to {MAX_SIDE}")
        onto = pygame.Surface(size, depth=32)
    canvas = Canvas(onto, view)
    paint(scene, canvas)
    if view.hint:
        px = canvas.px
        where = px(12), canvas.rect.bottom - px(5)
        canvas.text(
            where, view.hint, size=11, colour=(107, 114, 128), anchor="bottomleft", width=canvas.rect.width - px(24)
        )
    return onto


def usual_size(scene: AnyScene) -> tuple[int, int]:
    """The width and height of a scene's picture at scale 1.

    Raises:
        SceneError: there is no picture of such a scene.
    """
    return _painter(scene)[1]


def frame(scene: AnyScene, view: View | None = None) -> NDArray[np.uint8]:
    """Draw a scene as an (height, width, 3) array."""
    return array_of(draw(scene, view))


def _painter(scene: AnyScene) -> tuple[Callable[[Any, Canvas], None], tuple[int, int]]:
    found = _DRAWN.get(type(scene))
    if found is None:
        raise SceneError(f"there is no picture of a {type(scene).__name__}")
    return found


def array_of(surface: pygame.Surface) -> NDArray[np.uint8]:
    """A surface as an (height, width, 3) array."""
    # SDL reorders the bytes several times faster than numpy or `tobytes` do.
    packed = pygame.Surface(surface.get_size(), 0, 24, _RGB_BYTES)
    packed.blit(surface, (0, 0))
    width, height = surface.get_size()
    rows: NDArray[np.uint8] = np.frombuffer(packed.get_buffer().raw, dtype=np.uint8)
    pixels: NDArray[np.uint8] = rows.reshape(height, packed.get_pitch())[:, : 3 * width].reshape(height, width, 3)
    copy: NDArray[np.uint8] = pixels.copy()
    return copy


def error_frame(sentence: str, size: tuple[int, int] = EVACUATION_SIZE) -> NDArray[np.uint8]:
    """A picture that says why there is none."""
    surface = pygame.Surface(size, depth=32)
    surface.fill(PAPER)
    try:
        canvas = Canvas(surface, View(system_fonts=False))
        canvas.paragraph(canvas.rect.inflate(-60, -60), sentence, size=15, colour=INK)
    except Exception:
        # Whatever keeps the sentence from being written, an empty picture is better than a lost episode.
        return np.full((size[1], size[0], 3), 255, dtype=np.uint8)
    return array_of(surface)
