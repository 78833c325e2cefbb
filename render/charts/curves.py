"""Charts of curves and dots from plain numbers, alone or side by side, without environments, runs or pyplot."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from llm_coop_envs.render.charts.sizes import fit_rows, panel_width, points, wrap_to
from llm_coop_envs.render.charts.style import (
    BLUE,
    FAINT,
    INK,
    NOTE,
    any_letters,
    draw_colour_bar,
    new_figure,
    note_plotted,
    place_parts,
    set_labels,
    set_titles,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Text


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One curve.

    Attributes:
        label: its name in the legend; empty for none.
        x: the horizontal position of each point.
        y: the value at each point.
        low: the lower end of the band at each point; `None` for no band.
        high: the upper end of the band.
        color: the colour.
        published: draw it dashed with open markers, as a published curve.
        marker: the marker's shape, in matplotlib's letters; empty for none.
        thin: draw it thin and in the background, as one of many.
        marked: draw a marker at each point.
        whiskers: draw the band as a whisker at each point, for few points; of a thin curve the points alone.
        shift: how far to move it along x, so that whiskers do not cover each other.
        series: its name among the numbers of the figure, if its label is not that.
        hollow: where on x an open circle says that something else holds there than on the rest of it.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    low: Sequence[float] | None = None
    high: Sequence[float] | None = None
    color: str = BLUE
    published: bool = False
    marker: str = "o"
    thin: bool = False
    marked: bool = False
    whiskers: bool = False
    shift: float = 0.0
    series: str = ""
    hollow: Sequence[float] = ()


@dataclass(frozen=True, kw_only=True)
class Level:
    """A horizontal line with a label.

    Attributes:
        value: its height.
        label: the text to the right of the axes.
    """

    value: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Dots:
    """Unconnected points.

    Attributes:
        label: their name in the legend; empty for none.
        x: the horizontal position of each point.
        y: the vertical position of each point.
        color: the colour of all points.
        marker: the marker's shape, in matplotlib's letters.
        size: the marker's width in points.
        alpha: 0 (invisible) to 1.
        values: a number for each point, shown by its colour; `None` to use `color`.
        scale: the ends of the colour scale; `None` for the smallest and the largest value.
        series: their name among the numbers of the figure, if their label is not that.
    """

    label: str
    x: Sequence[float]
    y: Sequence[float]
    color: str = BLUE
    marker: str = "o"
    size: float = 4.0
    alpha: float = 1.0
    values: Sequence[float] | None = None
    scale: tuple[float, float] | None = None
    series: str = ""


@dataclass(frozen=True, kw_only=True)
class Shade:
    """A shaded rectangle.

    Attributes:
        x: its left and right edge.
        y: its lower and upper edge.
        share: the strength of its colour, 0 to 1.
        color: the colour.
    """

    x: tuple[float, float]
    y: tuple[float, float]
    share: float = 1.0
    color: str = BLUE


@dataclass(frozen=True, kw_only=True)
class MarkedLine:
    """A vertical line with a label, where something begins or ends.

    Attributes:
        at: its horizontal position.
        label: the text at the line's upper end.
    """

    at: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One set of axes.

    Attributes:
        title: the title.
        x_label: the label of the horizontal axis.
        y_label: the label of the vertical axis.
        curves: the curves, background first.
        dots: points, drawn above the curves.
        levels: horizontal reference lines.
        shades: shaded rectangles, drawn behind everything.
        marks: vertical lines.
        x_ticks: the positions of the ticks of the horizontal axis; `None` for automatic.
        tick_labels: the texts of these ticks; `None` for the numbers.
        x_range: the ends of the horizontal axis; `None` for automatic.
        y_range: the ends of the vertical axis; `None` for automatic.
        note: a smaller line below the title.
        name: what the file of numbers calls the panel; by default its title and note.
    """

    title: str
    x_label: str = ""
    y_label: str = ""
    curves: Sequence[Curve] = ()
    dots: Sequence[Dots] = ()
    levels: Sequence[Level] = ()
    shades: Sequence[Shade] = ()
    marks: Sequence[MarkedLine] = ()
    x_ticks: Sequence[float] | None = None
    tick_labels: Sequence[str] | None = None
    x_range: tuple[float, float] | None = None
    y_range: tuple[float | None, float | None] = (None, None)
    note: str = ""
    name: str = ""


