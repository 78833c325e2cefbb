"""Figures of beauty contests."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from llm_coop_envs.benchmarks.report.drawing import Drawing, NotDrawn, need, shades
from llm_coop_envs.benchmarks.report.gather import Gathered, Guesses, Played
from llm_coop_envs.benchmarks.report.published import variance_arms
from llm_coop_envs.core.statistics import bootstrap_means
from llm_coop_envs.kbc.reference import comparable, histogram, nyt_density, smoothed
from llm_coop_envs.kbc.report import as_published, published_curves
from llm_coop_envs.kbc.settings import KBCSettings
from llm_coop_envs.render.charts.curves import Curve, Dots, Panel, draw_curves, draw_panels
from llm_coop_envs.render.charts.style import FAINT, INK

MOST_NUMBERS = 1000
_MOST_COLUMNS = 4
_HUMANS = (
    "readers of The New York Times, 2015 (61,140 answers; Leonhardt and Quealy), digitised "
    "from figure 5 of Wu et al. 2024"
)


def variance(gathered: Gathered) -> list[Drawing]:
    """The variance of the numbers by k."""
    conditions = need(gathered, "kbc")
    published = any(as_published(one.condition) for one in conditions)
    curves = published_curves(variance_arms()) if published else []
    color = shades(conditions)
    last = 0
    for i, one in enumerate(conditions):
        ks = shared_rounds(one.guesses)
        if not ks:
            continue
        last = max(last, *ks)
        curves.append(variance_curve(one, color[one.condition.name], 0.04 * (i + 1)))
    if last == 0 and not published:
        raise NotDrawn("the beauty contests of the run have one decision each; a variance by k needs several")
    source = f" Dashed: published. {variance_arms()[0].source}." if published else ""
    return [
        Drawing(
            name="kbc_variance",
            caption="Population variance of the players' numbers at each decision k. Points are means over episodes, "
            f"whiskers their 95 % bootstrap intervals.{source}",
            figure=draw_curves(
                curves,
                title="Variance of the numbers by k",
                x_label="k (talks so far)",
                y_label="variance of the players' numbers",
                x_ticks=range(max(last, 3 if published else 0) + 1) if last <= 10 else None,
                y_range=(0, None),
                size=(5.4, 3.8),
            ),
        )
    ]


def distribution(gathered: Gathered) -> list[Drawing]:
    """The numbers of the first decision as a distribution, beside those of people."""
    conditions = need(gathered, "kbc")
    spans = {(one.condition.settings["low"], one.condition.settings["high"]) for one in conditions}
    low, high = max(spans, key=lambda span: (sum(_span(one) == span for one in conditions), span))
    shown = [one for one in conditions if _span(one) == (low, high)]
    bins = math.ceil(high - low) + 1
    if bins > MOST_NUMBERS:
        raise NotDrawn(f"the numbers go from {low:g} to {high:g}; distributions are drawn for up to {MOST_NUMBERS}")
    color = shades(conditions)
    alike = any(comparable(KBCSettings.build(**one.condition.settings)) for one in shown)
    x = np.arange(bins) + low
    curves = []
    if alike:
        human = (100 * nyt_density()).tolist()
        curves.append(
            Curve(
                label="published: people (New York Times, 61,140 answers)",
                x=x.tolist(),
                y=human,
                low=[0.0] * bins,
                high=human,
                color=FAINT,
            )
        )
    for one in shown:
        numbers = np.concatenate([e.choices[0] for e in one.guesses])
        curves.append(
            Curve(
                label=f"here, {one.who}: {one.title} ({len(numbers)} numbers)",
                x=x.tolist(),
                y=(100 * smoothed(histogram(numbers - low, bins))).tolist(),
                color=color[one.condition.name],
            )
        )
    left = [one.condition.title for one in conditions if one not in shown]
    other = f" Not shown, because its numbers have another range: {', '.join(left)}." if left else ""
    source = f" Grey: {_HUMANS}." if alike else ""
    return [
        Drawing(
            name="kbc_distribution",
            caption="Numbers of the first decision, all players of all episodes, as shares of the whole numbers, "
            f"smoothed by a Gaussian kernel of bandwidth 1 as the published curve is.{source}{other}",
            figure=draw_curves(
                curves,
                title="Numbers named in the first decision",
                x_label="number",
                y_label="share of the players, %",
                x_range=(low - 1, high + 1),
                y_range=(0, None),
                size=(5.6, 3.4),
            ),
        )
    ]


def choices(gathered: Gathered) -> list[Drawing]:
    """Every player's number in every run, with the target; conditions in rows, decisions in columns."""
    conditions = need(gathered, "kbc")
    color = shades(conditions)
    rows = [[_choices(one, k, color[one.condition.name]) for k in _columns(one)] for one in conditions]
    return [
        Drawing(
            name="kbc_choices",
            caption="Each dot is one player's number, each column of dots one run, in the order of the seeds "
            f"({'; '.join(_seeds(one) for one in conditions)}). Bars: the target, made from the mean of the numbers.",
            figure=draw_panels(rows, size=(3.0, 2.6), legend_columns=2),
        )
    ]


