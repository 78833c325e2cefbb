"""The conversation by round, as points in a plane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from llm_coop_envs.benchmarks.report.drawing import Drawing, NotDrawn
from llm_coop_envs.benchmarks.report.embedding import Embed, Plane, plane, tf_idf
from llm_coop_envs.benchmarks.report.gather import Gathered, Played
from llm_coop_envs.render.charts.curves import Curve, Dots, Panel, draw_panels
from llm_coop_envs.render.charts.style import FAINT

#: At most so many points for an episode; longer ones have several rounds in a point.
MOST_POINTS = 40


@dataclass(frozen=True, kw_only=True)
class _Text:
    """What was said in one stretch of rounds of an episode."""

    condition: str
    round: float
    text: str


def conversation(gathered: Gathered, embed: Embed | None = None, method: str = "TF-IDF") -> list[Drawing]:
    """What was said in each round, in the plane of its two main directions.

    Args:
        gathered: the run.
        embed: makes vectors of texts; TF-IDF by default.
        method: what the caption calls it.
    """
    found = []
    for scenario in ("kbc", "bertrand", "evacuation"):
        conditions = [one for one in gathered.of(scenario) if any(talk.said for talk in one.talks)]
        texts = _texts(conditions)
        if len({text.text for text in texts}) < 3:
            continue
        vectors = (embed or tf_idf)([text.text for text in texts])
        found.append(_drawing(scenario, conditions, texts, plane(vectors), method))
    if not found:
        raise NotDrawn("nobody said three different things in the run")
    return found


def _texts(conditions: Sequence[Played]) -> list[_Text]:
    rounds = [number for one in conditions for talk in one.talks for number, _ in talk.said]
    if not rounds:
        return []
    width = _width(rounds)
    texts = []
    for one in conditions:
        for talk in one.talks:
            stretches: dict[int, list[str]] = {}
            for number, text in talk.said:
                stretches.setdefault((number - min(rounds)) // width, []).append(text)
            for stretch, said in sorted(stretches.items()):
                middle = min(rounds) + stretch * width + (width - 1) / 2
                texts.append(_Text(condition=one.condition.name, round=middle, text="\n".join(said)))
    return texts


def _width(rounds: Sequence[int]) -> int:
    """How many rounds a point stands for."""
    return math.ceil((max(rounds) - min(rounds) + 1) / MOST_POINTS)


def _drawing(scenario: str, conditions: Sequence[Played], texts: Sequence[_Text], found: Plane, method: str) -> Drawing:
    scale = (min(text.round for text in texts), max(text.round for text in texts))
    size = np.abs(found.points).max(axis=0)
    spans = [(-1.08 * value, 1.08 * value) if value > 0 else (-1.0, 1.0) for value in size.tolist()]
    panels = []
    for one in conditions:
        mine = [i for i, text in enumerate(texts) if text.condition == one.condition.name]
        points = found.points[mine]
        rounds = np.array([texts[i].round for i in mine])
        centres = np.array([points[rounds == value].mean(axis=0) for value in np.unique(rounds)])
        several = len(one.talks) > 1
        panels.append(
            Panel(
                title=one.title,
                note=f"here, {one.who} (n = {len(one.seeds)})",
                x_label=f"direction 1 ({100 * found.shares[0]:.0f} % of the variance)",
                y_label=f"direction 2 ({100 * found.shares[1]:.0f} %)",
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
    width = _width([text_round for one in conditions for talk in one.talks for text_round, _ in talk.said])
    stretch = "a round" if width == 1 else f"{width} rounds"
    return Drawing(
        name=f"conversation_{scenario}",
        caption=f"What was said: each point is the talk of {stretch} of an episode, as a vector ({method}), projected "
        "on the two main directions of all points (singular value decomposition after centring). The same words lie "
        "in the same place in every panel.",
        figure=draw_panels(rows, size=(3.9, 3.3), bar="round"),
    )
