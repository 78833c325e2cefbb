"""One style for all charts, from a chart to a file, and to the numbers in it: the same figure gives the same bytes.

Nothing here touches pyplot's global state.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from llm_coop_envs.util.extras import need

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito 2008, "Color Universal Design": distinguishable with every common colour-vision deficiency.
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
# For more lines than these six: the muted scheme of Tol 2021, "Colour Schemes", without hues that are there already.
MORE = ("#332288", "#882255", "#999933", "#44aa99", "#661100", "#8c8c8c")
INK, FAINT, GRID, PUBLISHED = "#22272e", "#6b7280", "#e3e6ea", "#4b5563"
DPI = 200

#: The columns of the numbers in a figure, with what they mean.
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
    """The style, for as long as a `with` block lasts.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    need_matplotlib()
    import matplotlib

    # Its stubs know the names one by one; a dictionary of any names is not among them.
    context: Any = matplotlib.rc_context
    style: AbstractContextManager[None] = context(STYLE)
    return style


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, its size in inches; drawn to no screen."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


_PLOTTED: WeakKeyDictionary[Figure, list[dict[str, Any]]] = WeakKeyDictionary()


def note_plotted(figure: Figure, rows: Iterable[dict[str, Any]]) -> None:
    """Remember what is drawn in a figure, as flat rows with columns of `PLOTTED`."""
    _PLOTTED[figure] = list(rows)


def plotted(figure: Figure) -> list[dict[str, Any]]:
    """The numbers that are drawn in a figure, as flat rows; nothing if whoever drew it did not say."""
    return _PLOTTED.get(figure, [])


def titled(axes: Axes, title: str, note: str) -> None:
    """Give a panel its title and, if there is one, a faint line below it."""
    axes.set_title(title, pad=17 if note else None)
    if note:
        axes.annotate(
            note,
            (0, 1),
            xycoords="axes fraction",
            xytext=(0, 4),
            textcoords="offset points",
            fontsize=9.5,
            color=FAINT,
        )


def picture(figure: Figure, form: str = "png") -> bytes:
    """The figure as the content of a file.

    Args:
        figure: the figure.
        form: one of `FORMATS`.
    """
    buffer = io.BytesIO()
    with styled(), warnings.catch_warnings():
        # A character that the font lacks is drawn as a box with its code; that is enough of a warning.
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure.savefig(buffer, format=form, dpi=DPI, metadata=_METADATA[form])
    return buffer.getvalue()


def need_matplotlib() -> None:
    """Fail early when figures could not be drawn.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    need("matplotlib", "drawing figures", "study")
