"""The picture of an evacuation: the room, and beside it the escapes, the legend, and one person or the talk."""

from __future__ import annotations

import numpy as np

from llm_coop_envs.evacuation.faces.drawing_room import draw_room, exit_colour, layout_of, look_of
from llm_coop_envs.evacuation.faces.scene import DISABLED, ESCAPED, INSIDE, PERSONA_WORDS, EvacuationScene
from llm_coop_envs.evacuation.faces.scene_sight import exits_seen
from llm_coop_envs.render.screen.canvas import FAINT, GRID, INK, VERMILION, Canvas, Rect
from llm_coop_envs.render.screen.chart import Chart
from llm_coop_envs.render.screen.page import Picture, areas, draw_page


def draw_evacuation(scene: EvacuationScene, canvas: Canvas) -> None:
    """Draw the whole picture."""
    inside, out, disabled = (int((scene.status == status).sum()) for status in (INSIDE, ESCAPED, DISABLED))
    counts = {"inside": inside, "out": out, "knocked over": int(scene.overtaken.sum()), "disabled": disabled}
    doing = scene.state(exit="choosing exits", move="moving")
    room_area, inner = draw_page(
        canvas,
        title="Evacuation",
        state=f"round {scene.round} of {scene.rounds} · {doing}",
        right="   ".join(f"{name} {count}" for name, count in counts.items() if count or name in ("inside", "out")),
    )
    draw_room(scene, canvas, room_area)
    if inner.width:
        _panel(scene, canvas, inner)


def person_at(scene: EvacuationScene, canvas: Canvas, x: int, y: int) -> int | None:
    """Return the person nearest to a pixel, or `None` if nobody is near."""
    layout = layout_of(scene, canvas, areas(canvas)[0])
    inside = np.flatnonzero(scene.status == INSIDE)
    if not (layout.area.collidepoint(x, y) and len(inside)):
        return None
    middles = layout.middles(scene.positions[inside])
    distance = np.hypot(middles[:, 0] - x, middles[:, 1] - y)
    nearest = int(distance.argmin())
    return int(inside[nearest]) if distance[nearest] <= max(layout.cell, canvas.px(10)) else None


