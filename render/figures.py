"""Charts of results, from plain numbers: one style, colours that stay apart for every kind of colour vision.

Nothing here knows an environment, a run, or pyplot's global state.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llm_coop_envs.errors import MissingExtra

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito 2008, "Color Universal Design": distinguishable with every common colour-vision deficiency.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
INK, FAINT, GRID = "#22272e", "#6b7280", "#e3e6ea"
DPI = 200

_STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "text.color": INK,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
}


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One curve.

    Attributes:
        label: its name in the legend; empty for none.
        x: where.
        y: how much.
        low: the lower end of its band at each point, if it has one.
        high: the upper end.
        color: its colour.
        published: drawn dashed with open markers, to be told apart from what was measured here.
        marker: the marker's shape, in matplotlib's letters.
        thin: one of many, drawn in the background.
        marked: drawn with a marker at each point.
        whiskers: draw the band as a whisker at each point, for few points.
        shift: how far to move it along x, so that whiskers do not cover each other.
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


@dataclass(frozen=True, kw_only=True)
class Level:
    """A horizontal line with a name.

    Attributes:
        value: where.
        label: its name, written to the right of the axes.
    """

    value: float
    label: str


def draw_curves(
    curves: Sequence[Curve],
    *,
    title: str,
    x_label: str,
    y_label: str,
    levels: Sequence[Level] = (),
    x_ticks: Sequence[float] | None = None,
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float | None, float | None] = (None, None),
    size: tuple[float, float] = (4.8, 3.6),
    legend_rows: int | None = None,
) -> Figure:
    """Draw curves into one set of axes, with the legend below.

    Args:
        curves: what to draw, background first.
        title: what it shows.
        x_label: the horizontal axis.
        y_label: the vertical axis.
        levels: horizontal reference lines.
        x_ticks: where the horizontal axis has ticks; `None` for automatic.
        x_range: the horizontal axis' ends; `None` for automatic.
        y_range: the vertical axis' ends; `None` for automatic.
        size: width and height in inches, the legend not counted.
        legend_rows: how many lines of legend to leave room for, so that figures side by side are equally high;
            `None` for as many as there are.

    Returns:
        The figure; nothing is drawn to a screen.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    matplotlib, figure_type = _matplotlib()
    named = [curve for curve in curves if curve.label]
    rows = len(named) if legend_rows is None else legend_rows
    legend_height = 0.21 * rows + 0.1 if rows else 0.0
    with matplotlib.rc_context(_STYLE):
        height = size[1] + legend_height
        figure: Figure = figure_type(figsize=(size[0], height), layout="constrained")
        axes = figure.subplots()
        for curve in curves:
            _draw(axes, curve)
        for level in levels:
            axes.axhline(level.value, color=FAINT, linewidth=1.1, linestyle=(0, (1, 1.6)), zorder=1.5)
            axes.annotate(
                level.label,
                (1.0, level.value),
                xycoords=("axes fraction", "data"),
                xytext=(4, 0),
                textcoords="offset points",
                ha="left",
                va="center",
                fontsize=8.5,
                color=FAINT,
            )
        axes.set_title(title)
        axes.set_xlabel(x_label)
        axes.set_ylabel(y_label)
        if x_ticks is not None:
            axes.set_xticks(list(x_ticks))
        if x_range is not None:
            axes.set_xlim(*x_range)
        axes.set_ylim(*y_range)
        if named:
            figure.legend(loc="outside lower left", ncols=1, handlelength=2.6, labelspacing=0.35)
    return figure


def png(figure: Figure) -> bytes:
    """The figure as a PNG; the same figure gives the same bytes."""
    matplotlib, _ = _matplotlib()
    buffer = io.BytesIO()
    with matplotlib.rc_context(_STYLE):
        figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": None})
    return buffer.getvalue()


def need_matplotlib() -> None:
    """Fail early when figures could not be drawn.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    _matplotlib()


def _draw(axes: Axes, curve: Curve) -> None:
    x = [value + curve.shift for value in curve.x]
    line = {"color": curve.color, "label": curve.label or "_nolegend_"}
    if curve.low is not None and curve.high is not None:
        if curve.whiskers:
            below = [y - low for y, low in zip(curve.y, curve.low, strict=True)]
            above = [high - y for y, high in zip(curve.y, curve.high, strict=True)]
            axes.errorbar(x, curve.y, yerr=[below, above], fmt="none", ecolor=curve.color, elinewidth=1.3, capsize=3)
        else:
            axes.fill_between(x, curve.low, curve.high, color=curve.color, alpha=0.18, linewidth=0)
    if curve.published:
        marker = {"marker": curve.marker, "markersize": 4.5, "markerfacecolor": "white", "markeredgewidth": 1.2}
        axes.plot(x, curve.y, linestyle=(0, (4, 2)), linewidth=1.4, zorder=2.5, **marker, **line)  # type: ignore[arg-type]
    elif curve.thin:
        axes.plot(x, curve.y, linewidth=0.7, alpha=0.35, zorder=2, **line)  # type: ignore[arg-type]
    else:
        marker = {"marker": curve.marker, "markersize": 4.5} if curve.marked else {}
        axes.plot(x, curve.y, linewidth=1.9, zorder=3, **marker, **line)  # type: ignore[arg-type]


def _matplotlib() -> tuple[Any, Any]:
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("drawing figures", "study") from error

    def make(**options: Any) -> Figure:
        figure = Figure(**options)
        FigureCanvasAgg(figure)
        return figure

    return matplotlib, make
