"""Drawing of the room: walls, exits, desks, people and their speech bubbles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.evacuation.faces.drawing_bubbles import Bubble, place_bubbles
from llm_coop_envs.evacuation.faces.scene import DISABLED, INSIDE, EvacuationScene, exit_cells_of
from llm_coop_envs.evacuation.faces.scene_sight import cells_seen, target_of
from llm_coop_envs.evacuation.room import Room
from llm_coop_envs.render.screen.canvas import (
    BLUE,
    FAINT,
    GREEN,
    GRID,
    INK,
    ORANGE,
    PANEL,
    PAPER,
    PURPLE,
    SKY,
    VERMILION,
    YELLOW,
    Canvas,
    Colour,
    Rect,
    View,
    mix_colours,
)
from llm_coop_envs.render.screen.pygame_import import pygame

WALL: Colour = (88, 96, 108)
DESK: Colour = (196, 188, 174)
#: Exits have colours that no persona has.
_EXIT_COLOURS = (GREEN, PURPLE, (70, 70, 70), (170, 140, 0), BLUE, VERMILION)
#: Colour for strong, sign for confident: (strong, confident) -> (colour, sign).
_PERSONA_SIGNS: dict[tuple[bool | None, bool | None], tuple[Colour, str]] = {
    (True, True): (BLUE, "disc"),
    (True, False): (SKY, "triangle"),
    (False, True): (VERMILION, "disc"),
    (False, False): (ORANGE, "triangle"),
}
_UNKNOWN = FAINT, "disc"
_MARGIN = 58
_PAD = 5
#: At most this many messages are considered for bubbles.
_BUBBLES = 40


def exit_colour(index: int) -> Colour:
    """The colour of an exit."""
    return _EXIT_COLOURS[index % len(_EXIT_COLOURS)]


def look_of(scene: EvacuationScene, person: int, colour: str) -> tuple[Colour, str]:
    """A person's colour and sign."""
    by_persona = _PERSONA_SIGNS.get(scene.personas[person], _UNKNOWN)
    if colour == "persona":
        return by_persona
    heading = int(scene.headings[person])
    return (exit_colour(heading) if heading >= 0 else FAINT), by_persona[1]


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The mapping from the room's cells to pixels.

    Attributes:
        area: the part of the surface that shows the room.
        cell: a cell's side in pixels.
        left: the x of column 0.
        top: the y of row 0.
    """

    area: Rect
    cell: int
    left: int
    top: int

    def rect(self, row: float, col: float) -> Rect:
        """The rectangle of a cell."""
        return Rect(round(self.left + col * self.cell), round(self.top + row * self.cell), self.cell, self.cell)

    def middles(self, cells: NDArray[np.int64]) -> NDArray[np.float64]:
        """The middles of (n, 2) cells as (n, 2) x and y."""
        corner = np.array([self.left, self.top], dtype=np.float64)
        return corner + (cells[:, ::-1] + 0.5) * self.cell

    def middle(self, row: float, col: float) -> tuple[int, int]:
        """The middle of a cell."""
        return round(self.left + (col + 0.5) * self.cell), round(self.top + (row + 0.5) * self.cell)


def layout_of(scene: EvacuationScene, canvas: Canvas, area: Rect) -> Layout:
    """Fit the room into an area: the whole room if possible; else, or when following, the part around a person."""
    room, view = scene.room, canvas.view
    margin = canvas.px(_MARGIN)
    fitting = min((area.width - 2 * margin) // room.cols, (area.height - 2 * margin // 2) // room.rows)
    person = view.selected
    close = person is not None and view.follow
    cell = max(1, fitting, canvas.px(22) if close else 1)
    width, height = room.cols * cell, room.rows * cell
    left = area.left + (area.width - width) // 2
    top = area.top + (area.height - height) // 2
    if width > area.width or height > area.height:
        row, col = (room.rows / 2, room.cols / 2) if person is None else scene.positions[person].tolist()
        left = round(area.centerx - (col + 0.5) * cell)
        top = round(area.centery - (row + 0.5) * cell)
        # Show no more of the outside than needed.
        left = min(max(left, area.right - margin - width), area.left + margin) if width > area.width else left
        top = min(max(top, area.bottom - margin - height), area.top + margin) if height > area.height else top
    return Layout(area=area, cell=cell, left=left, top=top)


def draw_room(scene: EvacuationScene, canvas: Canvas, area: Rect) -> None:
    """Draw the room with everything in it."""
    layout = layout_of(scene, canvas, area)
    surface, view = canvas.surface, canvas.view
    surface.set_clip(area)
    surface.blit(_ground(scene.room, layout.cell), (layout.left, layout.top))
    if view.density:
        _draw_density(scene, canvas, layout)
    chosen = view.selected if view.selected is not None and view.selected < len(scene.agents) else None
    if chosen is not None and scene.status[chosen] == INSIDE:
        _draw_sight(scene, canvas, layout, chosen)
    if view.trails:
        _draw_trails(scene, canvas, layout)
    _draw_people(scene, canvas, layout)
    if chosen is not None:
        middle = layout.middle(*scene.positions[chosen].tolist())
        radius = max(canvas.px(5), round(layout.cell * 0.62))
        pygame.draw.circle(surface, PAPER, middle, radius + canvas.px(2), canvas.px(2))
        pygame.draw.circle(surface, INK, middle, radius, canvas.px(2))
    tags = _draw_exits(scene, canvas, layout)
    if scene.said and view.shows_bubbles(len(scene.agents)):
        _draw_bubbles(scene, canvas, layout, chosen, tags)
    surface.set_clip(None)


@lru_cache(maxsize=16)
def _ground(room: Room, cell: int) -> pygame.Surface:
    """Draw what never changes: floor, walls, desks, and the openings of the exits."""
    surface = pygame.Surface((room.cols * cell, room.rows * cell))
    surface.fill(PAPER)
    width, height = surface.get_size()
    if cell >= 7:
        line = PANEL if cell < 12 else mix_colours(GRID, 0.6)
        for y in range(cell, height, cell):
            surface.fill(line, (0, y, width, 1))
        for x in range(cell, width, cell):
            surface.fill(line, (x, 0, 1, height))
    surface.fill(WALL, (0, 0, width, cell))
    surface.fill(WALL, (0, height - cell, width, cell))
    surface.fill(WALL, (0, 0, cell, height))
    surface.fill(WALL, (width - cell, 0, cell, height))
    inset = 1 if cell >= 6 else 0
    for row, col in zip(*room.row_col(np.flatnonzero(room.desks)), strict=True):
        desk = Rect(col * cell + inset, row * cell + inset, cell - 2 * inset, cell - 2 * inset)
        pygame.draw.rect(surface, DESK, desk, border_radius=cell // 6)
    for row, col, exit_ in exit_cells_of(room):
        surface.fill(mix_colours(exit_colour(exit_), 0.45), Rect(col * cell, row * cell, cell, cell))
    return surface


def _draw_density(scene: EvacuationScene, canvas: Canvas, layout: Layout) -> None:
    """Draw the people per cell in the 5 x 5 cells around each cell, from transparent to orange."""
    room = scene.room
    count = np.zeros((room.rows + 5, room.cols + 5))
    inside = scene.positions[scene.status == INSIDE]
    np.add.at(count, (inside[:, 0] + 3, inside[:, 1] + 3), 1.0)
    total = count.cumsum(axis=0).cumsum(axis=1)
    block = total[5:, 5:] - total[:-5, 5:] - total[5:, :-5] + total[:-5, :-5]
    # 12 of 25 occupied cells is as dense as it gets in front of an exit.
    share = np.clip(block[: room.rows, : room.cols] / 12.0, 0.0, 1.0)
    share[[0, -1]] = 0.0
    share[:, [0, -1]] = 0.0
    small = pygame.Surface((room.cols, room.rows), pygame.SRCALPHA)
    low, high = np.array(YELLOW), np.array(VERMILION)
    # The surface is locked as long as these arrays have names.
    pygame.surfarray.pixels3d(small)[:] = (low + (high - low) * share.T[:, :, None]).astype(np.uint8)
    pygame.surfarray.pixels_alpha(small)[:] = (np.minimum(1.0, share.T * 1.6) * 150).astype(np.uint8)
    size = room.cols * layout.cell, room.rows * layout.cell
    if size[0] * size[1] <= 4_000_000:
        cloud = pygame.transform.smoothscale(small, size)
        floor = Rect(0, 0, *size).inflate(-2 * layout.cell, -2 * layout.cell)
        canvas.surface.blit(cloud, (layout.left + layout.cell, layout.top + layout.cell), floor)


def _draw_sight(scene: EvacuationScene, canvas: Canvas, layout: Layout, person: int) -> None:
    """Draw the cells that a person sees, how far it is heard, and a line to its target."""
    cell = layout.cell
    patch = pygame.Surface((cell, cell), pygame.SRCALPHA)
    patch.fill((*YELLOW, 120))
    room = scene.room
    exits = {(row, col) for row, col, _ in exit_cells_of(room)}
    open_cells = [
        (row, col)
        for row, col in cells_seen(scene, person)
        if (0 < row < room.rows - 1 and 0 < col < room.cols - 1) or (row, col) in exits
    ]
    canvas.surface.blits([(patch, layout.rect(row, col)) for row, col in open_cells], doreturn=False)
    middle = layout.middle(*scene.positions[person].tolist())
    if scene.hearing_radius is not None:
        spoken = layout.middle(*scene.stood[person].tolist())
        pygame.draw.circle(canvas.surface, INK, spoken, round(scene.hearing_radius * cell), canvas.px(1))
    target = target_of(scene, person)
    if target is not None:
        canvas.dashed(middle, layout.middle(*target), INK, 5)


def _draw_trails(scene: EvacuationScene, canvas: Canvas, layout: Layout) -> None:
    if len(scene.trails) < 2 or layout.cell < 4:
        return
    path = np.concatenate([scene.trails, scene.positions[None]])
    x, y = layout.left + (path[:, :, 1] + 0.5) * layout.cell, layout.top + (path[:, :, 0] + 0.5) * layout.cell
    surface, width = canvas.surface, max(1, layout.cell // 7)
    for person in np.flatnonzero(scene.status == INSIDE).tolist():
        line = list(zip(x[:, person].tolist(), y[:, person].tolist(), strict=True))
        colour, _ = look_of(scene, person, canvas.view.colour)
        half = len(line) // 2
        pygame.draw.lines(surface, mix_colours(colour, 0.2), False, line[: half + 1], width)
        pygame.draw.lines(surface, mix_colours(colour, 0.4), False, line[half:], width)


def _draw_people(scene: EvacuationScene, canvas: Canvas, layout: Layout) -> None:
    cell, surface, mode = layout.cell, canvas.surface, canvas.view.colour
    people = zip(layout.middles(scene.positions).tolist(), scene.status.tolist(), scene.overtaken.tolist(), strict=True)
    diameter = max(5, round(cell * 0.82))
    for person, ((x, y), status, overtaken) in enumerate(people):
        colour, sign = look_of(scene, person, mode)
        if cell < 5:
            if status == INSIDE:
                surface.fill(INK if overtaken else colour, (round(x - cell / 2), round(y - cell / 2), cell, cell))
        elif status == INSIDE:
            canvas.dot((x, y), colour, diameter, sign)
            if overtaken:
                canvas.dot((x, y), INK, max(4, round(diameter * 0.7)), "cross")
        elif status == DISABLED:
            canvas.dot((x, y), INK, diameter, "cross")


def _draw_exits(scene: EvacuationScene, canvas: Canvas, layout: Layout) -> list[Rect]:
    """Draw the name and count of each exit outside the wall; returns their boxes."""
    room, px = scene.room, canvas.px
    tags = []
    for index, name in enumerate(room.exit_names):
        row, col = np.mean([cell[:2] for cell in exit_cells_of(room) if cell[2] == index], axis=0).tolist()
        x, y = layout.middle(row, col)
        half = layout.cell // 2 + px(4)
        if row <= 0:
            anchor, where = "midbottom", (x, layout.top - px(4))
        elif row >= room.rows - 1:
            anchor, where = "midtop", (x, layout.top + room.rows * layout.cell + px(4))
        elif col <= 0:
            anchor, where = "midright", (x - half, y)
        else:
            anchor, where = "midleft", (x + half, y)
        if not layout.area.inflate(2 * px(_MARGIN), 2 * px(_MARGIN)).collidepoint(x, y):
            continue
        count, colour = str(scene.out[index]), exit_colour(index)
        sideways = anchor in ("midleft", "midright")
        title = canvas.fonts.fit(name, px(12), px(70), bold=True)
        wide = canvas.fonts.width(title, px(12), bold=True)
        number = canvas.fonts.width(count, px(14), bold=True)
        height = canvas.line_height(14)
        if sideways:
            tag = Rect(0, 0, max(wide, number) + px(8), canvas.line_height(12) + height + px(4))
        else:
            tag = Rect(0, 0, wide + number + px(16), height + px(4))
        setattr(tag, anchor, where)
        tag.clamp_ip(layout.area)
        canvas.box(tag, PAPER, colour, 4)
        if sideways:
            canvas.text((tag.centerx, tag.top + px(2)), title, size=12, bold=True, colour=colour, anchor="midtop")
            canvas.text((tag.centerx, tag.bottom - px(2)), count, size=14, bold=True, anchor="midbottom")
        else:
            canvas.text((tag.left + px(5), tag.centery), title, size=12, bold=True, colour=colour, anchor="midleft")
            canvas.text((tag.right - px(5), tag.centery), count, size=14, bold=True, anchor="midright")
        tags.append(tag)
    return tags


def _draw_bubbles(scene: EvacuationScene, canvas: Canvas, layout: Layout, chosen: int | None, tags: list[Rect]) -> None:
    """Draw this round's messages, the latest first; with a selected person only those it said or heard."""
    messages = [message for message in scene.said[::-1] if not message.text.isspace() and message.text]
    if chosen is not None:
        messages = [message for message in messages if message.speaker == chosen or message.heard_by(chosen)]
        messages.sort(key=lambda message: message.speaker != chosen)
    if not messages:
        return
    # Bubbles do not move with people: they are placed where the messages were spoken.
    speakers = [message.speaker for message in messages]
    inside = np.unique(np.append(np.flatnonzero(scene.status == INSIDE), speakers))
    people = tuple(map(tuple, scene.stood[inside].tolist()))
    spoken = tuple((message.text, *scene.stood[message.speaker].tolist()) for message in messages[:_BUBBLES])
    area = layout.area
    free = [*tags, *(layout.rect(row, col) for row, col, _ in exit_cells_of(scene.room))]
    placed = _bubbles(spoken, people, layout.cell, (area.left, area.top, area.width, area.height),
                      (layout.left, layout.top), tuple((t.left, t.top, t.width, t.height) for t in free),
                      canvas.view.scale, canvas.view.system_fonts)  # fmt: skip
    for bubble in placed:
        # The line leads to the speaker's present cell.
        speaker = layout.middle(*scene.positions[messages[bubble.index].speaker].tolist())
        pygame.draw.aaline(canvas.surface, INK, Rect(bubble.box).center, speaker)
        canvas.dot(speaker, INK, canvas.px(5))
    pad = canvas.px(_PAD)
    for bubble in placed:
        message = messages[bubble.index]
        box = Rect(bubble.box)
        canvas.box(box, PAPER, INK if chosen in (None, message.speaker) else FAINT, 5)
        canvas.lines(box.inflate(-2 * pad, -2 * pad), _bubble_lines(canvas, message.text, area.width), 11)


