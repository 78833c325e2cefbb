"""The canvas that every picture is drawn on: a surface with fonts, a scale and one style."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from llm_coop_envs.render.charts import style as style
from llm_coop_envs.render.screen.glyphs import first_direction
from llm_coop_envs.render.screen.pygame_import import pygame
from llm_coop_envs.render.screen.text import Colour as Colour
from llm_coop_envs.render.screen.text import Fonts, fonts

Rect = pygame.Rect


def rgb(code: str) -> Colour:
    """A colour from its code, `"#rrggbb"`."""
    return int(code[1:3], 16), int(code[3:5], 16), int(code[5:7], 16)


BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = (rgb(code) for code in style.PALETTE)
#: Colours of players, exits and firms, in this order. Signs and labels tell them apart without colours.
SERIES = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
INK, FAINT, GRID = rgb(style.INK), rgb(style.FAINT), rgb(style.GRID)
_SIGNS = ("disc", "square", "triangle", "diamond", "star", "ring")
PAPER: Colour = (255, 255, 255)
PANEL: Colour = (247, 248, 250)
YELLOW: Colour = (240, 228, 66)


def series(index: int) -> Colour:
    """The colour of a player, exit or firm; colours repeat after six."""
    return SERIES[index % len(SERIES)]


def sign_of(index: int) -> str:
    """The sign of a player, exit or firm: number 6 has the colour of number 0, but another sign."""
    return _SIGNS[(index + index // len(_SIGNS)) % len(_SIGNS)]


def mix_colours(colour: Colour, share: float, base: Colour = PAPER) -> Colour:
    """Lay a colour over another, with a share of 0 to 1."""
    red, green, blue = (round(low + (high - low) * share) for low, high in zip(base, colour, strict=True))
    return red, green, blue


#: With more players than this, bubbles would hide the players.
FEW = 50


@dataclass(frozen=True, kw_only=True)
class View:
    """Options of drawing a scene.

    Attributes:
        size: width and height of the picture at scale 1; `None` for the scenario's own.
        scale: the factor on all lengths (2 for screens with small pixels).
        colour: the meaning of the players' colours, in pictures that have a choice: `"persona"` (who they are) or
            `"target"` (where they are going).
        trails: draw where players came from.
        density: draw how crowded places are.
        bubbles: draw the messages of this round; `None` for up to `FEW` players.
        selected: the index of the player whose view, hearing and messages are shown.
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
        """Whether bubbles are drawn for this number of players."""
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
        """Write one line.

        Args:
            where: the pixel of the line's anchor.
            text: the text.
            size: the size of the letters at scale 1.
            colour: the colour of the letters.
            bold: use the bold font.
            anchor: the point of the line that stands at `where`, named as in pygame's rectangles.
            width: cut the line to so many pixels; `None` for no limit.

        Returns:
            The rectangle of the line.
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
                # Arabic and Hebrew lines begin at the right.
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
        """A dashed line in any direction."""
        step, length = self.px(dash), max(1.0, math.dist(start, end))
        dx, dy = (end[0] - start[0]) / length, (end[1] - start[1]) / length
        for offset in range(0, math.ceil(length), 2 * step):
            distances = (offset, min(length, offset + step))
            first, last = ((round(start[0] + dx * distance), round(start[1] + dy * distance)) for distance in distances)
            pygame.draw.line(self.surface, colour, first, last, self.px(1))

    def polyline(self, points: Sequence[tuple[float, float]], colour: Colour, width: float = 2) -> None:
        """A line through points, with smooth edges."""
        if len(points) < 2:
            return
        thick = self.px(width)
        if thick > 1:
            pygame.draw.lines(self.surface, colour, False, points, thick)
        pygame.draw.aalines(self.surface, colour, False, points)

    def dot(self, where: tuple[float, float], colour: Colour, diameter: float, sign: str = "disc") -> None:
        """A small sign with smooth edges, centred at a point; see `sign_picture`."""
        side = max(3, round(diameter))
        corner = round(where[0] - side / 2), round(where[1] - side / 2)
        self.surface.blit(sign_picture(sign, colour, side), corner)


@lru_cache(maxsize=512)
def sign_picture(sign: str, colour: Colour, diameter: int) -> pygame.Surface:
    """A sign on a transparent background.

    Args:
        sign: `"disc"`, `"ring"`, `"square"`, `"diamond"`, `"triangle"`, `"cross"` or `"star"`.
        colour: its colour; the border is darker.
        diameter: its width and height in pixels.
    """
    big = 4 * diameter
    picture = pygame.Surface((big, big), pygame.SRCALPHA)
    middle, edge = big / 2, big * 0.06
    dark = mix_colours(INK, 0.55, colour)
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
