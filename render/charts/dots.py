"""Charts of means with intervals: a line per kind of player, a dot per group, panels side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from llm_coop_envs.render.charts.sizes import points
from llm_coop_envs.render.charts.style import BLUE, FAINT, PUBLISHED, new_figure, note_plotted, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D


@dataclass(frozen=True, kw_only=True)
class Dot:
    """One mean.

    Attributes:
        line: the index of its line, from 0 at the top.
        value: the mean.
        low: the lower end of its interval; `None` for no interval.
        high: the upper end of its interval.
        group: the index of its group; `None` for a published number.
    """

    line: int
    value: float
    low: float | None = None
    high: float | None = None
    group: int | None = None


@dataclass(frozen=True, kw_only=True)
class DotPanel:
    """One set of axes.

    Attributes:
        title: the title.
        label: the label of the horizontal axis.
        dots: the means.
        log: whether the axis is logarithmic.
        levels: the positions and labels of faint vertical lines.
        x_range: the ends of the axis; `None` for automatic.
    """

    title: str
    label: str
    dots: Sequence[Dot]
    log: bool = False
    levels: Sequence[tuple[float, str]] = ()
    x_range: tuple[float, float] | None = None


def draw_dots(lines: Sequence[str], groups: Sequence[tuple[str, str]], panels: Sequence[DotPanel]) -> Figure:
    """Draw panels that share their lines.

    Args:
        lines: the names of the lines, top first.
        groups: name and colour of each group; the dots of a line stand below each other in this order.
        panels: the panels, left to right.

    Returns:
        The figure, which is not shown on a screen.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    with styled():
        figure = new_figure(3.0 + 3.3 * len(panels), 1.5 + 0.42 * len(lines))
        row = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        for axes, panel in zip(row, panels, strict=True):
            _draw(axes, panel, groups)
        first = row[0]
        first.set_yticks(range(len(lines)), lines)
        first.set_ylim(len(lines) - 0.5, -0.5)
        handles = [_handle(colour, name) for name, colour in groups]
        if any(dot.group is None for panel in panels for dot in panel.dots):
            handles.append(_handle(PUBLISHED, "published", hollow=True))
        figure.legend(handles=handles, loc="outside lower left", ncols=len(handles), handletextpad=0.2)
    note_plotted(
        figure,
        (
            {
                "panel": panel.title,
                "kind": "published dot" if dot.group is None else "dot",
                "series": lines[dot.line] if dot.group is None else f"{lines[dot.line]}, {groups[dot.group][0]}",
                "x": dot.value,
                "low": dot.low,
                "high": dot.high,
            }
            for panel in panels
            for dot in panel.dots
        ),
    )
    return figure


def _draw(axes: Axes, panel: DotPanel, groups: Sequence[tuple[str, str]]) -> None:
    for level, name in panel.levels:
        axes.axvline(level, color=FAINT, linewidth=1.0, linestyle=(0, (1, 1.6)), zorder=1.5)
        axes.annotate(
            name,
            (level, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(2, -2),
            textcoords="offset points",
            va="top",
            rotation=90,
            fontsize=points(7.5),
            color=FAINT,
        )
    step = 0.7 / max(len(groups), 1)
    for dot in panel.dots:
        colour = PUBLISHED if dot.group is None else groups[dot.group][1]
        shift = 0.0 if dot.group is None else (dot.group - (len(groups) - 1) / 2) * step
        y = dot.line + shift
        if dot.low is not None and dot.high is not None and dot.high > dot.low:
            axes.plot([dot.low, dot.high], [y, y], color=colour, linewidth=1.5, zorder=2.5, solid_capstyle="butt")
        face = "white" if dot.group is None else colour
        axes.plot([dot.value], [y], "D" if dot.group is None else "o", markersize=5, color=colour, mfc=face, zorder=3)
    if panel.log and panel.dots:
        axes.set_xscale("log")
        # Every second power of ten, written in full; more would not fit.
        powers = range(0, 1 + math.ceil(math.log10(max(dot.value for dot in panel.dots) or 1.0)), 2)
        axes.set_xticks([10.0**k for k in powers], [f"{10**k:,}" for k in powers])
        axes.minorticks_off()
    if panel.x_range is not None:
        axes.set_xlim(*panel.x_range)
    axes.set_title(panel.title)
    axes.set_xlabel(panel.label)
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)


def _handle(colour: str = BLUE, label: str = "", *, hollow: bool = False) -> Line2D:
    from matplotlib.lines import Line2D

    face = "white" if hollow else colour
    marker = "D" if hollow else "o"
    return Line2D([], [], linestyle="none", marker=marker, markersize=5, color=colour, mfc=face, label=label)