def _panel(scene: EvacuationScene, canvas: Canvas, inner: Rect) -> None:
    px = canvas.px
    curve = Rect(inner.left, inner.top, inner.width, min(px(200), inner.height * 2 // 5))
    _curve(scene, canvas, curve)
    y = _legend(scene, canvas, curve.move(0, curve.height + px(10)))
    canvas.box(Rect(inner.left, y + px(4), inner.width, 1), GRID)
    remainder = Rect(inner.left, y + px(12), inner.width, inner.bottom - y - px(12))
    chosen = canvas.view.selected
    if chosen is not None and chosen < len(scene.agents):
        _person(scene, canvas, remainder, chosen)
    else:
        _talk(scene, canvas, remainder)


def _curve(scene: EvacuationScene, canvas: Canvas, rect: Rect) -> None:
    curve = scene.curve
    x = np.arange(scene.curve_from, scene.curve_from + len(curve), dtype=np.float64)
    total = curve.sum(axis=1)
    chart = Chart(
        canvas,
        rect,
        title="People out",
        x_range=(0.0, float(max(scene.rounds, x[-1]))),
        y_range=(0.0, float(len(scene.agents))),
        x_label="round",
        integers=True,
    )
    for index in range(curve.shape[1]):
        chart.curve(x, curve[:, index].astype(np.float64), exit_colour(index), width=1.6)
    chart.curve(x, total.astype(np.float64), INK, width=2.4)
    canvas.dot(chart.place(float(x[-1]), float(total[-1])), INK, canvas.px(7))


def _legend(scene: EvacuationScene, canvas: Canvas, rect: Rect) -> int:
    """Draw the legend with counts: exits, then personas; returns the y below."""
    px = canvas.px
    y, step = rect.top, canvas.line_height(12) + px(3)
    heading = scene.headings[scene.status == INSIDE]
    canvas.text((rect.right, y), "out", size=11, colour=FAINT, anchor="topright")
    canvas.text((rect.right - px(50), y), "heading there", size=11, colour=FAINT, anchor="topright")
    canvas.text((rect.left, y), "exit", size=11, colour=FAINT)
    y += step
    exit_names = scene.room.exit_names[:8]
    for index, name in enumerate(exit_names):
        middle = y + step // 2 - px(1)
        canvas.box(Rect(rect.left, middle - px(2), px(14), px(4)), exit_colour(index))
        canvas.text((rect.left + px(20), y), name, size=12, width=rect.width // 2 - px(20))
        people = "\u2013" if scene.hidden else str(int((heading == index).sum()))
        canvas.text((rect.right - px(50), y), people, size=12, anchor="topright")
        canvas.text((rect.right, y), str(scene.out[index]), size=12, bold=True, anchor="topright")
        y += step
    if len(exit_names) < len(scene.room.exit_names):
        canvas.text(
            (rect.left, y), f"and {len(scene.room.exit_names) - len(exit_names)} more exits", size=11, colour=FAINT
        )
        y += step
    y += px(5)
    if canvas.view.colour == "persona" and any(persona in scene.personas for persona in PERSONA_WORDS):
        for persona, hint in PERSONA_WORDS.items():
            if persona in scene.personas:
                colour, sign = look_of(scene, scene.personas.index(persona), "persona")
                canvas.dot((rect.left + px(7), y + step // 2 - px(1)), colour, px(11), sign)
                text = f"{hint}, selfish" if scene.selfish else hint
                canvas.text((rect.left + px(20), y), text, size=12, width=rect.width - px(20))
                y += step
    elif canvas.view.colour == "target":
        hint = "people have the colour of the exit they head for"
        canvas.text((rect.left, y), hint, size=11, colour=FAINT, width=rect.width)
        y += step
    if scene.overtaken.any() or (scene.status == DISABLED).any():
        canvas.dot((rect.left + px(7), y + step // 2 - px(1)), INK, px(10), "cross")
        hint = "on a sign: knocked over; alone: disabled"
        canvas.text((rect.left + px(20), y), hint, size=12, width=rect.width - px(20))
        y += step
    return y


def _talk(scene: EvacuationScene, canvas: Canvas, rect: Rect) -> None:
    """Draw the messages of this round, the latest first."""
    px = canvas.px
    if scene.hearing_radius is None:
        canvas.paragraph(rect, "Nobody talks in this run.", size=12, colour=FAINT)
        return
    count = len(scene.said)
    title = "Said in this round" if count else "Nobody has spoken in this round"
    canvas.text(rect.topleft, f"{title} ({count})" if count else title, size=12.5, bold=True, width=rect.width)
    y = rect.top + canvas.line_height(12.5) + px(4)
    step = canvas.line_height(11.5)
    for number, message in enumerate(reversed(scene.said)):
        if y + 2 * step > rect.bottom:
            break
        if number < count - 1 and y + 4 * step > rect.bottom:
            canvas.text((rect.left, y), f"and {count - number} more", size=11.5, colour=FAINT)
            break
        y = _message(
            canvas, Rect(rect.left, y, rect.width, rect.bottom - y), scene.agents[message.speaker], message.text
        )


def _message(canvas: Canvas, rect: Rect, name: str, text: str) -> int:
    """Draw one message under its speaker's name; returns the y below."""
    canvas.text(rect.topleft, name, size=11, bold=True, colour=FAINT, width=rect.width)
    y = rect.top + canvas.line_height(11)
    return canvas.paragraph(Rect(rect.left, y, rect.width, rect.bottom - y), text, size=11.5, lines=3) + canvas.px(5)


def _person(scene: EvacuationScene, canvas: Canvas, rect: Rect, person: int) -> None:
    """Draw the panel of one person: its state, the exits it sees, and what it said and heard."""
    px = canvas.px
    y = rect.top
    colour, sign = look_of(scene, person, canvas.view.colour)
    step = canvas.line_height(12) + px(2)
    canvas.dot((rect.left + px(7), y + px(9)), colour, px(13), sign)
    canvas.text((rect.left + px(20), y), scene.agents[person], size=13.5, bold=True, width=rect.width - px(20))
    y += canvas.line_height(13.5) + px(2)
    for line in _state_lines(scene, person):
        canvas.text((rect.left, y), line, size=12, width=rect.width)
        y += step
    if scene.status[person] == INSIDE:
        y = _seen_exits(scene, canvas, rect, person, y)
    own = [message for message in scene.said if message.speaker == person]
    heard = [message for message in scene.said if message.heard_by(person)]
    for title, messages in (("said", own), (f"heard ({len(heard)})", heard)):
        if messages and y + 3 * step < rect.bottom:
            canvas.text((rect.left, y + px(3)), title, size=12, bold=True, colour=VERMILION if title == "said" else INK)
            y += step + px(3)
            for message in messages[::-1]:
                if y + 2 * step > rect.bottom:
                    break
                room = Rect(rect.left, y, rect.width, rect.bottom - y)
                y = _message(canvas, room, scene.agents[message.speaker], message.text)


def _state_lines(scene: EvacuationScene, person: int) -> list[str]:
    """Describe a person: its persona, where it is, whether it is knocked over, and its exit."""
    persona = PERSONA_WORDS.get(scene.personas[person], "")
    row, col = scene.positions[person].tolist()
    state = {ESCAPED: "out", DISABLED: "disabled"}.get(int(scene.status[person]), f"at row {row}, column {col}")
    lines = [", ".join(part for part in (persona, "selfish" if persona and scene.selfish else "", state) if part)]
    if scene.overtaken[person]:
        lines.append("knocked over in this round")
    heading = int(scene.headings[person])
    if scene.chosen[person] >= 0:
        lines.append(f"chose in this round: {scene.room.exit_names[int(scene.chosen[person])]}")
    elif heading >= 0:
        lines.append(f"heads for: {scene.room.exit_names[heading]} (chosen earlier)")
    else:
        lines.append("has not chosen an exit yet")
    return lines


def _seen_exits(scene: EvacuationScene, canvas: Canvas, rect: Rect, person: int, y: int) -> int:
    """Draw the people and the distance that a person sees towards each exit; returns the y below."""
    px, step = canvas.px, canvas.line_height(12) + canvas.px(2)
    y += px(3)
    middle = rect.left + rect.width * 72 // 100
    canvas.text((rect.left, y), "seen towards", size=11, colour=FAINT, width=middle - rect.left - px(46))
    canvas.text((middle, y), "people", size=11, colour=FAINT, anchor="topright")
    canvas.text((rect.right, y), "cells", size=11, colour=FAINT, anchor="topright", width=rect.right - middle)
    y += step
    for view in exits_seen(scene, person)[:8]:
        canvas.text((rect.left, y), view.name, size=12, width=middle - rect.left - px(50))
        canvas.text((middle, y), f"{view.people:.2f}", size=12, anchor="topright")
        canvas.text((rect.right, y), f"{view.distance:.1f}", size=12, anchor="topright")
        y += step
    return y


PICTURE = Picture(
    draw=draw_evacuation,
    size=(1100, 720),
    player_at=person_at,
    keys="c colours · t trails · d density · b bubbles · click a person, f follow, esc",
)
