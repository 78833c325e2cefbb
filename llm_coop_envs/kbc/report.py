"""The report's section on the Keynesian beauty contest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from llm_coop_envs.benchmarks.report.blocks import (
    DASH,
    NOTHING,
    Cell,
    Picture,
    Section,
    Table,
    TableRow,
    colours,
    fixed,
    interval_cell,
)
from llm_coop_envs.benchmarks.report.published import VarianceArm, variance_arms
from llm_coop_envs.benchmarks.run.tables import EpisodeTables
from llm_coop_envs.benchmarks.study.study import Condition
from llm_coop_envs.core.statistics import bootstrap_mean, bootstrap_means
from llm_coop_envs.render.charts.curves import Curve, draw_curves
from llm_coop_envs.render.charts.style import png

# The arms of the paper's main figure; the table holds all.
_DRAWN = ("gpt_4", "gpt_4_cooperate", "gpt_4_uncooperative")
_LOOKS = (("#374151", "o"), ("#6b7280", "s"), ("#9aa3af", "^"))


class KbcSection:
    """Variance of the numbers by k, beside the published arms."""

    def __init__(self, conditions: Sequence[Condition], who: Mapping[str, str]) -> None:
        self._conditions = conditions
        self._who = who
        self._variance: dict[str, list[dict[int, float]]] = {c.name: [] for c in conditions}

    def add(self, episode: EpisodeTables) -> None:
        """Take what is needed of an episode."""
        self._variance[episode.condition.name].append({row["round"]: row["variance"] for row in episode.rounds})

    def fill(self, section: Section) -> None:
        """Write the section."""
        arms = variance_arms()
        section.intro = [
            "Players name a number; the nearest to a target made from the mean (two thirds of it) wins. In a nested "
            "session they decide without talk at k = 0, then talk and decide again at k = 1, 2, 3. The smaller the "
            "variance of the numbers, the more the players agree."
        ]
        section.pictures = [self._picture(arms)]
        section.tables = [self._table(arms)]

    def _picture(self, arms: Sequence[VarianceArm]) -> Picture:
        curves = published_curves(arms) if any(as_published(c) for c in self._conditions) else []
        shades = colours(self._conditions)
        last = max(arms[0].k)
        for i, condition in enumerate(self._conditions):
            episodes = self._variance[condition.name]
            ks = _common(episodes)
            if not ks:
                continue
            last = max(last, *ks)
            mean, low, high = bootstrap_means(np.array([[e[k] for k in ks] for e in episodes]))
            banded = len(episodes) > 1
            curves.append(
                Curve(
                    label=f"here, {self._who[condition.name]}: {condition.title} (n = {len(episodes)})",
                    x=ks,
                    y=mean.tolist(),
                    low=low.tolist() if banded else None,
                    high=high.tolist() if banded else None,
                    color=shades[condition.name],
                    marked=True,
                    whiskers=True,
                    shift=0.04 * (i + 1),
                )
            )
        figure = draw_curves(
            curves,
            title="Variance of the numbers by k",
            x_label="k (talks so far)",
            y_label="variance of the players' numbers",
            x_ticks=range(last + 1) if last <= 10 else None,
            y_range=(0, None),
            size=(5.4, 3.8),
        )
        return Picture(
            name="kbc_variance",
            alt="Line chart: mean variance of the chosen numbers at each k, published GPT-4 arms dashed, the "
            "conditions of this run solid with bootstrap intervals. The numbers are in the table below.",
            png=png(figure),
        )

    def _table(self, arms: Sequence[VarianceArm]) -> Table:
        ks = sorted({k for c in self._conditions for k in _common(self._variance[c.name])} | set(arms[0].k))
        ks = ks[:12]
        rows = []
        for condition in self._conditions:
            episodes = self._variance[condition.name]
            cells = [interval_cell(bootstrap_mean([e.get(k) for e in episodes]), 0) for k in ks]
            rows.append(
                TableRow(name=condition.title, below=f"{self._who[condition.name]}, n = {len(episodes)}", cells=cells)
            )
        for arm in arms:
            known = {k: (m, b) for k, m, b in zip(arm.k, arm.mean, arm.band, strict=True)}
            cells = [_published(*known[k]) if k in known else NOTHING for k in ks]
            rows.append(TableRow(name=arm.title, below=f"published, {arm.runs} runs", cells=cells, published=True))
        return Table(
            title="Variance by k",
            head=["", *(f"k = {k}" for k in ks)],
            rows=rows,
            notes=[
                "Here: population variance, mean over episodes with 95 % bootstrap interval.",
                f"Published: 24 players, whole numbers from 0 to 100. {arms[0].source}.",
            ],
        )


def as_published(condition: Condition) -> bool:
    """Whether a condition's variances are on the published scale."""
    settings = condition.settings
    return (settings["low"], settings["high"], settings["session"]) == (0, 100, "nested")


def published_curves(arms: Sequence[VarianceArm]) -> list[Curve]:
    """The arms of the paper's main figure, dashed."""
    return [
        Curve(
            label=f"published: {arm.title} ({arm.runs} runs)",
            x=arm.k,
            y=arm.mean,
            color=colour,
            published=True,
            marker=marker,
        )
        for arm, (colour, marker) in zip((a for a in arms if a.arm in _DRAWN), _LOOKS, strict=True)
    ]


def _common(episodes: Sequence[dict[int, float]]) -> list[int]:
    """The rounds that every episode has."""
    if not episodes:
        return []
    return sorted(set.intersection(*(set(e) for e in episodes)))


def _published(mean: float, band: tuple[float, float] | None) -> Cell:
    below = "" if band is None else f"{fixed(band[0], 0)}{DASH}{fixed(band[1], 0)}"
    return Cell(text=fixed(mean, 0), below=below)
