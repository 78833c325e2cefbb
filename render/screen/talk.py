"""A conversation beside a picture: a list of messages with the latest at the foot."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
    """Draw the latest messages that fit, and the number of earlier ones.

    Args:
        canvas: where to draw.
        rect: the rectangle for it; nothing is drawn if it has no width.
        scene: the scene with the messages.
        title: the title; the round by default.
        empty: the text for a scene without messages.
        colour_of: a speaker's colour.
        rounds: names a round; if given, the messages of each round have its name above them.
        lines: the largest number of lines of a message.
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
        text = message.text if message.text.strip() else "(no words)"
        wrapped = canvas.fonts.wrap(text, px(11.5), width, lines=lines)
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
        colour = INK if message.text.strip() else FAINT
        head = scene.agents[message.speaker]
        if message.private:
            head += f" to {', '.join(scene.agents[i] for i in message.hearers or ())}, privately"
        _draw_message(canvas, box, head, colour_of(message.speaker), wrapped, colour)
        y = box.bottom + px(5)


def _draw_message(
    canvas: Canvas, box: Rect, speaker: str, stripe: Colour, lines: Sequence[str], colour: Colour
) -> None:
    """Draw a message in its box, under the speaker's name and beside a stripe of the speaker's colour."""
    px = canvas.px
    canvas.box(box, PAPER, None, 4)
    canvas.box(Rect(box.left, box.top, px(4), box.height), stripe, None, 2)
    inner = Rect(box.left + px(4) + px(6), box.top + px(3), box.width - 2 * px(6) - px(4), box.height - px(3))
    canvas.text(inner.topleft, speaker, size=10.5, bold=True, colour=FAINT, width=inner.width)
    canvas.lines(inner.move(0, canvas.line_height(10.5)), lines, 11.5, colour)
