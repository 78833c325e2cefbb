"""Arrows between names on a circle: who answers best to whom."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from llm_coop_envs.render.charts.sizes import points
from llm_coop_envs.render.charts.style import BLUE, FAINT, INK, new_figure, note_plotted, set_titles, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw_arrows(names: Sequence[str], arrows: Sequence[tuple[int, int, bool]], *, title: str) -> Figure:
    """Draw arrows between names; an arrow from a name to itself is a ring around it.

    Args:
        names: the names, drawn from the top clockwise.
        arrows: (from, to, whether it is sure), by number; the others are drawn thin.
        title: the title.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    angles = np.pi / 2 - 2 * np.pi * np.arange(len(names)) / len(names)
    x, y = np.cos(angles), np.sin(angles)
    size = 3.2 + 0.12 * len(names)
    with styled():
        figure = new_figure(size + 1.6, size)
        axes = figure.subplots()
        for begin, end, is_sure in arrows:
            color, width = (BLUE, 1.4) if is_sure else (FAINT, 0.7)
            if begin == end:
                axes.plot(x[begin], y[begin], "o", markersize=13, fillstyle="none", color=color, linewidth=width)
                continue
            axes.annotate(
                "",
                (x[end], y[end]),
                (x[begin], y[begin]),
                arrowprops={"arrowstyle": "->", "shrinkA": 7, "shrinkB": 7, "color": color, "linewidth": width},
            )
        axes.plot(x, y, "o", color=INK, markersize=5)
        for name, across, up in zip(names, x, y, strict=True):
            side = "left" if across > 0.05 else "right" if across < -0.05 else "center"
            axes.text(1.16 * across, 1.16 * up, name, ha=side, va="center", fontsize=points(8.5), color=INK)
        axes.set_xlim(-1.9, 1.9)
        axes.set_ylim(-1.4, 1.4)
        axes.set_axis_off()
        set_titles(axes, title, "")
    sentences = (
        {"panel": title, "kind": "arrow", "series": f"{names[a]} to {names[b]}", "value": s} for a, b, s in arrows
    )
    note_plotted(figure, sentences)
    return figure
