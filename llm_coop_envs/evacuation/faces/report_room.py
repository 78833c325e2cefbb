"""Charts of the room: where everybody is at some moments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from llm_coop_envs.render.charts.sizes import fit_rows, panel_width
from llm_coop_envs.render.charts.style import (
    BLUE,
    FAINT,
    GREEN,
    INK,
    PURPLE,
    VERMILION,
    new_figure,
    note_plotted,
    set_titles,
    styled,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

UNDECIDED = "#9aa3af"
# The same as in pictures of scenes, where people have the other colours.
_EXITS = (GREEN, PURPLE, "#464646", "#aa8c00", BLUE, VERMILION)
_WALL, _DESK = "#4b5563", "#c8b79b"
# The exits' colours come with shapes, so that they can be told apart without colour.
_SHAPES = ("o", "s", "^", "D", "v", "P")
_INCHES = 2.9  # the width of one moment
_LEGEND_COLUMN = 1.1  # the width of a column of the legend, in inches


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """The room at one moment.

    Attributes:
        title: when.
        note: a line below the title, smaller.
        people: (row, column, exit) of everybody inside; the exit they head for, -1 if none yet.
        disabled: (row, column) of those who were hurt and stay.
        trails: for some of them, the (row, column) they passed, oldest first.
    """

    title: str
    people: Sequence[tuple[int, int, int]]
    note: str = ""
    disabled: Sequence[tuple[int, int]] = ()
    trails: Sequence[Sequence[tuple[int, int]]] = ()


def exit_color(exit_: int) -> str:
    """Return the colour of an exit and of the people who head for it."""
    return UNDECIDED if exit_ < 0 else _EXITS[exit_ % len(_EXITS)]


def draw_snapshots(room: Mapping[str, Any], rows: Sequence[Sequence[Snapshot]]) -> Figure:
    """Draw moments of a room side by side.

    Args:
        room: the room as an episode's `start` event holds it.
        rows: the moments, in rows.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    rows = fit_rows(rows)
    across = max(len(row) for row in rows)
    wide = panel_width(_INCHES, across)
    high = min(2.0, max(0.4, room["rows"] / room["cols"])) * wide
    with styled():
        figure = new_figure(wide * across, (high + 0.62) * len(rows) + 0.35)
        grid = figure.subplots(len(rows), across, squeeze=False)
        for index, row in enumerate(rows):
            for axes in grid[index]:
                axes.set_axis_off()
            for axes, snapshot in zip(grid[index], row, strict=False):
                _draw(axes, room, snapshot, wide)
        figure.legend(
            handles=_legend(room, rows),
            loc="outside lower left",
            ncols=min(len(room["exit_names"]) + 3, max(2, int(wide * across / _LEGEND_COLUMN))),
            handletextpad=0.3,
            columnspacing=1.4,
        )
    note_plotted(
        figure, (row for line in rows for snapshot in line for row in _plotted_rows(snapshot, room["exit_names"]))
    )
    return figure


def _plotted_rows(snapshot: Snapshot, exits: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the record of plotted people at one moment: columns as x, rows as y."""
    for row, col, exit_ in snapshot.people:
        heading = "undecided" if exit_ < 0 else f"heads for the {exits[exit_]} exit"
        yield {"panel": snapshot.title, "kind": "person", "series": heading, "x": col, "y": row}
    for row, col in snapshot.disabled:
        yield {"panel": snapshot.title, "kind": "person", "series": "hurt", "x": col, "y": row}


def _draw(axes: Axes, room: Mapping[str, Any], snapshot: Snapshot, wide: float) -> None:
    from matplotlib.patches import Rectangle

    # Size in points: what is drawn in a cell must not hide its neighbours.
    rows, cols, names = room["rows"], room["cols"], room["exit_names"]
    cell = 72 * wide * 0.94 / cols
    size = max(1.8, 0.82 * cell)
    for row, col, height, width in (
        (0, 0, 1, cols),
        (rows - 1, 0, 1, cols),
        (0, 0, rows, 1),
        (0, cols - 1, rows, 1),
    ):
        axes.add_patch(Rectangle((col - 0.5, row - 0.5), width, height, color=_WALL, linewidth=0))
    for name, row, col in room["exits"]:
        color = exit_color(names.index(name))
        axes.add_patch(Rectangle((col - 0.5, row - 0.5), 1, 1, facecolor="white", linewidth=0))
        axes.add_patch(Rectangle((col - 0.5, row - 0.5), 1, 1, facecolor=color, alpha=0.35, linewidth=0))
    for row, col in room["desks"]:
        axes.add_patch(Rectangle((col - 0.5, row - 0.5), 1, 1, color=_DESK, linewidth=0))
    for trail in snapshot.trails:
        axes.plot([col for _, col in trail], [row for row, _ in trail], color=FAINT, linewidth=0.5, alpha=0.5, zorder=2)
    for exit_ in sorted({person[2] for person in snapshot.people}):
        mine = [person for person in snapshot.people if person[2] == exit_]
        axes.scatter(
            [col for _, col, _ in mine],
            [row for row, _, _ in mine],
            s=size**2,
            color=exit_color(exit_),
            marker=_shape(exit_),
            linewidths=0,
            zorder=3,
        )
    axes.scatter(
        [col for _, col in snapshot.disabled],
        [row for row, _ in snapshot.disabled],
        s=size**2,
        color=INK,
        marker="x",
        linewidths=max(0.6, 0.18 * cell),
        zorder=3,
    )
    axes.set_xlim(-0.5, cols - 0.5)
    axes.set_ylim(rows - 0.5, -0.5)
    axes.set_aspect("equal")
    set_titles(axes, snapshot.title, snapshot.note)


def _shape(exit_: int) -> str:
    return "o" if exit_ < 0 else _SHAPES[exit_ % len(_SHAPES)]


def _legend(room: Mapping[str, Any], rows: Sequence[Sequence[Snapshot]]) -> list[object]:
    from matplotlib.lines import Line2D

    def mark(shape: str, color: str, text: str) -> Line2D:
        return Line2D([], [], linestyle="none", marker=shape, color=color, markersize=5.5, label=text)

    snapshots = [snapshot for row in rows for snapshot in row]
    names = room["exit_names"]
    handles = [mark(_shape(i), exit_color(i), f"heads for the {name} exit") for i, name in enumerate(names)]
    if any(person[2] < 0 for snapshot in snapshots for person in snapshot.people):
        handles.append(mark("o", UNDECIDED, "no exit chosen yet"))
    if any(snapshot.disabled for snapshot in snapshots):
        handles.append(mark("x", INK, "hurt, stays"))
    if room["desks"]:
        handles.append(mark("s", _DESK, "desk"))
    return list(handles)
