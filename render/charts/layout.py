"""Lay out panels in rows as one figure, without pyplot: sizes, one legend for all, and texts that fit."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from llm_coop_envs.render.charts.axes import fill
from llm_coop_envs.render.charts.panels import Panel, plotted_rows
from llm_coop_envs.render.charts.sizes import fit_rows, panel_width, points, wrap_to
from llm_coop_envs.render.charts.style import (
    NOTE,
    any_letters,
    draw_colour_bar,
    new_figure,
    note_plotted,
    place_parts,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.legend import Legend
    from matplotlib.text import Text

Rows = Sequence[Sequence[Panel | None]]
_PANELS: WeakKeyDictionary[Figure, Rows] = WeakKeyDictionary()
#: The lowest panel of a journal's column, and the narrowest column of a legend, in inches.
_LOWEST, _LEGEND_COLUMN = 1.5, 1.6
#: How far texts are shrunk at most.
_SMALLEST_TYPE = 0.7
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
        from matplotlib.collections import PathCollection

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
            place_parts(figure)
            if _fit_texts(figure, grid, None if has_corner else legend):
                place_parts(figure)
    note_plotted(figure, (row for panel in panels for row in plotted_rows(panel)))
    _PANELS[figure] = rows
    return figure


def _fit_texts(figure: Figure, grid: Any, legend: Legend | None) -> bool:
    """Shrink what does not fit where it stands: names below an axis, notes above panels, and the legend.

    Returns:
        Whether a text that others make room for is another now.
    """
    is_changed = False
    canvas: Any = figure.canvas
    renderer, across = canvas.get_renderer(), figure.bbox.width

    def width(text: Text) -> float:
        return float(text.get_window_extent(renderer).width)

    for axes in grid.flat:
        labels = [label for label in axes.get_xticklabels() if label.get_text()]
        places = [label.get_transform().transform(label.get_position())[0] for label in labels]
        widths = [width(label) for label in labels]
        gaps = [abs(second - first) for first, second in pairwise(places)]
        is_changed |= _shrink(
            labels, [1.94 * gap / sum(pair) for gap, pair in zip(gaps, pairwise(widths), strict=True)]
        )
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
        is_changed |= _shrink(names, [0.98 * across / legend.get_window_extent(renderer).width])
        widest = max(map(width, names))
        room = 0.97 * across - (legend.get_window_extent(renderer).width - widest)
        if widest > room:
            letters = max(len(line) for name in names for line in name.get_text().split("\n"))
            for name in names:
                name.set_text(textwrap.fill(name.get_text(), max(12, int(letters * room / widest))))
            is_changed = True
    return is_changed


def _shrink(texts: Sequence[Text], room: Sequence[float]) -> bool:
    """Make texts smaller if there is room for less than their size, told as shares of it; returns whether it did."""
    share = max(_SMALLEST_TYPE, min(room, default=1.0))
    if share < 1:
        for text in texts:
            text.set_fontsize(share * float(text.get_fontsize()))
    return share < 1


def panels_of(figure: Figure) -> Rows:
    """The rows that `draw_panels` drew in a figure; empty for other figures."""
    return _PANELS.get(figure, [])
