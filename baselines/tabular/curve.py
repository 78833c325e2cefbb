"""The learning curve as a table and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llm_coop_envs.baselines.tabular.settings import KBCLearning, Learning
from llm_coop_envs.errors import MissingExtra, RunError

CURVE, PICTURE = "curve.parquet", "curve.png"

Row = dict[str, Any]

_BLUE, _GREY = "#2a6f97", "#6c757d"


def check_writers() -> None:
    """See that curves can be written, before hours are spent.

    Raises:
        MissingExtra: pyarrow or matplotlib is not installed.
    """
    try:
        import matplotlib
        import pyarrow
    except ImportError as error:
        raise MissingExtra("writing learning curves", "study") from error
    del matplotlib, pyarrow


def write_curve(rows: Sequence[Row], learning: Learning, seed: int, reference: tuple[str, float], folder: Path) -> None:
    """Write `curve.parquet` and `curve.png`.

    Args:
        rows: one per point: `episode`, `reward` and the learner's measures.
        learning: the settings.
        seed: the seed.
        reference: name and value of a line beside the curve.
        folder: where.

    Raises:
        RunError: they cannot be written.
    """
    try:
        write_rows(rows, folder / CURVE)
        picture = folder / (PICTURE + ".part")
        draw(rows, learning, seed, reference).savefig(picture, dpi=150, format="png")
        picture.replace(folder / PICTURE)
    except OSError as error:
        raise RunError(f"{folder}: the learning curve cannot be written ({error.strerror or error})") from error


def write_rows(rows: Sequence[Row], path: Path) -> None:
    """Write rows as Parquet, at once or not at all."""
    import pyarrow
    import pyarrow.parquet

    unfinished = path.with_name(path.name + ".part")
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(list(rows)), unfinished, compression="zstd")
    unfinished.replace(path)


def draw(rows: Sequence[Row], learning: Learning, seed: int, reference: tuple[str, float]) -> Any:
    """The curve as a matplotlib figure."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 4.2), layout="constrained")
    axes = figure.add_subplot()
    episodes = [row["episode"] for row in rows]
    if isinstance(learning, KBCLearning):
        shown, label, title = "number", "mean number in the last round", "Number contest, {}: independent Q-learners"
    else:
        shown, label = "mean_round", "mean round in which people were out"
        title = "Evacuation, {}: Q-learners with a shared table"
    axes.plot(episodes, [row[shown] for row in rows], color=_BLUE, marker="o", markersize=3, label="Q-learners")
    name, value = reference
    axes.axhline(value, color=_GREY, linestyle="--", linewidth=1, label=f"{name}: {round(value, 2):g}")
    axes.legend(frameon=False, loc="upper right")
    axes.set_ylabel(label)
    axes.set_title(title.format(learning.preset), loc="left", fontsize=11)
    count = learning.curve_seeds
    axes.set_xlabel(
        f"episodes of learning (seed {seed}; {count} {'episode' if count == 1 else 'episodes'} without "
        "exploration a point)"
    )
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
    axes.grid(axis="y", alpha=0.3)
    return figure
