"""Figure of the conversation: the talk of each round as a point in a plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_coop_envs.render.charts.layout import draw_panels
from llm_coop_envs.render.charts.panels import Curve, Dots, Panel
from llm_coop_envs.render.charts.style import FAINT
from llm_coop_envs.reports.embedding import Embed, Plane, project, tf_idf_vectors
from llm_coop_envs.reports.played import PlayedCondition
from llm_coop_envs.reports.section import (
    Drawing,
    NotDrawn,
    ScenarioSection,
)

#: The most points of an episode; in longer episodes a point stands for several rounds.
MOST_POINTS = 40


@dataclass(frozen=True, kw_only=True)
class _Text:
    """The messages of one stretch of rounds of an episode, joined; `round` is the middle of the stretch."""

    condition: str
    round: float
    text: str


def draw_conversation(
    sections: Sequence[ScenarioSection[Any]], embed: Embed | None = None, method: str = "TF-IDF"
) -> list[Drawing]:
    """Draw the talk of each round in the plane of its two main directions, a figure for each scenario.

    Args:
        sections: the run's sections.
        embed: makes vectors of texts; TF-IDF by default.
        method: the name of that method in captions.

    Raises:
        NotDrawn: no scenario has three different texts.
    """
    drawings = []
    for section in sections:
        conditions = [arm for arm in section.conditions if any(arm.said)]
        rounds = [number for arm in conditions for messages in arm.said for number, _ in messages]
        width = _width(rounds) if rounds else 1
        texts = [text for arm in conditions for text in _texts(arm, min(rounds), width)]
        if len({text.text for text in texts}) >= 3:
            vectors = (embed or tf_idf_vectors)([text.text for text in texts])
            drawings.append(_drawing(section, conditions, texts, project(vectors), method, width))
    if not drawings:
        raise NotDrawn("nobody said three different things in the run")
    return drawings


def _texts(arm: PlayedCondition[Any], first: int, width: int) -> list[_Text]:
    """Join the messages of each episode in stretches of `width` rounds, counted from round `first`."""
    texts = []
    for messages in arm.said:
        stretches: dict[int, list[str]] = {}
        for number, text in messages:
            stretches.setdefault((number - first) // width, []).append(text)
        for stretch, parts in sorted(stretches.items()):
            middle = first + stretch * width + (width - 1) / 2
            texts.append(_Text(condition=arm.condition.name, round=middle, text="\n".join(parts)))
    return texts


def _width(rounds: Sequence[int]) -> int:
    """The number of rounds in a point."""
    return math.ceil((max(rounds) - min(rounds) + 1) / MOST_POINTS)


def _drawing(
    section: ScenarioSection[Any],
    conditions: Sequence[PlayedCondition[Any]],
    texts: Sequence[_Text],
    projection: Plane,
    method: str,
    width: int,
) -> Drawing:
    scale = (min(text.round for text in texts), max(text.round for text in texts))
    size = np.abs(projection.points).max(axis=0)
    spans = [(-1.08 * value, 1.08 * value) if value > 0 else (-1.0, 1.0) for value in size.tolist()]
    panels = []
    for arm in conditions:
        indices = [i for i, text in enumerate(texts) if text.condition == arm.condition.name]
        points = projection.points[indices]
        rounds = np.array([texts[i].round for i in indices])
        centres = np.array([points[rounds == value].mean(axis=0) for value in np.unique(rounds)])
        several = len(arm.said) > 1
        panels.append(
            Panel(
                title=arm.title,
                note=f"here, {arm.who} (n = {len(arm.seeds)})",
                x_label=f"direction 1 ({100 * projection.shares[0]:.0f} % of the variance)",
                y_label=f"direction 2 ({100 * projection.shares[1]:.0f} %)",
                curves=[
                    Curve(
                        label="mean of the episodes, round by round" if several else "round by round",
                        x=centres[:, 0].tolist(),
                        y=centres[:, 1].tolist(),
                        color=FAINT,
                        thin=True,
                    )
                ],
                dots=[
                    Dots(
                        label="",
                        x=points[:, 0].tolist(),
                        y=points[:, 1].tolist(),
                        values=rounds.tolist(),
                        scale=scale,
                        size=4.5,
                        alpha=0.8,
                    )
                ],
                x_range=spans[0],
                y_range=spans[1],
            )
        )
    across = min(3, len(panels))
    rows = [panels[i : i + across] for i in range(0, len(panels), across)]
    stretch = "a round" if width == 1 else f"{width} rounds"
    return Drawing(
        name=f"conversation_{section.scenario.name}",
        caption=f"What was said: each point is the talk of {stretch} of an episode, as a vector ({method}), projected "
        "on the two main directions of all points (singular value decomposition after centring). The same words lie "
        "in the same place in every panel.",
        alt=f"Scatter plots of what was said in {section.scenario.title}: one panel for each condition, one point for "
        f"the talk of {stretch}, coloured by round.",
        figure=draw_panels(rows, size=(3.9, 3.3), bar="round"),
    )
