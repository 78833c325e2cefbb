"""A conversation beside a picture, as a list of messages with the latest at the foot."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llm_coop_envs.render.scenes.base import Said
from llm_coop_envs.render.screen.canvas import FAINT, INK, PAPER, Canvas, Colour, Rect


def draw_talk(
    canvas: Canvas,
    rect: Rect,
    said: Sequence[Said],
    names: Sequence[str],
    *,
    title: str,
    colour_of: Callable[[int], Colour],
    empty: str,
    rounds: Callable[[int], str] | None = None,
    lines: int = 6,
) -> None:
    """Draw a conversation; what does not fit is the oldest, and its number is told.

    Args:
        canvas: where to draw.
        rect: the place for it.
        said: messages, oldest first.
        names: the speakers' names, by index.
        title: what it is.
        colour_of: a speaker's colour.
        empty: what to write if nothing was said.
        rounds: names a round; if given, every change of the round gets a line.
        lines: of how many lines a message may be.
    """
    px = canvas.px
    canvas.text(rect.topleft, title, size=12.5, bold=True, width=rect.width)
    top = rect.top + canvas.line_height(12.5) + px(6)
    if not said:
        canvas.paragraph(Rect(rect.left, top, rect.width, rect.bottom - top), empty, size=12, colour=FAINT)
        return
    small, step, pad = canvas.line_height(10.5), canvas.line_height(11.5), px(6)
    blocks: list[tuple[Said, list[str], int]] = []
    room = rect.bottom - top
    width = rect.width - 2 * pad - px(4)
    for index in range(len(said) - 1, -1, -1):
        one = said[index]
        wrapped = canvas.fonts.wrap(_words(one), px(11.5), width, lines=lines)
        height = small + len(wrapped) * step + pad + px(5)
        opens = rounds is not None and (index == 0 or said[index - 1].round != one.round)
        if opens:
            height += small + px(4)
        reserve = small + px(4) if index else 0
        if height + reserve > room:
            break
        blocks.append((one, wrapped, height))
        room -= height
    hidden = len(said) - len(blocks)
    y = top
    if hidden:
        canvas.text((rect.left, y), f"{hidden} earlier not shown", size=10.5, colour=FAINT)
        y += small + px(4)
    before = said[hidden - 1].round if hidden else None
    for one, _, height in reversed(blocks):
        if rounds is not None and one.round != before:
            canvas.text((rect.left, y), rounds(one.round), size=10.5, bold=True, colour=FAINT)
            y += small + px(4)
            height -= small + px(4)
            before = one.round
        box = Rect(rect.left, y, rect.width, height - px(5))
        canvas.box(box, PAPER, None, 4)
        canvas.box(Rect(box.left, box.top, px(4), box.height), colour_of(one.speaker), None, 2)
        inner = Rect(box.left + px(4) + pad, box.top + px(3), width, box.height - px(3))
        canvas.text(inner.topleft, names[one.speaker], size=10.5, bold=True, colour=FAINT, width=width)
        inner.top += small
        inner.height -= small
        canvas.paragraph(inner, _words(one), size=11.5, lines=lines, colour=INK if one.text.strip() else FAINT)
        y += height


def _words(one: Said) -> str:
    return one.text if one.text.strip() else "(no words)"