def _bubble_lines(canvas: Canvas, text: str, room: int) -> list[str]:
    """Wrap a message for a bubble. Of a long one the end is shown, since people say there what they will do."""
    widest = min(canvas.px(170), room // 3)
    return canvas.fonts.wrap(text, canvas.px(11), widest, lines=3, keep_end=True)


@lru_cache(maxsize=64)
def _bubbles(
    spoken: tuple[tuple[str, int, int], ...],
    people: tuple[tuple[int, int], ...],
    cell: int,
    area: tuple[int, int, int, int],
    corner: tuple[int, int],
    tags: tuple[tuple[int, int, int, int], ...],
    scale: float,
    system_fonts: bool,
) -> tuple[Bubble, ...]:
    """Place the bubbles of a round; cached, because they stay in place during all its steps."""
    view = View(scale=scale, system_fonts=system_fonts)
    canvas = Canvas(pygame.Surface((1, 1)), view)
    layout = Layout(area=Rect(area), cell=cell, left=corner[0], top=corner[1])
    px, size = canvas.px, canvas.px(11)
    pad, height = px(_PAD), canvas.line_height(11)
    wrapped = [_bubble_lines(canvas, text, area[2]) for text, *_ in spoken]
    wide = [max((canvas.fonts.width(line, size) for line in lines), default=0) for lines in wrapped]
    sizes = [(w + 2 * pad, len(lines) * height + 2 * pad) for w, lines in zip(wide, wrapped, strict=True)]
    return tuple(
        place_bubbles(
            [layout.middle(row, col) for _, row, col in spoken],
            sizes,
            area,
            avoid=tags,
            people=layout.middles(np.array(people, dtype=np.int64).reshape(-1, 2)),
            gap=px(4),
            reach=max(px(12), cell),
            limit=max(3, area[2] * area[3] // (px(190) * px(190))),
        )
    )
