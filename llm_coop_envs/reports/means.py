"""Curves of means over episodes, with what shows how far the episodes lie apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.render.charts.panels import Curve
from llm_coop_envs.reports.played import PlayedCondition, unit_of
from llm_coop_envs.statistics.intervals import ANYTHING, FEW, Range, mean_intervals

Floats = NDArray[np.float64]


def mean_curves(
    label: str,
    x: Sequence[float],
    table: Floats,
    color: str,
    within: Range = ANYTHING,
    unit: str = "episode",
    **look: Any,
) -> list[Curve]:
    """The mean over episodes on top of what shows how far they lie apart.

    That is a band, for the interval of each point's mean, from `FEW` episodes on. Fewer are drawn one by one, as thin
    lines, or as points in place of whiskers: their intervals hang on single episodes, and a band would hide that.

    Args:
        label: the name of the mean's curve.
        x: (points,) the positions of the points.
        table: (episodes, points) without missing values.
        color: the colour.
        within: what the measure can be; the band ends there.
        unit: what a row is, an episode or a cluster of them.
        **look: more attributes of the mean's curve.
    """
    whiskers = look.get("whiskers", False)
    # A line of one point cannot be seen.
    style: dict[str, Any] = {"marked": whiskers or len(x) == 1, "whiskers": whiskers, "shift": look.get("shift", 0.0)}
    thin = [
        Curve(label="", series=f"{label}, {unit} {number}", x=x, y=row, color=color, thin=True, **style)
        for number, row in enumerate(table.tolist(), 1)
    ]
    return [*(thin if 1 < len(table) < FEW else ()), mean_curve(label, x, table, color, within, **look)]


def mean_curve(
    label: str, x: Sequence[float], table: Floats, color: str, within: Range = ANYTHING, **look: Any
) -> Curve:
    """The mean of `mean_curves` alone, for panels that draw the episodes themselves."""
    mean, low, high = (row.tolist() for row in mean_intervals(table, within))
    band = {"low": low, "high": high} if len(table) >= FEW else {}
    return Curve(label=label, x=x, y=mean, color=color, **band, **look)


def spread_text(arms: Sequence[PlayedCondition[Any]], band: str = "bands") -> str:
    """What the lines and bands of `mean_curves` are, in a sentence for a caption."""
    counts = [arm.units for arm in arms]
    bands = f"{band} their 95 % intervals" if any(n >= FEW for n in counts) else ""
    few = f" (where there are fewer than {FEW})" if bands else ""
    drawn = "thin lines" if band == "bands" else "small dots"
    what = "clusters" if all(arm.condition.cluster for arm in arms) else "episodes"
    thin = f"{drawn} the {what}{few}" if any(1 < n < FEW for n in counts) else ""
    means = f"{'Thick lines' if thin else 'Lines'} are means over {unit_of(arms)}"
    return f"{', '.join(filter(None, (means, thin, bands)))}."
