"""Small charts inside pictures: axes, curves, levels, bands."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.render.screen.canvas import FAINT, GRID, Canvas, Colour, Rect, series, sign_of


class Mark(NamedTuple):
    """A value on the vertical axis with a label: a horizontal line, or the end of a curve."""

    value: float
    label: str
    colour: Colour = FAINT


class Chart:
    """Axes in a rectangle, into which curves and levels are drawn.

    Args:
        canvas: where to draw.
        rect: the rectangle for the whole chart, its title and numbers included.
        title: the title above the axes.
        x_range: the ends of the horizontal axis.
        y_range: the ends of the vertical axis.
        x_label: the label of the horizontal axis.
        integers: whether the vertical axis has integers only, as the horizontal one always has.
        labels_at_right: pixels of scale 1 to keep for labels of curves and levels.
    """

    def __init__(
        self,
        canvas: Canvas,
        rect: Rect,
        *,
        title: str,
        x_range: tuple[float, float],
        y_range: tuple[float, float],
        x_label: str = "",
        integers: bool = False,
        labels_at_right: float = 0,
    ) -> None:
        self.canvas = canvas
        self.x_range = _widen(x_range)
        self.y_range = _widen(y_range)
        px = canvas.px
        canvas.text(rect.topleft, title, size=12.5, bold=True, width=rect.width)
        top = rect.top + canvas.line_height(12.5) + px(6)
        bottom = rect.bottom - canvas.line_height(10) - px(5)
        y_ticks = ticks(self.y_range, max(2, (bottom - top) // px(26)), integers=integers)
        wide = max((canvas.fonts.width(tick_text(v, y_ticks), px(10)) for v in y_ticks), default=0)
        right = rect.right - (px(labels_at_right) if labels_at_right else px(6))
        self.area = Rect(
            rect.left + wide + px(7), top, max(10, right - rect.left - wide - px(7)), max(10, bottom - top)
        )
        self._axes(y_ticks, x_label, rect)

    def place(self, x: float, y: float) -> tuple[float, float]:
        """The pixel of a point."""
        (x0, x1), (y0, y1) = self.x_range, self.y_range
        area = self.area
        return area.left + (x - x0) / (x1 - x0) * area.width, area.bottom - (y - y0) / (y1 - y0) * area.height

    def band(self, low: float, high: float, colour: Colour) -> None:
        """A shaded band between two heights."""
        top, bottom = (min(max(self.place(0, v)[1], self.area.top), self.area.bottom) for v in (high, low))
        self.canvas.box(Rect(self.area.left, round(top), self.area.width, max(1, round(bottom - top))), colour)

    def level(self, level: Mark) -> None:
        """A dashed horizontal line; `names` writes its label."""
        y = self.place(0, level.value)[1]
        if self.area.top - 1 <= y <= self.area.bottom + 1:
            self.canvas.dashed((self.area.left, y), (self.area.right, y), level.colour)

    def curve(
        self, x: NDArray[np.float64], y: NDArray[np.float64], colour: Colour, *, sign: str = "", width: float = 2
    ) -> None:
        """A curve, with signs at its points if there are few; points without a finite value are left out."""
        is_finite = np.isfinite(y)
        x, y = thin_curve(x[is_finite], y[is_finite], self.area.width)
        points = [self.place(a, b) for a, b in zip(x.tolist(), y.tolist(), strict=True)]
        self.canvas.surface.set_clip(self.area.inflate(self.canvas.px(8), self.canvas.px(8)))
        self.canvas.polyline(points, colour, width)
        if sign and points:
            for point in points if len(points) * self.canvas.px(9) <= self.area.width else points[-1:]:
                self.canvas.dot(point, colour, self.canvas.px(7), sign)
        self.canvas.surface.set_clip(None)

    def players(self, x: NDArray[np.float64], values: NDArray[np.float64], thickness: float = 1.0) -> None:
        """A curve for every player.

        Args:
            x: (points,) where on the horizontal axis.
            values: (points, players) the values.
            thickness: a factor on the width of the lines.
        """
        count = values.shape[1]
        for player in range(count):
            # Of few players the first ones have thicker lines, so that equal values leave all lines visible.
            width = 2.0 + (2.0 * (count - 1 - player) if count <= 3 else 0.0)
            self.curve(x, values[:, player], series(player), sign=sign_of(player), width=width * thickness)

    def names(self, levels: Sequence[Mark]) -> None:
        """Write labels to the right of the axes at the heights of their values, moved apart where they overlap."""
        height = self.canvas.line_height(10)
        placed: list[tuple[float, Mark]] = []
        for level in sorted(levels, key=lambda level: -level.value):
            y = min(max(self.place(0, level.value)[1], self.area.top), self.area.bottom)
            if placed:
                y = max(y, placed[-1][0] + height)
            placed.append((y, level))
        over = placed[-1][0] - (self.area.bottom + height / 2) if placed else 0
        # Where they are pushed below the axes, the last labels move up again, and push up those above them.
        for k in range(len(placed) - 1, -1, -1):
            if over <= 0:
                break
            y = placed[k][0] - over
            placed[k] = y, placed[k][1]
            over = placed[k - 1][0] + height - y if k else 0
        x = self.area.right + self.canvas.px(5)
        width = self.canvas.rect.right - x
        for y, level in placed:
            self.canvas.text((x, round(y)), level.label, size=10, colour=level.colour, anchor="midleft", width=width)

    def _axes(self, y_ticks: list[float], x_label: str, rect: Rect) -> None:
        canvas, area, px = self.canvas, self.area, self.canvas.px
        for value in y_ticks:
            y = round(self.place(0, value)[1])
            canvas.box(Rect(area.left, y, area.width, 1), GRID)
            canvas.text((area.left - px(4), y), tick_text(value, y_ticks), size=10, colour=FAINT, anchor="midright")
        x_ticks = ticks(self.x_range, max(2, area.width // px(46)), integers=True)
        used = -1
        free = area.right + px(12)
        if x_label:
            end = min(area.right + px(8), rect.right)
            free = canvas.text((end, area.bottom + px(3)), x_label, size=10, colour=FAINT, anchor="topright").left
        for value in x_ticks:
            x = round(self.place(value, 0)[0])
            text = tick_text(value, x_ticks)
            half = canvas.fonts.width(text, px(10)) // 2
            middle = min(max(x, area.left + half), area.right - half) if len(text) > 2 else x
            if middle - half > used and middle + half < free - px(4):
                canvas.text((middle, area.bottom + px(3)), text, size=10, colour=FAINT, anchor="midtop")
                used = middle + half + px(4)
        canvas.box(Rect(area.left, area.bottom, area.width, 1), FAINT)


def ticks(ends: tuple[float, float], count: int, *, integers: bool = False) -> list[float]:
    """Round numbers in a range, about `count` of them at most."""
    low, high = ends
    span = (high - low) / max(1, count)
    power = 10.0 ** math.floor(math.log10(span))
    step = next(power * k for k in (1, 2, 2.5, 5, 10) if power * k >= span * 0.999)
    if integers:
        step = max(1.0, math.ceil(step))
    first = math.ceil(low / step - 1e-9)
    return [round(k * step, 12) for k in range(first, math.floor(high / step + 1e-9) + 1)]


def tick_text(value: float, axis: Sequence[float]) -> str:
    """A number with as many decimals as all numbers of its axis need: of 0.5 and 1, `"0.5"` and `"1.0"`."""
    for decimals in range(6):
        if all(abs(round(v, decimals) - v) < 1e-9 for v in axis):
            return f"{value:,.{decimals}f}"
    return f"{value:g}"


def thin_curve(
    x: NDArray[np.float64], y: NDArray[np.float64], pixels: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Reduce a long curve to its lowest and highest point in each pixel column, and its last point.

    Args:
        x: (points,) the horizontal positions, rising.
        y: (points,) the values.
        pixels: how many columns the curve has.
    """
    if len(x) <= 4 * pixels:
        return x, y
    points_per_pixel = -(-len(x) // pixels)
    indices: list[int] = []
    for start in range(0, len(x), points_per_pixel):
        column = y[start : start + points_per_pixel]
        indices += sorted({start + int(np.argmin(column)), start + int(np.argmax(column))})
    if indices[-1] != len(x) - 1:
        indices.append(len(x) - 1)
    return x[indices], y[indices]


def short(value: float) -> str:
    """A number for a table, with four digits or, from 10,000 on, without decimals; empty if it is not finite."""
    if not math.isfinite(value):
        return ""
    return f"{value:,.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def _widen(ends: tuple[float, float]) -> tuple[float, float]:
    """Widen a range without length, and replace one without finite ends by 0 to 1."""
    low, high = ends
    if not (math.isfinite(low) and math.isfinite(high)):
        return 0.0, 1.0
    return (low, high) if high - low > 1e-12 * max(1.0, abs(low)) else (low - 0.5, high + 0.5)
