"""The layout of pictures: a bar at the top, the main part, and a panel beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llm_coop_envs.render.screen.canvas import FAINT, PANEL, PAPER, Canvas, Rect

_HEAD, _FOOT, _NARROWEST = 36, 22, 180


@dataclass(frozen=True, kw_only=True)
class Picture:
    """The drawing functions of a scenario.

    Attributes:
        draw: draws a scene onto a canvas.
        size: the usual width and height at scale 1.
        player_at: the index of the player at a pixel of a drawn scene, or `None`; for clicks.
        keys: help on the keys of windows that change this picture.
    """

    draw: Callable[[Any, Canvas], None]
    size: tuple[int, int] = (1000, 640)
    player_at: Callable[[Any, Canvas, int, int], int | None] = lambda *_: None
    keys: str = ""


def areas(canvas: Canvas, wide: float = 340, share: float = 0.36) -> tuple[Rect, Rect]:
    """The rectangles of the main part and of the panel beside it; a narrow picture has no panel (its width is 0).

    Args:
        canvas: the picture, its help line included.
        wide: the width of the panel at scale 1.
        share: the largest share of the picture's width that the panel may take.
    """
    px, whole = canvas.px, canvas.rect
    head, foot = px(_HEAD), px(_FOOT) if canvas.view.hint else 0
    side = min(px(wide), round(whole.width * share))
    side = side if side >= px(_NARROWEST) else 0
    main = Rect(0, head, whole.width - side, whole.height - head - foot)
    return main, Rect(main.right, head, side, main.height)


def draw_page(
    canvas: Canvas, *, title: str, state: str, right: str, wide: float = 340, share: float = 0.36
) -> tuple[Rect, Rect]:
    """Draw an empty page with a bar.

    Args:
        canvas: the picture.
        title: the title, at the left end of the bar.
        state: what is going on, beside the title.
        right: the text at the right end of the bar.
        wide: see `areas`.
        share: see `areas`.

    Returns:
        The rectangles of the main part and of the inside of the panel, see `areas`.
    """
    px = canvas.px
    main, panel = areas(canvas, wide, share)
    canvas.surface.fill(PAPER)
    bar = Rect(0, 0, canvas.rect.width, px(_HEAD))
    canvas.box(bar, PANEL)
    at = canvas.text((px(12), bar.centery), title, size=16, bold=True, anchor="midleft").right + px(14)
    end = canvas.text((bar.right - px(12), bar.centery), right, size=13, bold=True, anchor="midright").left
    canvas.text((at, bar.centery), state, size=13, colour=FAINT, anchor="midleft", width=max(px(20), end - at - px(8)))
    if panel.width:
        canvas.box(Rect(panel.left, panel.top, panel.width, canvas.rect.bottom - panel.top), PANEL)
    return main, panel.inflate(-px(24), -px(16)) if panel.width else panel
