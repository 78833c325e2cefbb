"""How pictures are laid out: a bar with what is going on, the main part, and a panel beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llm_coop_envs.render.screen.canvas import FAINT, PANEL, PAPER, Canvas, Rect

_HEAD, _FOOT, _NARROWEST = 36, 22, 180


@dataclass(frozen=True, kw_only=True)
class Picture:
    """How the scenes of a scenario are drawn.

    Attributes:
        draw: draws a scene onto a canvas.
        size: the usual width and height at scale 1.
        player_at: the player at a pixel of a drawn scene, or `None`; for clicks.
        keys: what keys of the windows change in this picture, in a few words.
    """

    draw: Callable[[Any, Canvas], None]
    size: tuple[int, int] = (1000, 640)
    player_at: Callable[[Any, Canvas, int, int], int | None] = lambda *_: None
    keys: str = ""


def areas(canvas: Canvas, wide: float = 340, share: float = 0.36) -> tuple[Rect, Rect]:
    """Where the main part and the panel beside it are; a narrow picture has no panel (its width is 0).

    Args:
        canvas: the picture, its help line included.
        wide: how wide the panel is, at scale 1.
        share: the largest part of the picture's width that it may take.
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
    """Draw an empty page with a bar: its title, what is going on, and what stands at the right end.

    Returns:
        The place of the main part, and the inside of the panel; both as in `areas`.
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