def variance_curve(one: Played, color: str, shift: float = 0.0) -> Curve:
    """The variance by k of a condition, mean and interval."""
    ks = shared_rounds(one.guesses)
    table = np.array([[np.var(e.choices[e.rounds.index(k)]) for k in ks] for e in one.guesses])
    mean, low, high = bootstrap_means(table)
    banded = len(table) > 1
    return Curve(
        label=one.name,
        x=ks,
        y=mean.tolist(),
        low=low.tolist() if banded else None,
        high=high.tolist() if banded else None,
        color=color,
        marked=True,
        whiskers=True,
        shift=shift,
    )


def shared_rounds(episodes: Sequence[Guesses]) -> list[int]:
    """The decisions that every episode has."""
    return sorted(set.intersection(*(set(e.rounds) for e in episodes)))


def _span(one: Played) -> tuple[float, float]:
    return one.condition.settings["low"], one.condition.settings["high"]


def _columns(one: Played) -> list[int]:
    """The decisions that are shown: all, or the first ones and the last."""
    ks = shared_rounds(one.guesses)
    return ks if len(ks) <= _MOST_COLUMNS else [*ks[: _MOST_COLUMNS - 1], ks[-1]]


def _choices(one: Played, k: int, color: str) -> Panel:
    x: list[float] = []
    y: list[float] = []
    targets = []
    for run, episode in enumerate(one.guesses, 1):
        at = episode.rounds.index(k)
        targets.append(episode.targets[at])
        for value in np.unique(episode.choices[at]).tolist():
            count = int((episode.choices[at] == value).sum())
            # Equal numbers stand side by side; a column is 0.8 wide at most.
            step = min(0.12, 0.8 / max(count, 1))
            x += [run + step * (i - (count - 1) / 2) for i in range(count)]
            y += [value] * count
    runs = len(one.guesses)
    low, high = _span(one)
    margin = 0.03 * (high - low)
    nested = one.condition.settings["session"] == "nested"
    return Panel(
        title=f"{one.title}, {'k' if nested else 'decision'} = {k}",
        x_label="run",
        y_label="number",
        dots=[
            Dots(label=f"here, {one.who}: {one.title}", x=x, y=y, color=color, size=2.6, alpha=0.6),
            Dots(label="target", x=list(range(1, runs + 1)), y=targets, color=INK, marker="_", size=8.0),
        ],
        x_ticks=range(1, runs + 1) if runs <= 8 else range(1, runs + 1, math.ceil(runs / 8)),
        x_range=(0.3, runs + 0.7),
        y_range=(low - margin, high + margin),
    )


def _seeds(one: Played) -> str:
    shown = ", ".join(map(str, one.seeds[:5]))
    return f"{one.condition.title}: {shown}{', ...' if len(one.seeds) > 5 else ''}"