Rows = Sequence[Sequence[Panel | None]]
_PANELS: WeakKeyDictionary[Figure, Rows] = WeakKeyDictionary()
#: The lowest panel of a journal's column, and the narrowest column of a legend, in inches.
_LOWEST, _LEGEND_COLUMN = 1.5, 1.6
#: How far texts are shrunk at most.
_SMALLEST_TYPE = 0.7
#: More open circles on a curve hide it.
_MOST_CIRCLES = 25
#: The smallest area of a dot in a legend, in square points.
_LEGEND_DOT = 16.0


def draw_panels(
    rows: Rows,
    *,
    size: tuple[float, float] = (3.2, 2.6),
    share_y: bool = False,
    legend_rows: int | None = None,
    legend_columns: int = 1,
    bar: str = "",
) -> Figure:
    """Draw panels in rows, with one legend below that names everything once.

    Args:
        rows: the panels; `None` leaves a position empty.
        size: width and height of one panel in inches, without the legend.
        share_y: whether all panels have the same vertical axis.
        legend_rows: how many lines to reserve for the legend; `None` for as many as it has.
        legend_columns: how many columns the legend has.
        bar: the label of a bar for the colours of dots with values (whole numbers); empty for no bar.

    Returns:
        The figure, which is not shown on a screen.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    from matplotlib.collections import PathCollection

    rows = fit_rows(rows)
    across = max(len(row) for row in rows)
    width = panel_width(size[0], across)
    height = size[1] if width >= size[0] else max(size[1] * width / size[0], min(size[1], _LOWEST))
    panels = [panel for row in rows for panel in row if panel is not None]
    # The fullest panel goes first, so that names stand in the order of its curves.
    fullest = sorted(panels, key=lambda panel: -len(panel.curves) - len(panel.dots))
    labels = [
        label for panel in fullest for label in (*(c.label for c in panel.curves), *(d.label for d in panel.dots))
    ]
    legend_columns = min(legend_columns, max(1, int(width * across / _LEGEND_COLUMN)))
    names = {label: wrap_to(label, width * across / legend_columns - 0.5, 9) for label in labels if label}
    text_lines = "\n".join(names.values()).count("\n") + bool(names)
    lines = math.ceil(text_lines / legend_columns) if legend_rows is None else max(legend_rows, text_lines)
    legend_height = points(0.21) * lines + 0.1 if lines else 0.0
    in_corner = {label: wrap_to(label, width - 0.7, 9) for label in names}
    corner_lines = "\n".join(in_corner.values()).count("\n") + 1
    has_corner = len(rows) > 1 and len(rows[-1]) < across and names and points(0.21) * corner_lines < height
    if has_corner:
        names, legend_height = in_corner, 0.0
    with styled():
        figure = new_figure(width * across, height * len(rows) + legend_height)
        grid = figure.subplots(len(rows), across, squeeze=False, sharey=share_y)
        for row_index, row in enumerate(rows):
            for axes in grid[row_index, len(row) :]:
                axes.set_axis_off()
            for axes, panel in zip(grid[row_index], row, strict=False):
                if panel is None:
                    axes.set_axis_off()
                else:
                    fill(axes, panel)
        if bar:
            draw_colour_bar(figure, grid, bar)
        legend = None
        if names:
            handles = {
                text: handle
                for axes in grid.flat
                for handle, text in zip(*axes.get_legend_handles_labels(), strict=True)
            }
            look: dict[str, Any] = {"handlelength": 2.6, "labelspacing": 0.35}
            look |= {"loc": "center left"} if has_corner else {"loc": "outside lower left", "ncols": legend_columns}
            host = grid[-1, -1] if has_corner else figure
            legend = host.legend([handles[name] for name in names], list(names.values()), **look)
            for handle in legend.legend_handles:  # a small dot shows no colour
                if isinstance(handle, PathCollection):
                    handle.set_sizes([max(_LEGEND_DOT, size) for size in handle.get_sizes()])
        with any_letters():
            _fit_texts(figure, grid, None if has_corner else legend)
    note_plotted(figure, (row for panel in panels for row in _rows(panel)))
    _PANELS[figure] = rows
    return figure


def _fit_texts(figure: Figure, grid: Any, legend: Legend | None) -> None:
    """Shrink what does not fit where it stands: names below an axis, notes above panels, and the legend."""
    place_parts(figure)
    canvas: Any = figure.canvas
    renderer, across = canvas.get_renderer(), figure.bbox.width

    def width(text: Text) -> float:
        return float(text.get_window_extent(renderer).width)

    for axes in grid.flat:
        labels = [label for label in axes.get_xticklabels() if label.get_text()]
        places = [label.get_transform().transform(label.get_position())[0] for label in labels]
        widths = [width(label) for label in labels]
        gaps = [abs(second - first) for first, second in pairwise(places)]
        _shrink(labels, [1.94 * gap / sum(pair) for gap, pair in zip(gaps, pairwise(widths), strict=True)])
    lefts = {axes: axes.yaxis.get_tightbbox(renderer) for axes in grid.flat if axes.axison}
    starts = [axes.bbox.x0 if box is None else box.x0 for axes, box in lefts.items()]
    notes = [(axes, text) for axes in lefts for text in axes.texts if text.get_gid() == NOTE]
    room = min(
        (min((x for x in starts if x > axes.bbox.x1), default=across) - axes.bbox.x0 for axes, _ in notes), default=0.0
    )
    for _, note in notes:
        _shrink([note], [room / width(note)])
        while width(note) > room and len(note.get_text()) > 2:
            note.set_text(note.get_text()[:-2] + "\N{HORIZONTAL ELLIPSIS}")
    if legend is not None:
        names = legend.get_texts()
        _shrink(names, [0.98 * across / legend.get_window_extent(renderer).width])
        widest = max(map(width, names))
        room = 0.97 * across - (legend.get_window_extent(renderer).width - widest)
        if widest > room:
            letters = max(len(line) for name in names for line in name.get_text().split("\n"))
            for name in names:
                name.set_text(textwrap.fill(name.get_text(), max(12, int(letters * room / widest))))


def _shrink(texts: Sequence[Text], room: Sequence[float]) -> None:
    """Make texts smaller if there is room for less than their size, told as shares of it."""
    share = max(_SMALLEST_TYPE, min(room, default=1.0))
    if share < 1:
        for text in texts:
            text.set_fontsize(share * float(text.get_fontsize()))


def panels_of(figure: Figure) -> Rows:
    """The rows that `draw_panels` drew in a figure; empty for other figures."""
    return _PANELS.get(figure, [])


def _rows(panel: Panel) -> Iterator[dict[str, Any]]:
    """The numbers in a panel, as rows with the columns of `style.PLOTTED`."""
    panel_name = {"panel": panel.name or ", ".join(filter(None, (panel.title, panel.note)))}
    for number, curve in enumerate(panel.curves, 1):
        kind = "published curve" if curve.published else "thin curve" if curve.thin else "curve"
        about = {**panel_name, "kind": kind, "series": curve.series or curve.label or f"curve {number}"}
        columns = {"x": curve.x, "y": curve.y, "low": curve.low, "high": curve.high}
        yield from _columns(about, columns)
    for number, dots in enumerate(panel.dots, 1):
        about = {**panel_name, "kind": "dot", "series": dots.series or dots.label or f"dots {number}"}
        yield from _columns(about, {"x": dots.x, "y": dots.y, "value": dots.values})
    for level in panel.levels:
        yield {**panel_name, "kind": "horizontal line", "series": level.label, "y": level.value}
    for mark in panel.marks:
        yield {**panel_name, "kind": "vertical line", "series": mark.label, "x": mark.at}
    for shade in panel.shades:
        for x in shade.x:
            area = {"x": x, "low": shade.y[0], "high": shade.y[1], "value": shade.share}
            yield {**panel_name, "kind": "shaded area", "series": "shaded", **area}


def _columns(about: dict[str, Any], columns: Mapping[str, Sequence[float] | None]) -> Iterator[dict[str, Any]]:
    """Rows of the columns that are not `None`."""
    present = {name: values for name, values in columns.items() if values is not None}
    for row in zip(*present.values(), strict=True):
        yield {**about, **dict(zip(present, row, strict=True))}


def fill(axes: Axes, panel: Panel) -> None:
    """Draw a panel into its axes."""
    for shade in panel.shades:
        (left_x, right_x), (bottom, top) = shade.x, shade.y
        axes.fill_between(
            [left_x, right_x], bottom, top, color=shade.color, alpha=0.25 * shade.share, linewidth=0, zorder=0.5
        )
    courses: set[Any] = set()
    for curve in panel.curves:
        # A curve that lies on another is broken, so that both are seen: before anybody talks, talk changes nothing.
        seen = tuple(float(f"{y:.4g}") for y in curve.y)
        course = curve.thin, curve.published, curve.shift, tuple(curve.x), seen
        _draw(axes, curve, covers=course in courses)
        courses.add(course)
    for dots in panel.dots:
        _scatter(axes, dots)
    _draw_levels(axes, panel.levels)
    for mark in panel.marks:
        _draw_mark(axes, mark)
    set_titles(axes, panel.title, panel.note)
    set_labels(axes, panel.x_label, panel.y_label)
    series = [
        (x, y) for drawn in (panel.curves, panel.dots) for one in drawn for x, y in zip(one.x, one.y, strict=True)
    ]
    places = {float(x) for x, y in series if math.isfinite(y)}
    if panel.x_ticks is not None:
        axes.set_xticks(list(panel.x_ticks), panel.tick_labels)
    elif all(x.is_integer() for x in places):
        from matplotlib.ticker import MaxNLocator

        fewest = 1 if len(places) == 1 else 2
        steps = [1, 2, 2.5, 5, 10]
        axes.xaxis.set_major_locator(MaxNLocator(nbins="auto", steps=steps, integer=True, min_n_ticks=fewest))
    if panel.x_range is not None:
        axes.set_xlim(*panel.x_range)
    if panel.y_range != (None, None):
        axes.set_ylim(*panel.y_range)


def _draw_levels(axes: Axes, levels: Sequence[Level]) -> None:
    """Draw horizontal lines, one for all levels of a height: a single firm's Nash price is its cartel price."""
    labels: dict[float, list[str]] = {}
    for level in levels:
        height = next((height for height in labels if math.isclose(height, level.value)), level.value)
        labels.setdefault(height, []).append(level.label)
    for height, names in labels.items():
        axes.axhline(height, color=FAINT, linewidth=1.1, linestyle=(0, (1, 1.6)), zorder=1.5)
        axes.annotate(
            ", ".join(names),
            (1.0, height),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            ha="left",
            va="center",
            fontsize=points(8.5),
            color=FAINT,
        )


