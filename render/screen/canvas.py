"""A surface with fonts, a scale and one style: what every picture is drawn with."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from llm_coop_envs.render.charts import style as style
from llm_coop_envs.render.screen.glyphs import first_direction
from llm_coop_envs.render.screen.pygame_import import pygame
from llm_coop_envs.render.screen.text import Fonts, fonts

Colour = tuple[int, int, int]
Rect = pygame.Rect


def rgb(code: str) -> Colour:
    """A colour from its code, `"#rrggbb"`."""
    return int(code[1:3], 16), int(code[3:5], 16), int(code[5:7], 16)


BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = (rgb(code) for code in style.PALETTE)
#: Colours of players, exits and firms, in this order; signs and labels tell the same, so that none depends on colour.
SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
INK, FAINT, GRID = rgb(style.INK), rgb(style.FAINT), rgb(style.GRID)
_SIGNS = ("disc", "square", "triangle", "diamond", "star", "ring")
PAPER: Colour = (255, 255, 255)
PANEL: Colour = (247, 248, 250)
YELLOW: Colour = (240, 228, 66)


def series(index: int) -> Colour:
    """The colour of the k-th of some things; they repeat after six."""
    return SERIES[index % len(SERIES)]


def sign_of(index: int) -> str:
    """The sign of the k-th of some things: the seventh has the first one's colour, but not its sign."""
    return _SIGNS[(index + index // len(_SIGNS)) % len(_SIGNS)]


def mixed(colour: Colour, share: float, base: Colour = PAPER) -> Colour:
    """A colour laid over another with a share of 0 to 1."""
    red, green, blue = (round(low + (high - low) * share) for low, high in zip(base, colour, strict=True))
    return red, green, blue


#: Bubbles of more players than this hide the players.
FEW = 50


@dataclass(frozen=True, kw_only=True)
class View:
    """How a scene is looked at.

    Attributes:
        size: width and height of the picture at scale 1; `None` for the scenario's own.
        scale: everything is drawn so much larger (2 for screens with small pixels).
        colour: what the players' colours mean, in pictures that show more than one thing so: `"persona"` (who they
            are) or `"target"` (what they are after).
        trails: draw where players came from.
        density: draw how crowded it is.
        bubbles: draw what was said in this round; `None` for up to `FEW` players.
        selected: the index of the player whose view, hearing and words are shown.
        follow: zoom in on that player.
        system_fonts: use fonts of this machine; without them pictures are the same on every machine.
        marks: draw what players are not told, such as equilibrium prices.
        hint: a line of help at the foot of the picture; empty for none.
    """

    size: tuple[int, int] | None = None
    scale: float = 1.0
    colour: str = "persona"
    trails: bool = True
    density: bool = False
    bubbles: bool | None = None
    selected: int | None = None
    follow: bool = False
    system_fonts: bool = True
    marks: bool = True
    hint: str = ""

    def shows_bubbles(self, players: int) -> bool:
        """Whether what so many players say is drawn."""
        return players <= FEW if self.bubbles is None else self.bubbles


class Canvas:
    """A surface to draw on. Lengths are in pixels; `px` turns lengths of scale 1 into them."""

    def __init__(self, surface: pygame.Surface, view: View) -> None:
        self.surface = surface
        self.view = view
        self.fonts: Fonts = fonts(view.system_fonts)

    def px(self, length: float) -> int:
        """A length of scale 1 in pixels, at least one."""
        return max(1, round(length * self.view.scale))

    @property
    def rect(self) -> pygame.Rect:
        """The whole surface."""
        return self.surface.get_rect()

    def text(
        self,
        where: tuple[int, int],
        text: str,
        *,
        size: float = 13,
        colour: Colour = INK,
        bold: bool = False,
        anchor: str = "topleft",
        width: int | None = None,
    ) -> pygame.Rect:
        """Write one line, cut to `width` pixels; returns where it stands.

        `anchor` is the point of the line that stands at `where`, as in pygame's rectangles.
        """
        pixels = self.px(size)
        if width is not None:
            text = self.fonts.fit(text, pixels, width, bold=bold)
        picture = self.fonts.line(text, pixels, colour, bold=bold)
        rect = picture.get_rect(**{anchor: where})
        self.surface.blit(picture, rect)
        return rect

    def paragraph(
        self, rect: pygame.Rect, text: str, *, size: float = 12, colour: Colour = INK, lines: int | None = None
    ) -> int:
        """Write wrapped text from the top of a rectangle, as many lines as fit; returns the y below it."""
        pixels = self.px(size)
        room = max(0, rect.height // self.fonts.height(pixels))
        max_lines = room if lines is None else min(room, lines)
        if max_lines == 0:
            return rect.top
        return self.lines(rect, self.fonts.wrap(text, pixels, rect.width, lines=max_lines), size, colour)

    def lines(self, rect: pygame.Rect, lines: Sequence[str], size: float, colour: Colour = INK) -> int:
        """Write lines below each other, from the top of a rectangle; returns the y below them."""
        y, pixels = rect.top, self.px(size)
        for line in lines:
            if line:
                picture = self.fonts.line(line, pixels, colour)
                # What is written from right to left begins at the right.
                from_right = not line.isascii() and first_direction(line) is True
                self.surface.blit(picture, (rect.right - picture.get_width() if from_right else rect.left, y))
            y += self.fonts.height(pixels)
        return y

    def line_height(self, size: float) -> int:
        """The height of a line of text of a size at scale 1."""
        return self.fonts.height(self.px(size))

    def box(self, rect: pygame.Rect, fill: Colour | None, border: Colour | None = None, radius: float = 0) -> None:
        """A rectangle, filled, bordered, or both."""
        corner = self.px(radius) if radius else 0
        if fill is not None:
            pygame.draw.rect(self.surface, fill, rect, border_radius=corner)
        if border is not None:
            pygame.draw.rect(self.surface, border, rect, self.px(1), border_radius=corner)

    def dashed(self, start: tuple[float, float], end: tuple[float, float], colour: Colour, dash: float = 4) -> None:
        """A dashed line, horizontal or vertical or anything."""
        step, length = self.px(dash), max(1.0, math.dist(start, end))
        way = (end[0] - start[0]) / length, (end[1] - start[1]) / length
        for at in range(0, math.ceil(length), 2 * step):
            to = min(length, at + step)
            first, last = ((round(start[0] + way[0] * d), round(start[1] + way[1] * d)) for d in (at, to))
            pygame.draw.line(self.surface, colour, first, last, self.px(1))

    def polyline(self, points: Sequence[tuple[float, float]], colour: Colour, width: float = 2) -> None:
        """A line through points, smooth at its edges."""
        if len(points) < 2:
            return
        thick = self.px(width)
        if thick > 1:
            pygame.draw.lines(self.surface, colour, False, points, thick)
        pygame.draw.aalines(self.surface, colour, False, points)

    def dot(self, where: tuple[float, float], colour: Colour, diameter: float, sign: str = "disc") -> None:
        """A small sign with smooth edges, centred."""
        side = max(3, round(diameter))
        corner = round(where[0] - side / 2), round(where[1] - side / 2)
        self.surface.blit(sign_picture(sign, colour, side), corner)


@lru_cache(maxsize=512)
def sign_picture(sign: str, colour: Colour, diameter: int) -> pygame.Surface:
    """A sign as a picture: `"disc"`, `"ring"`, `"square"`, `"diamond"`, `"triangle"`, `"cross"`, `"star"`."""
    big = 4 * diameter
    picture = pygame.Surface((big, big), pygame.SRCALPHA)
    middle, edge = big / 2, big * 0.06
    dark = mixed(INK, 0.55, colour)
    thick = max(2, round(big * 0.1))
    if sign == "ring":
        pygame.draw.circle(picture, colour, (middle, middle), middle - 1, max(2, round(big * 0.16)))
    elif sign == "cross":
        for start, end in (((edge, edge), (big - edge, big - edge)), ((edge, big - edge), (big - edge, edge))):
            pygame.draw.line(picture, colour, start, end, round(big * 0.22))
    else:
        corners = {
            "square": [(0.1, 0.1), (0.9, 0.1), (0.9, 0.9), (0.1, 0.9)],
            "diamond": [(0.5, 0.0), (1.0, 0.5), (0.5, 1.0), (0.0, 0.5)],
            "triangle": [(0.5, 0.04), (0.98, 0.9), (0.02, 0.9)],
            "star": [(0.5, 0.0), (0.62, 0.38), (1.0, 0.38), (0.69, 0.6), (0.82, 1.0), (0.5, 0.76), (0.18, 1.0),
                     (0.31, 0.6), (0.0, 0.38), (0.38, 0.38)],
        }.get(sign)  # fmt: skip
        if corners is None:
            pygame.draw.circle(picture, dark, (middle, middle), middle - 1)
            pygame.draw.circle(picture, colour, (middle, middle), middle - 1 - thick)
        else:
            points = [(x * (big - 1), y * (big - 1)) for x, y in corners]
            pygame.draw.polygon(picture, colour, points)
            pygame.draw.polygon(picture, dark, points, thick)
    return pygame.transform.smoothscale(picture, (diameter, diameter))
