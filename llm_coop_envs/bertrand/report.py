"""The report's section on Bertrand competition."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.benchmarks.report.blocks import (
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
from llm_coop_envs.benchmarks.report.published import PricePath, price_levels, price_paths
from llm_coop_envs.benchmarks.run.tables import EpisodeTables
from llm_coop_envs.benchmarks.study.study import Condition
from llm_coop_envs.core.statistics import bootstrap_mean, bootstrap_means
from llm_coop_envs.render.charts.curves import Curve, Level, draw_curves
from llm_coop_envs.render.charts.style import png

WINDOW = 20
_MARKS = (20, 100, 200, 300, 400, 600, 1200)
_PUBLISHED = "#4b5563"


@dataclass(frozen=True, kw_only=True)
class _Path:
    """One episode's prices: the mean over firms in each round, the reference prices, and whether a clock ended it."""

    prices: NDArray[np.float64]
    nash: float
    joint: float
    truncated: bool


class BertrandSection:
    """Price paths with the Nash and cartel price, beside the published ones."""

    def __init__(self, conditions: Sequence[Condition], who: Mapping[str, str]) -> None:
        self._conditions = conditions
        self._who = who
        self._paths: dict[str, list[_Path]] = {c.name: [] for c in conditions}

    def add(self, episode: EpisodeTables) -> None:
        """Take what is needed of an episode."""
        start, end = episode.events[0], episode.events[-1]
        prices = [np.mean(event["prices"]) for event in episode.events if event["type"] == "round"]
        path = _Path(
            prices=np.array(prices),
            nash=float(np.mean(start["nash"])),
            joint=float(np.mean(start["joint"])),
            truncated=end["truncated"],
        )
        self._paths[episode.condition.name].append(path)

    def fill(self, section: Section) -> None:
        """Write the section."""
        rounds = price_levels().collusion_rounds
        section.intro = [
            "Firms name their prices at the same time, round after round. The Nash price is what self-interest gives "
            "in a single round, the cartel price what would be best for all firms together. The paper speaks of "
            f"collusion when prices stay close to each other between the two for {rounds} rounds."
        ]
        played = [c for c in self._conditions if self._paths[c.name]]
        everything = [path for c in played for path in self._paths[c.name]]
        horizon = max(len(path.prices) for path in everything)
        span = _span(played, everything)
        section.pictures = [self._picture(c, horizon, span) for c in played]
        section.picture_notes = [
            "Thin lines are single episodes (mean of the firms), the thick line and the band their mean and its 95 % "
            "bootstrap interval."
        ]
        if any(not path.truncated for path in everything):
            section.picture_notes.append(
                "A dot marks where an episode ended because prices had been held together long enough; in means it "
                "counts from there on with its last price."
            )
        section.tables = [self._table(played, horizon)]

    def _picture(self, condition: Condition, horizon: int, span: tuple[float, float]) -> Picture:
        paths = self._paths[condition.name]
        matrix = _aligned(paths, horizon)
        colour = colours(self._conditions)[condition.name]
        curves = [_thin(path, colour) for path in paths]
        curves += [
            Curve(label="", x=[len(path.prices)], y=[path.prices[-1]], color=colour, marked=True)
            for path in paths
            if not path.truncated
        ]
        mean, low, high = bootstrap_means(matrix)
        banded, who = len(matrix) > 1, self._who[condition.name]
        curves.append(
            Curve(
                label=f"here, {who}: mean of {condition.settings['firms']} firms (n = {len(matrix)})",
                x=range(1, horizon + 1),
                y=mean.tolist(),
                low=low.tolist() if banded else None,
                high=high.tolist() if banded else None,
                color=colour,
            )
        )
        for path in published_paths(condition, paths[0]):
            what = "each firm" if len(path.prices) > 1 else "mean"
            label = f"published: GPT-4, {path.title}, one run, {what}"
            for i, series in enumerate(path.prices):
                curves.append(
                    Curve(label="" if i else label, x=path.rounds, y=series, color=_PUBLISHED, published=True)
                )
        nash, joint = paths[0].nash, paths[0].joint
        figure = draw_curves(
            curves,
            title=condition.title,
            x_label="round",
            y_label="price",
            y_range=span,
            levels=[Level(value=nash, label="Nash"), Level(value=joint, label="cartel")],
        )
        return Picture(
            name=f"bertrand_prices_{condition.name}",
            alt=f"Line chart: price by round in the condition '{condition.title}', with the Nash price "
            f"{fixed(nash, 2)} and the cartel price {fixed(joint, 2)} as dotted lines and published prices dashed. "
            "Prices at chosen rounds are in the table below.",
            png=png(figure),
        )

    def _table(self, played: Sequence[Condition], horizon: int) -> Table:
        paths = price_paths()
        last = max(horizon, *(path.rounds[-1] for path in paths))
        marks = [mark for mark in _MARKS if mark <= last]
        rows = []
        for condition in played:
            matrix = _aligned(self._paths[condition.name], horizon)
            cells = [
                interval_cell(bootstrap_mean(matrix[:, max(0, mark - WINDOW) : mark].mean(axis=1).tolist()), 2)
                if mark <= horizon
                else NOTHING
                for mark in marks
            ]
            rows.append(
                TableRow(name=condition.title, below=f"{self._who[condition.name]}, n = {len(matrix)}", cells=cells)
            )
        for path in paths:
            cells = [_published(path, mark) for mark in marks]
            rows.append(TableRow(name=f"GPT-4, {path.title}", below="published, one run", cells=cells, published=True))
        levels = price_levels()
        return Table(
            title=f"Mean price in the {WINDOW} rounds up to a round",
            head=["", *(f"round {mark}" for mark in marks)],
            rows=rows,
            notes=[
                f"Here: mean over the firms and the {WINDOW} rounds up to the one named, then over episodes, with 95 % "
                "bootstrap interval.",
                "Published: the price at that round, mean of the firms. " + " ".join(f"{p.source}." for p in paths),
                f"Published Nash and cartel price: {levels.nash:g} and {levels.cartel:g} ({levels.source}).",
            ],
        )


def _span(played: Sequence[Condition], everything: Sequence[_Path]) -> tuple[float, float]:
    """Ends of the price axis that hold every picture, so that the pictures can be compared."""
    shown = [price for path in everything for price in (*path.prices, path.nash, path.joint)]
    for condition in played:
        for published in published_paths(condition, everything[0]):
            shown += [price for series in published.prices for price in series]
    low, high = float(min(shown)), float(max(shown))
    margin = 0.05 * (high - low) or 1.0
    return low - margin, high + margin


def _thin(path: _Path, colour: str) -> Curve:
    return Curve(label="", x=range(1, len(path.prices) + 1), y=path.prices.tolist(), color=colour, thin=True)


def _aligned(paths: Sequence[_Path], horizon: int) -> NDArray[np.float64]:
    """All paths as one array (episodes, rounds), shorter ones continued at their last price."""
    return np.stack([np.pad(path.prices, (0, horizon - len(path.prices)), mode="edge") for path in paths])


def published_paths(condition: Condition, ours: _Path) -> list[PricePath]:
    """The published paths with talk as in the condition, if the market has the published reference prices."""
    levels = price_levels()
    if abs(ours.nash - levels.nash) > 0.01 or abs(ours.joint - levels.cartel) > 0.01:
        return []
    return [path for path in price_paths() if path.talk == condition.settings["talk"]]


def _published(path: PricePath, mark: int) -> Cell:
    if mark not in path.rounds:
        return NOTHING
    at = path.rounds.index(mark)
    return Cell(text=fixed(float(np.mean([series[at] for series in path.prices])), 2))
