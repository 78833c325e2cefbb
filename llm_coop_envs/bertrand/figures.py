"""Figures of price competition."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.benchmarks.report.drawing import Drawing, need, shades
from llm_coop_envs.benchmarks.report.gather import Gathered, Played, Prices
from llm_coop_envs.benchmarks.report.published import PricePath, price_levels, price_paths
from llm_coop_envs.benchmarks.study.study import Condition
from llm_coop_envs.core.statistics import bootstrap_means
from llm_coop_envs.render.charts.curves import Curve, Level, Shade, draw_curves
from llm_coop_envs.render.charts.style import GREEN, PUBLISHED

#: Prices that were close for fewer rounds in a row are not shaded: firms that take turns meet by chance.
STRETCH = 20


def prices(gathered: Gathered) -> list[Drawing]:
    """Prices over rounds with the Nash and cartel price, one figure for each condition."""
    conditions = [one for one in need(gathered, "bertrand") if all(len(e.prices) for e in one.prices)]
    horizon = max(len(e.prices) for one in conditions for e in one.prices)
    span = price_span(conditions)
    color = shades(conditions)
    return [_prices(one, color[one.condition.name], horizon, span) for one in conditions]


def price_span(conditions: Sequence[Played]) -> tuple[float, float]:
    """Ends of a price axis that hold everything, so that figures can be compared."""
    shown = [value for one in conditions for e in one.prices for value in (e.prices.min(), e.prices.max())]
    shown += [value for one in conditions for e in one.prices for value in (e.nash, e.joint)]
    for one in conditions:
        shown += [p for path in published_for(one.condition, one.prices[0]) for series in path.prices for p in series]
    low, high = float(min(shown)), float(max(shown))
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def published_for(condition: Condition, episode: Prices) -> list[PricePath]:
    """The published paths with talk as in the condition, if the market has the published reference prices."""
    levels = price_levels()
    if abs(episode.nash - levels.nash) > 0.01 or abs(episode.joint - levels.cartel) > 0.01:
        return []
    return [path for path in price_paths() if path.talk == condition.settings["talk"]]


def levels_of(episode: Prices) -> list[Level]:
    """The reference prices as lines."""
    return [Level(value=episode.nash, label="Nash"), Level(value=episode.joint, label="cartel")]


def collusion(episodes: Sequence[Prices], horizon: int) -> list[Shade]:
    """The collusion band, as strong in each round as the share of episodes that hold prices together around it.

    Only stretches of at least `STRETCH` rounds count. An episode that ended because prices had been held together
    counts as holding them from there on.
    """
    held = [np.pad(e.together, (0, horizon - len(e.together)), mode="edge") for e in episodes]
    share = np.mean([lasting(one) for one in held], axis=0)
    found, at = [], 0
    for value, stretch in groupby(share.tolist()):
        length = len(list(stretch))
        if value > 0:
            edges = (min(episodes[0].nash, episodes[0].joint), max(episodes[0].nash, episodes[0].joint))
            found.append(Shade(x=(at + 0.5, at + length + 0.5), y=edges, share=value, color=GREEN))
        at += length
    return found


def lasting(held: NDArray[np.bool_]) -> NDArray[np.float64]:
    """1 in the rounds of stretches that are long enough, else 0."""
    found: list[float] = []
    for value, stretch in groupby(held.tolist()):
        length = len(list(stretch))
        found += [float(value and length >= STRETCH)] * length
    return np.array(found)


def aligned(episodes: Sequence[Prices], horizon: int) -> NDArray[np.float64]:
    """The mean prices of all episodes (episodes, rounds), shorter ones continued at their last price."""
    return np.stack([np.pad(e.prices.mean(axis=1), (0, horizon - len(e.prices)), mode="edge") for e in episodes])


def _prices(one: Played, color: str, horizon: int, span: tuple[float, float]) -> Drawing:
    matrix = aligned(one.prices, horizon)
    curves = [
        Curve(label="", x=range(1, len(e.prices) + 1), y=e.prices.mean(axis=1).tolist(), color=color, thin=True)
        for e in one.prices
    ]
    ended = [e for e in one.prices if not e.truncated]
    curves += [
        Curve(label="", x=[len(e.prices)], y=[float(e.prices[-1].mean())], color=color, marked=True) for e in ended
    ]
    mean, low, high = bootstrap_means(matrix)
    banded = len(matrix) > 1
    curves.append(
        Curve(
            label=f"here, {one.who}: mean of {one.condition.settings['firms']} firms (n = {len(matrix)})",
            x=range(1, horizon + 1),
            y=mean.tolist(),
            low=low.tolist() if banded else None,
            high=high.tolist() if banded else None,
            color=color,
        )
    )
    paths = published_for(one.condition, one.prices[0])
    for path in paths:
        what = "each firm" if len(path.prices) > 1 else "mean"
        for i, series in enumerate(path.prices):
            curves.append(
                Curve(
                    label="" if i else f"published: GPT-4, {path.title}, one run, {what}",
                    x=path.rounds,
                    y=series,
                    color=PUBLISHED,
                    published=True,
                )
            )
    figure = draw_curves(
        curves,
        title=one.title,
        x_label="round",
        y_label="price",
        levels=levels_of(one.prices[0]),
        shades=collusion(one.prices, horizon),
        y_range=span,
        size=(5.2, 3.6),
        legend_rows=2,
    )
    end = (
        " A dot marks where an episode ended because prices had been held together; it counts from there on with its "
        "last price."
        if ended
        else ""
    )
    source = "".join(f" Dashed: {path.source}." for path in paths)
    return Drawing(
        name=f"bertrand_prices_{one.condition.name}",
        caption=f"Prices in the condition '{one.condition.title}'. Thin lines are episodes (mean of the firms), the "
        "thick line and its band their mean and its 95 % bootstrap interval. Dotted: Nash and cartel price. Shaded: "
        f"prices close to each other between the two for {STRETCH} rounds or more in a row; the darker, the "
        "more episodes."
        f"{end}{source}",
        figure=figure,
    )
