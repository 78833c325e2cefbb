"""The style of all charts, their files, and the numbers in them: the same figure gives the same bytes.

Nothing here touches pyplot's global state.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet

from llm_coop_envs.render.charts.sizes import panel_width, points, wrap_to
from llm_coop_envs.util.extras import need

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito 2008, "Color Universal Design": distinguishable with every common colour-vision deficiency.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
# For more than six lines: the muted scheme of Tol 2021, "Colour Schemes", without hues of the palette.
MORE = ("#332288", "#882255", "#999933", "#44aa99", "#661100", "#8c8c8c")
INK, FAINT, GRID, PUBLISHED = "#22272e", "#6b7280", "#e3e6ea", "#4b5563"
DPI = 200
NOTE = "note"
"""By what the line below a panel's title is found again."""

#: The columns of the numbers in a figure, and their meanings.
PLOTTED = {
    "panel": "Title of the panel.",
    "kind": "How it is drawn, in words.",
    "series": "Name of the curve, line or group.",
    "x": "Where along the horizontal axis.",
    "y": "Where along the vertical axis.",
    "low": "Lower end of the interval or area.",
    "high": "Upper end of the interval or area.",
    "value": "What is shown as colour or strength.",
}

#: The formats of figure files; all but the first are vector graphics.
FORMATS = ("png", "pdf", "svg")

# No dates and no random identifiers in files.
_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "svg": {"Date": None, "Creator": None},
}

STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titley": 1.0,  # no ticks above, so no search for room for titles
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
    "text.parse_math": False,
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "pdf.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "llm-coop-envs",
}


def styled() -> AbstractContextManager[None]:
    """Use the style during a `with` block.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    need_matplotlib()
    import matplotlib

    # Matplotlib's stubs accept only dictionaries with the exact names of all settings.
    context: Any = matplotlib.rc_context
    sizes = {name: points(STYLE[name]) for name in ("font.size", "axes.titlesize", "legend.fontsize")}
    style: AbstractContextManager[None] = context({**STYLE, **sizes})
    return style


def new_figure(width: float, height: float) -> Figure:
    """An empty figure with a size in inches, or of a column's width, which is not shown on a screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(panel_width(width, 1), height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


#: Figures whose panels and texts stand where they will be drawn.
_PLACED: WeakSet[Figure] = WeakSet()


def place_parts(figure: Figure) -> None:
    """Compute where panels and texts stand, for all drawings that follow: it takes as long as a drawing."""
    engine, dpi = figure.get_layout_engine(), figure.dpi
    if engine is not None:
        figure.dpi = DPI
        engine.execute(figure)
        figure.dpi = dpi
    _PLACED.add(figure)


_PLOTTED: WeakKeyDictionary[Figure, list[dict[str, Any]]] = WeakKeyDictionary()


def note_plotted(figure: Figure, rows: Iterable[dict[str, Any]]) -> None:
    """Remember the numbers in a figure, as flat rows with the columns of `PLOTTED`."""
    _PLOTTED[figure] = list(rows)


def plotted(figure: Figure) -> list[dict[str, Any]]:
    """The numbers in a figure that `note_plotted` remembered, as flat rows; empty if there are none."""
    return _PLOTTED.get(figure, [])


def set_titles(axes: Axes, title: str, note: str) -> None:
    """Set a panel's title and, if `note` is not empty, a faint line below it."""
    width = 0.75 * _panel_inches(axes)[0]
    title, note = wrap_to(title, width, 11.5), wrap_to(note, width, 9.5)
    axes.set_title(title, pad=points(5 + 12 * (1 + note.count("\n"))) if note else None)
    if note:
        line = axes.annotate(
            note,
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 4),
            textcoords="offset points",
            fontsize=points(9.5),
            color=FAINT,
            gid=NOTE,
        )
        line.set_in_layout(False)  # a long one would make the panel narrow


def set_labels(axes: Axes, x_label: str, y_label: str) -> None:
    """Set the labels of both axes, in lines that a journal's column holds."""
    axes.set_xlabel(wrap_to(x_label, 0.7 * _panel_inches(axes)[0], 10))
    axes.set_ylabel(wrap_to(y_label, 0.6 * _panel_inches(axes)[1], 10))


def _panel_inches(axes: Axes) -> tuple[float, float]:
    """Width and height in inches of a panel with its titles and labels."""
    figure: Any = axes.get_figure()
    spec = axes.get_subplotspec()
    columns, rows = (1, 1) if spec is None else (spec.get_gridspec().ncols, spec.get_gridspec().nrows)
    return figure.get_figwidth() / columns, figure.get_figheight() / rows


def picture(figure: Figure, form: str = "png") -> bytes:
    """Draw a figure as the content of a file.

    Args:
        figure: the figure.
        form: one of `FORMATS`.
    """
    buffer = io.BytesIO()
    with styled(), any_letters():
        if figure not in _PLACED:
            place_parts(figure)
        engine = figure.get_layout_engine()
        figure.set_layout_engine(None)  # else it is placed, and all of it drawn, once more
        try:
            figure.savefig(buffer, format=form, dpi=DPI, metadata=_METADATA[form])
        finally:
            figure.set_layout_engine(engine)
    return buffer.getvalue()


@contextmanager
def any_letters() -> Iterator[None]:
    """Draw characters that the font lacks during a `with` block: as a box with their code, which is warning enough."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        yield


def need_matplotlib() -> None:
    """Check that figures can be drawn, before any work is done.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    need("matplotlib", "drawing figures", "study")


def draw_colour_bar(figure: Figure, grid: Any, label: str) -> None:
    """Draw the bar that explains the colours of dots with whole numbers, if any axes of a grid have such dots."""
    from matplotlib.ticker import MaxNLocator

    coloured = [artist for axes in grid.flat for artist in axes.collections if artist.get_array() is not None]
    if coloured:
        ticks = MaxNLocator(nbins=8, integer=True, min_n_ticks=1)
        axes = grid.ravel().tolist()
        figure.colorbar(coloured[0], ax=axes, label=label, shrink=0.8, pad=0.02, ticks=ticks, drawedges=False)