def _draw_mark(axes: Axes, mark: MarkedLine) -> None:
    """Draw a vertical line with its label, on the side that has more room."""
    low, high = axes.get_xlim()
    is_left = mark.at - low > high - mark.at
    axes.axvline(mark.at, color=INK, linewidth=1.0, linestyle=(0, (6, 2, 1, 2)), zorder=2.8)
    axes.annotate(
        mark.label,
        (mark.at, 1.0),
        xycoords=("data", "axes fraction"),
        xytext=(-2 if is_left else 2, -3),
        textcoords="offset points",
        ha="right" if is_left else "left",
        va="top",
        rotation=90,
        fontsize=points(8),
        color=INK,
        bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 0.5},
        zorder=4,
    )


def _draw(axes: Axes, curve: Curve, *, covers: bool = False) -> None:
    x = [value + curve.shift for value in curve.x]
    alone = _lonely(curve.y)
    is_marked = curve.marked or bool(alone)
    every = None if curve.marked else alone
    line: dict[str, Any] = {"color": curve.color, "label": curve.label or "_nolegend_"}
    if curve.low is not None and curve.high is not None:
        if curve.whiskers:
            below = [y - low for y, low in zip(curve.y, curve.low, strict=True)]
            above = [high - y for y, high in zip(curve.y, curve.high, strict=True)]
            axes.errorbar(
                x,
                curve.y,
                yerr=[below, above],
                fmt="none",
                ecolor=curve.color,
                elinewidth=points(1.3),
                capsize=points(3),
            )
        else:
            axes.fill_between(x, curve.low, curve.high, color=curve.color, alpha=0.18, linewidth=0)
    if curve.published:
        marker: dict[str, Any] = {
            "marker": curve.marker,
            "markersize": points(4.5),
            "markerfacecolor": "white",
            "markeredgewidth": 1.2,
        }
        axes.plot(x, curve.y, linestyle=(0, (4, 2)), linewidth=points(1.4), zorder=2.5, **marker, **line)
    elif curve.thin:
        marker = (
            {"marker": curve.marker, "markersize": points(3.0), "markeredgewidth": 0.0, "markevery": every}
            if is_marked
            else {}
        )
        width = 0.0 if curve.whiskers else 0.7
        axes.plot(x, curve.y, linewidth=width, alpha=0.35, zorder=2, **marker, **line)
    else:
        marker = {"marker": curve.marker, "markersize": points(4.5), "markevery": every} if is_marked else {}
        style = (0, (3, 3)) if covers else "-"
        axes.plot(x, curve.y, linestyle=style, linewidth=points(1.9), zorder=3, **marker, **line)
    circled = [(at, y) for at, place, y in zip(x, curve.x, curve.y, strict=True) if place in curve.hollow]
    if circled:
        circled = circled[:: math.ceil(len(circled) / _MOST_CIRCLES)]
        look: dict[str, Any] = {"facecolors": "white", "edgecolors": curve.color, "linewidths": points(1.2)}
        places, heights = zip(*circled, strict=True)
        axes.scatter(places, heights, s=points(4.5) ** 2, zorder=3.2, **look)


def _lonely(values: Sequence[float]) -> list[int]:
    """Where points have no neighbour, so that no line shows them."""
    is_there = [False, *(math.isfinite(value) for value in values), False]
    return [k for k in range(len(values)) if is_there[k + 1] and not is_there[k] and not is_there[k + 2]]


def _scatter(axes: Axes, dots: Dots) -> None:
    look: dict[str, Any] = {
        "marker": dots.marker,
        "s": points(dots.size) ** 2,
        "alpha": dots.alpha,
        "label": dots.label or "_nolegend_",
    }
    if dots.values is None:
        # Markers such as "_" have no area: only their edge is visible.
        width = 1.4 if dots.marker in "_|x+" else 0.0
        axes.scatter(dots.x, dots.y, color=dots.color, linewidths=width, zorder=3.5, **look)
    else:
        low, high = dots.scale or (min(dots.values), max(dots.values))
        axes.scatter(
            dots.x,
            dots.y,
            c=list(dots.values),
            cmap="viridis",
            vmin=low,
            vmax=high,
            linewidths=0,
            zorder=3.5,
            **look,
        )
