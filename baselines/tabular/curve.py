"""Write the learning curve as a table and as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from llm_coop_envs.baselines.tabular.learner import TabularLearner
from llm_coop_envs.render.charts.layout import draw_panels
from llm_coop_envs.render.charts.panels import Curve, Panel
from llm_coop_envs.render.charts.style import BLUE, FAINT, picture
from llm_coop_envs.storage.files import write_whole
from llm_coop_envs.storage.parquet import write_rows

CURVE, PICTURE = "curve.parquet", "curve.png"

Row = dict[str, Any]


def write_curve(rows: Sequence[Row], learner: TabularLearner, reference: tuple[str, float], folder: Path) -> None:
    """Write the curve's points (`episode`, `reward`, the learner's measures) and a picture with the reference line.

    Raises:
        RunError: they cannot be written.
    """
    write_rows(folder / CURVE, rows)
    measure, label = learner.curve_measure
    episodes = [row["episode"] for row in rows]
    name, value = reference
    count = learner.learning.curve_seeds
    values = [row[measure] for row in rows]
    panel = Panel(
        title=learner.title.format(learner.learning.preset),
        x_label=f"episodes of learning ({count} {'episode' if count == 1 else 'episodes'} without exploration a point)",
        y_label=label,
        curves=[
            Curve(label=f"{name}: {round(value, 2):g}", x=[0, episodes[-1]], y=[value, value], color=FAINT),
            Curve(label="Q-learners", x=episodes, y=values, color=BLUE, marked=True),
        ],
        y_range=(min(0.0, *values), None),
    )
    write_whole(folder / PICTURE, picture(draw_panels([[panel]], size=(7.0, 3.8))))
