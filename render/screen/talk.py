"""A conversation beside a picture, as a list of messages with the latest at the foot."""

from __future__ import annotations

from collections.abc import Callable

from llm_coop_envs.render.scenes.base import Said, Scene
from llm_coop_envs.render.screen.canvas import FAINT, INK, PAPER, Canvas, Colour, Rect, series


def draw_talk(
    canvas: Canvas,
    rect: Rect,
    scene: Scene,
    *,
    title: str = "",
    empty: str = "Nobody has spoken in this round.",
    colour_of: Callable[[int], Colour] = series,
    rounds: Callable[[int], str] | None = None,
    lines: int = 6,
) -> None:
    """Draw what was said; what does not fit is the oldest, and its number is told.

    Args:
        canvas: where to draw.
        rect: the place for it; nothing is drawn if it has no width.
        scene: who said what.
        title: what it is; the round's talk by default.
        empty: what to write if nothing was said.
        colour_of: a speaker's colour.
        rounds: names a round; if given, every change of the round gets a line.
        lines: of how many lines a message may be.
    """
    if not rect.width:
        return
    px, messages = canvas.px, scene.said
    canvas.text(rect.topleft, title or f"Said in round {scene.round}", size=12.5, bold=True, width=rect.width)
    y = rect.top + canvas.line_height(12.5) + px(6)
    room = rect.bottom - y
    if not messages:
        canvas.paragraph(Rect(rect.left, y, rect.width, room), empty, size=12, colour=FAINT)
        return
    small, step, pad = canvas.line_height(10.5), canvas.line_height(11.5), px(6)
    title_step = small + px(4)
    blocks: list[tuple[Said, list[str]]] = []
    width = rect.width - 2 * pad - px(4)
    for index in range(len(messages) - 1, -1, -1):
        message = messages[index]
        wrapped = canvas.fonts.wrap(
            message.text if message.text.strip() else "(no words)", px(11.5), width, lines=lines
        )
        opens = rounds is not None and (index == 0 or messages[index - 1].round != message.round)
        height = small + len(wrapped) * step + pad + px(5) + opens * title_step
        if height + (title_step if index else 0) > room:
            break
        blocks.append((message, wrapped))
        room -= height
    hidden = len(messages) - len(blocks)
    if hidden:
        canvas.text((rect.left, y), f"{hidden} earlier not shown", size=10.5, colour=FAINT)
        y += title_step
    previous_round = messages[hidden - 1].round if hidden else None
    for message, wrapped in reversed(blocks):
        if rounds is not None and message.round != previous_round:
            canvas.text((rect.left, y), rounds(message.round), size=10.5, bold=True, colour=FAINT)
            y += title_step
            previous_round = message.round
        box = Rect(rect.left, y, rect.width, small + len(wrapped) * step + pad)
        canvas.box(box, PAPER, None, 4)
        canvas.box(Rect(box.left, box.top, px(4), box.height), colour_of(message.speaker), None, 2)
        inner = Rect(box.left + px(4) + pad, box.top + px(3), width, box.height - px(3))
        canvas.text(inner.topleft, scene.agents[message.speaker], size=10.5, bold=True, colour=FAINT, width=width)
        canvas.lines(inner.move(0, small), wrapped, 11.5, INK if message.text.strip() else FAINT)
        y = box.bottom + px(5)
