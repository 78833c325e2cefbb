"""Heat maps: a number for each pair of settings, as a coloured cell with the number in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from llm_coop_envs.render.charts.sizes import points
from llm_coop_envs.render.charts.style import INK, new_figure, note_plotted, set_titles, styled

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class HeatMap:
    """One map.

    Attributes:
        title: the title.
        x: the names of the columns.
        y: the names of the rows, from the bottom up.
        values: the numbers by row and column; `None` for an empty cell.
        note: a smaller line below the title.
    """

    title: str
    x: Sequence[str]
    y: Sequence[str]
    values: Sequence[Sequence[float | None]]
    note: str = ""


def draw_maps(maps: Sequence[HeatMap], *, x_label: str, y_label: str, bar: str, decimals: int = 2) -> Figure:
    """Draw maps side by side with one colour scale.

    Args:
        maps: the maps.
        x_label: the label of the columns.
        y_label: the label of the rows.
        bar: the label of the colour bar.
        decimals: how many decimals the numbers in the cells have.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    tables = [
        np.array([[np.nan if v is None else v for v in row] for row in heat_map.values], dtype=float)
        for heat_map in maps
    ]
    numbers = np.concatenate([table[~np.isnan(table)] for table in tables])
    low, high = float(numbers.min()), float(numbers.max())
    across = max(len(heat_map.x) for heat_map in maps)
    down = max(len(heat_map.y) for heat_map in maps)
    with styled():
        figure = new_figure(len(maps) * (1.1 + 0.62 * across) + 0.9, 1.5 + 0.45 * down)
        grid = figure.subplots(1, len(maps), squeeze=False)
        image = None
        for axes, heat_map, table in zip(grid[0], maps, tables, strict=True):
            image = axes.pcolormesh(
                np.arange(len(heat_map.x) + 1) - 0.5,
                np.arange(len(heat_map.y) + 1) - 0.5,
                np.ma.masked_invalid(table),
                cmap="cividis",
                vmin=low,
                vmax=high if high > low else low + 1.0,
            )
            for (row, column), value in np.ndenumerate(table):
                if not np.isnan(value):
                    colour = "white" if high > low and (value - low) / (high - low) < 0.55 else INK
                    text = f"{value:.{decimals}f}"
                    axes.text(column, row, text, ha="center", va="center", fontsize=points(8.5), color=colour)
            axes.grid(False)
            axes.set_xticks(range(len(heat_map.x)), heat_map.x)
            axes.set_yticks(range(len(heat_map.y)), heat_map.y)
            axes.set_xlabel(x_label)
            axes.set_ylabel(y_label)
            set_titles(axes, heat_map.title, heat_map.note)
        if image is not None:
            figure.colorbar(image, ax=grid.ravel().tolist(), label=bar, pad=0.02)
    note_plotted(
        figure,
        (
            {"panel": heat_map.title, "kind": "cell", "series": f"{x_label} {x}, {y_label} {y}", "value": value}
            for heat_map in maps
            for y, row in zip(heat_map.y, heat_map.values, strict=True)
            for x, value in zip(heat_map.x, row, strict=True)
        ),
    )
    return figure
