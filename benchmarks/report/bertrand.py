"""The report's section on Bertrand competition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.benchmarks.published.load import PricePath, price_levels, price_paths
from llm_coop_envs.benchmarks.report.parts import Cell, Picture, Section, Table, TableRow, colours, fixed, interval_cell
from llm_coop_envs.benchmarks.statistics import bootstrap_mean, bootstrap_means
from llm_coop_envs.benchmarks.study import Condition
from llm_coop_envs.benchmarks.tables import EpisodeTables
from llm_coop_envs.render.figures import Curve, Level, draw_curves, png

WINDOW = 20
_MARKS = (20, 100, 200, 300, 400, 600, 1200)


@dataclass(frozen=True, kw_only=True)
class _Path:
    """One episode's prices: the mean over firms in each round, the reference prices, and whether a clock ended it."""

    prices: NDArray[np.float64]
    nash: float
    joint: float
    truncated: bool


class BertrandSection:
    """Price paths with the Nash and cartel price, beside the published ones."""

    def __init__(self, conditions: Sequence[Condition]) -> None:
        self._conditions = conditions
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
        published = price_levels()
        section.intro = [
            "Firms name their prices at the same time, round after round. The Nash price is what self-interest gives in a "
            "single round, the cartel price what would be best for all firms together. The paper speaks of collusion when prices "
            f"stay close to each other between the two for {published.collusion_rounds} rounds."
        ]
        section.pictures = [self._picture(c) for c in self._conditions if self._paths[c.name]]
        if any(not path.truncated for paths in self._paths.values() for path in paths):
            section.picture_notes.append(
                "Episodes that ended because prices had held together are continued at their last price."
            )
        section.picture_notes.append(
            "Thin lines: single episodes, mean of the firms. Thick line and band: their mean with its 95 % bootstrap interval."
        )
        section.tables = [self._table()]

    def _picture(self, condition: Condition) -> Picture:
        paths = self._paths[condition.name]
        matrix = _aligned(paths)
        rounds = list(range(1, matrix.shape[1] + 1))
        colour = colours(self._conditions)[condition.name]
        curves = [Curve(label="", x=rounds, y=row.tolist(), color=colour, thin=True) for row in matrix]
        mean, low, high = bootstrap_means(matrix)
        banded = len(matrix) > 1
        curves.append(
            Curve(
                label=f"here, scripted: mean of {_firms(condition)} (n = {len(matrix)})",
                x=rounds,
                y=mean.tolist(),
                low=low.tolist() if banded else None,
                high=high.tolist() if banded else None,
                color=colour,
            )
        )
        for path in _alike(condition, paths[0]):
            for i, series in enumerate(path.prices):
                label = f"published: GPT-4, {path.title}" + (", one run, each firm" if len(path.prices) > 1 else ", one run, mean")
                curves.append(
                    Curve(label=label if i == 0 else "", x=path.rounds, y=series, color="#4b5563", published=True)
                )
        figure = draw_curves(
            curves,
            title=condition.title,
            x_label="round",
            y_label="price",
            levels=[Level(value=paths[0].nash, label="Nash price"), Level(value=paths[0].joint, label="cartel price")],
        )
        return Picture(
            name=f"bertrand_prices_{condition.name}",
            alt=f"Line chart: price by round in the condition '{condition.title}', with the Nash price {fixed(paths[0].nash, 2)} and "
            f"the cartel price {fixed(paths[0].joint, 2)} as dotted lines and the published prices dashed. Prices at chosen rounds are in the "
            "table below.",
            png=png(figure),
        )

    def _table(self) -> Table:
        aligned = {c.name: _aligned(self._paths[c.name]) for c in self._conditions if self._paths[c.name]}
        longest = max(matrix.shape[1] for matrix in aligned.values())
        marks = [mark for mark in _MARKS if mark <= max(longest, max(max(p.rounds) for p in price_paths()))]
        rows = []
        for condition in self._conditions:
            if condition.name not in aligned:
                continue
            matrix = aligned[condition.name]
            cells = []
            for mark in marks:
                inside = mark <= matrix.shape[1]
                values = matrix[:, max(0, mark - WINDOW) : mark].mean(axis=1).tolist() if inside else []
                cells.append(interval_cell(bootstrap_mean(values), 2))
            rows.append(TableRow(name=condition.title, below=f"scripted, n = {len(matrix)}", cells=cells))
        for path in price_paths():
            cells = [_published(path, mark) for mark in marks]
            rows.append(
                TableRow(name=f"GPT-4, {path.title}", below="published, one run", cells=cells, published=True)
            )
        levels = price_levels()
        sources = dict.fromkeys([f"Nash and cartel price: {levels.source}", *(path.source for path in price_paths())])
        return Table(
            title=f"Mean price in the {WINDOW} rounds up to a round",
            head=["", *(f"round {mark}" for mark in marks)],
            rows=rows,
            notes=[
                f"Here: mean over firms and the {WINDOW} rounds up to the one named, then over episodes, with 95 % bootstrap interval.",
                "Published: the price read off at that round, mean of the firms. " + ". ".join(sources) + ".",
            ],
        )


def _aligned(paths: Sequence[_Path]) -> NDArray[np.float64]:
    """All paths as one array (episodes, rounds), shorter ones continued at their last price."""
    longest = max(len(path.prices) for path in paths)
    return np.stack([np.pad(path.prices, (0, longest - len(path.prices)), mode="edge") for path in paths])


def _alike(condition: Condition, ours: _Path) -> list[PricePath]:
    """The published paths with talk as in the condition, if the market has the published reference prices."""
    levels = price_levels()
    if abs(ours.nash - levels.nash) > 0.01 or abs(ours.joint - levels.cartel) > 0.01:
        return []
    return [path for path in price_paths() if path.talk == condition.settings["talk"]]


def _firms(condition: Condition) -> str:
    return f"{condition.settings['firms']} firms"


def _published(path: PricePath, mark: int) -> Cell:
    if mark not in path.rounds:
        return Cell(text="–")
    at = path.rounds.index(mark)
    return Cell(text=fixed(float(np.mean([series[at] for series in path.prices])), 2))
