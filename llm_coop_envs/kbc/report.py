"""The report's section on the Keynesian beauty contest, and its figures.

Published values are those of `published.json`: the variance of the numbers by k in six arms.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_coop_envs.benchmarks.report.page_parts import (
    DASH,
    NOTHING,
    Cell,
    ReportTable,
    TableRow,
    fixed,
    interval_cell,
)
from llm_coop_envs.benchmarks.report.section import (
    WU_2024,
    Drawing,
    FigureKind,
    Floats,
    NotDrawn,
    PlayedCondition,
    ScenarioSection,
    mean_curve,
)
from llm_coop_envs.benchmarks.run.tables import EpisodeTables
from llm_coop_envs.benchmarks.study.study import Condition
from llm_coop_envs.core.scenario import Scenario
from llm_coop_envs.core.statistics import bootstrap_mean
from llm_coop_envs.kbc.reference import comparable, histogram, nyt_density, smoothed
from llm_coop_envs.kbc.settings import KBCSettings
from llm_coop_envs.render.charts.curves import Curve, Dots, Panel, draw_panels
from llm_coop_envs.render.charts.style import FAINT, INK, PALETTE, PUBLISHED

MOST_NUMBERS = 1000
_MOST_COLUMNS = 4
_MOST_DECISIONS = 12
# The arms of the paper's main figure; the table holds all.
_LOOKS = {
    "gpt_4": ("#374151", "o"),
    "gpt_4_cooperate": ("#6b7280", "s"),
    "gpt_4_uncooperative": ("#9aa3af", "^"),
}
#: GPT-4 arms of the published temperature figure, by temperature.
_ARM_AT = {0.0: "gpt_4_t_0", 0.7: "gpt_4", 1.2: "gpt_4_t_1_2"}
_HUMANS = (
    "readers of The New York Times, 2015 (61,140 answers; Leonhardt and Quealy), digitised "
    "from figure 5 of Wu et al. 2024"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Guesses:
    """A beauty contest.

    Attributes:
        rounds: the decisions' numbers (k in nested sessions).
        choices: (players,) numbers at each decision.
        targets: the target at each decision.
    """

    rounds: tuple[int, ...]
    choices: tuple[Floats, ...]
    targets: tuple[float, ...]

    @property
    def variances(self) -> dict[int, float]:
        """The population variance of the numbers at each decision."""
        return {k: float(np.var(numbers)) for k, numbers in zip(self.rounds, self.choices, strict=True)}


class KbcSection(ScenarioSection[Guesses]):
    """Variance of the numbers by k beside the published arms, and the numbers themselves."""

    papers = (WU_2024,)
    episode_caption = "Each dot is a player's number at a decision; bars: the targets."
    overview_caption = "Variance of the numbers by k"

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        # Arms with mean and band by k, runs, and the source.
        self.published: Mapping[str, Any] = scenario.published["variance"]
        self.overview_source = f"published. {self.published['source']}"

    def read(self, episode: EpisodeTables) -> Guesses:
        """All numbers and targets."""
        rounds = [event for event in episode.events if event["type"] == "round"]
        return Guesses(
            rounds=tuple(event["round"] for event in rounds),
            choices=tuple(np.array(event["choices"], dtype=np.float64) for event in rounds),
            targets=tuple(float(event["target"]) for event in rounds),
        )

    def intro(self) -> list[str]:
        """What is played."""
        return [
            "Players name a number; the nearest to a target made from the mean (two thirds of it) wins. In a nested "
            "session they decide without talk at k = 0, then talk and decide again at k = 1, 2, 3. The smaller the "
            "variance of the numbers, the more the players agree."
        ]

    def figures(self) -> list[FigureKind]:
        """Variances, first numbers, and all numbers."""
        return [
            FigureKind(name="kbc-variance", about="variance of the numbers by k, with bands", draw=self.variance),
            FigureKind(
                name="kbc-distribution",
                about="numbers of the first decision beside those of people",
                draw=self.distribution,
            ),
            FigureKind(name="kbc-choices", about="every number in every run, with the targets", draw=self.choices),
        ]

    def tables(self) -> list[ReportTable]:
        """One table: the variance by k."""
        published = self.published
        ks = sorted({k for one in self.conditions for k in shared_rounds(one)} | set(published["k"]))
        ks = ks[:_MOST_DECISIONS]
        rows = []
        for one in self.conditions:
            variances = [episode.variances for episode in one.episodes]
            cells = [interval_cell(bootstrap_mean([found.get(k) for found in variances]), 0) for k in ks]
            rows.append(TableRow(name=one.condition.title, below=one.below, cells=cells))
        for arm in published["arms"]:
            known = dict(zip(published["k"], map(_published_cell, arm["mean"], arm["band"]), strict=True))
            cells = [known.get(k, NOTHING) for k in ks]
            below = f"published, {published['runs']} runs"
            rows.append(TableRow(name=arm["title"], below=below, cells=cells, published=True))
        return [
            ReportTable(
                title="Variance by k",
                head=["", *(f"k = {k}" for k in ks)],
                rows=rows,
                notes=[
                    "Here: population variance, mean over episodes with 95 % bootstrap interval.",
                    f"Published: 24 players, whole numbers from 0 to 100. {published['source']}.",
                ],
            )
        ]

    def variance(self) -> list[Drawing]:
        """The variance of the numbers by k."""
        published = self.published if any(as_published(one.condition) for one in self.conditions) else None
        curves = [] if published is None else [self._arm(name, *look) for name, look in _LOOKS.items()]
        found = [
            _variance_curve(one, 0.04 * i) for i, one in enumerate(self.conditions, 1) if len(shared_rounds(one)) > 0
        ]
        last = max((k for one in self.conditions for k in shared_rounds(one)), default=0)
        if last == 0 and published is None:
            raise NotDrawn("the beauty contests of the run have one decision each; a variance by k needs several")
        ticks = range(max(last, 3 if published else 0) + 1) if last <= 10 else None
        panel = Panel(
            title="Variance of the numbers by k",
            x_label="k (talks so far)",
            y_label="variance of the players' numbers",
            curves=[*curves, *found],
            x_ticks=ticks,
            y_range=(0, None),
        )
        source = f" Dashed: published. {published['source']}." if published else ""
        return [
            Drawing(
                name="kbc_variance",
                caption="Population variance of the players' numbers at each decision k. Points are means over "
                f"episodes, whiskers their 95 % bootstrap intervals.{source}",
                alt="Line chart: mean variance of the chosen numbers at each k, published GPT-4 arms dashed, the "
                "conditions of this run solid with bootstrap intervals. The numbers are in the table below.",
                figure=draw_panels([[panel]], size=(5.4, 3.8)),
            )
        ]

    def distribution(self) -> list[Drawing]:
        """The numbers of the first decision as a distribution, beside those of people."""
        conditions = [one for one in self.conditions if all(episode.rounds for episode in one.episodes)]
        if not conditions:
            raise NotDrawn("no beauty contest of the run has come to a decision")
        spans = {_span(one) for one in conditions}
        low, high = max(spans, key=lambda span: (sum(_span(one) == span for one in conditions), span))
        shown = [one for one in conditions if _span(one) == (low, high)]
        bins = math.ceil(high - low) + 1
        if bins > MOST_NUMBERS:
            raise NotDrawn(f"the numbers go from {low:g} to {high:g}; distributions are drawn for up to {MOST_NUMBERS}")
        x = (np.arange(bins) + low).tolist()
        curves = []
        alike = any(comparable(KBCSettings.build(**one.condition.settings)) for one in shown)
        if alike:
            human = (100 * nyt_density()).tolist()
            label = "published: people (New York Times, 61,140 answers)"
            curves.append(Curve(label=label, x=x, y=human, low=[0.0] * bins, high=human, color=FAINT))
        for one in shown:
            numbers = np.concatenate([episode.choices[0] for episode in one.episodes])
            label = f"here, {one.who}: {one.title} ({len(numbers)} numbers)"
            shares = (100 * smoothed(histogram(numbers - low, bins))).tolist()
            curves.append(Curve(label=label, x=x, y=shares, color=one.color))
        left = [one.condition.title for one in conditions if one not in shown]
        other = f" Not shown, because its numbers have another range: {', '.join(left)}." if left else ""
        source = f" Grey: {_HUMANS}." if alike else ""
        panel = Panel(
            title="Numbers named in the first decision",
            x_label="number",
            y_label="share of the players, %",
            curves=curves,
            x_range=(low - 1, high + 1),
            y_range=(0, None),
        )
        return [
            Drawing(
                name="kbc_distribution",
                caption="Numbers of the first decision, all players of all episodes, as shares of the whole numbers, "
                f"smoothed by a Gaussian kernel of bandwidth 1 as the published curve is.{source}{other}",
                alt="Line chart: how often each number was named in the first decision, one curve for each condition"
                f"{', and a grey one for people' if alike else ''}.",
                figure=draw_panels([[panel]], size=(5.6, 3.4)),
            )
        ]

    def choices(self) -> list[Drawing]:
        """Every player's number in every run, with the target; conditions in rows, decisions in columns."""
        conditions = [one for one in self.conditions if shared_rounds(one)]
        if not conditions:
            raise NotDrawn("no beauty contest of the run has come to a decision")
        rows = [[_decision_panel(one, k) for k in _columns(one)] for one in conditions]
        return [
            Drawing(
                name="kbc_choices",
                caption="Each dot is one player's number, each column of dots one run, in the order of the seeds "
                f"({'; '.join(map(_seeds, conditions))}). Bars: the target, made from the mean of the numbers.",
                alt="Charts of dots: every player's number in every run, conditions in rows and decisions in columns, "
                "with the targets as bars.",
                figure=draw_panels(rows, size=(3.0, 2.6), legend_columns=2),
            )
        ]

    def episode_panel(self, one: PlayedCondition[Guesses], number: int) -> Panel:
        """Every number of one contest, by decision."""
        episode = one.episodes[number]
        x: list[float] = []
        for k, numbers in zip(episode.rounds, episode.choices, strict=True):
            x += (k + (np.linspace(-0.25, 0.25, len(numbers)) if len(numbers) > 1 else np.zeros(1))).tolist()
        y = [value for numbers in episode.choices for value in numbers.tolist()]
        return Panel(
            title="",
            x_label=_step_name(one),
            y_label="number",
            dots=[
                Dots(label=f"player (here, {one.who})", x=x, y=y, color=PALETTE[0], size=2.2, alpha=0.6),
                Dots(label="target", x=episode.rounds, y=episode.targets, color=INK, marker="_", size=11.0),
            ],
            x_ticks=episode.rounds if len(episode.rounds) <= 8 else None,
            y_range=_axis(one),
        )

    def overview_panel(self, conditions: Sequence[PlayedCondition[Guesses]], temperature: float) -> Panel:
        """The variance by k, beside the published arm of that temperature."""
        curves = [_variance_curve(one) for one in conditions if shared_rounds(one)]
        if temperature in _ARM_AT and any(as_published(one.condition) and one.talk for one in conditions):
            curves.append(self._arm(_ARM_AT[temperature], PUBLISHED, "o"))
        return Panel(title="", x_label="k", y_label="variance", curves=curves, y_range=(0, None))

    def _arm(self, name: str, color: str, marker: str) -> Curve:
        """A published arm, dashed."""
        published = self.published
        arm = next(arm for arm in published["arms"] if arm["arm"] == name)
        label = f"published: {arm['title']} ({published['runs']} runs)"
        return Curve(label=label, x=published["k"], y=arm["mean"], color=color, published=True, marker=marker)


def as_published(condition: Condition) -> bool:
    """Whether a condition's variances are on the published scale."""
    settings = condition.settings
    return (settings["low"], settings["high"], settings["session"]) == (0, 100, "nested")


def shared_rounds(one: PlayedCondition[Guesses]) -> list[int]:
    """The decisions that every episode of a condition has."""
    return sorted(set.intersection(*(set(episode.rounds) for episode in one.episodes)))


def _published_cell(mean: float, band: Sequence[float] | None) -> Cell:
    below = "" if band is None else f"{fixed(band[0], 0)}{DASH}{fixed(band[1], 0)}"
    return Cell(text=fixed(mean, 0), below=below)


def _variance_curve(one: PlayedCondition[Guesses], shift: float = 0.0) -> Curve:
    ks = shared_rounds(one)
    table = np.array([[episode.variances[k] for k in ks] for episode in one.episodes])
    return mean_curve(one.label, ks, table, one.color, marked=True, whiskers=True, shift=shift)


def _span(one: PlayedCondition[Guesses]) -> tuple[float, float]:
    return one.condition.settings["low"], one.condition.settings["high"]


def _axis(one: PlayedCondition[Guesses]) -> tuple[float, float]:
    low, high = _span(one)
    margin = 0.03 * (high - low)
    return low - margin, high + margin


def _step_name(one: PlayedCondition[Guesses]) -> str:
    return "k" if one.condition.settings["session"] == "nested" else "decision"


def _columns(one: PlayedCondition[Guesses]) -> list[int]:
    """The decisions that are shown: all, or the first ones and the last."""
    ks = shared_rounds(one)
    return ks if len(ks) <= _MOST_COLUMNS else [*ks[: _MOST_COLUMNS - 1], ks[-1]]


def _decision_panel(one: PlayedCondition[Guesses], k: int) -> Panel:
    x: list[float] = []
    y: list[float] = []
    targets = []
    for run, episode in enumerate(one.episodes, 1):
        at = episode.rounds.index(k)
        targets.append(episode.targets[at])
        values, counts = np.unique(episode.choices[at], return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            # Equal numbers stand side by side; a column is 0.8 wide at most.
            step = min(0.12, 0.8 / count)
            x += [run + step * (i - (count - 1) / 2) for i in range(count)]
            y += [value] * count
    runs = len(one.episodes)
    return Panel(
        title=f"{one.title}, {_step_name(one)} = {k}",
        x_label="run",
        y_label="number",
        dots=[
            Dots(label=f"here, {one.who}: {one.title}", x=x, y=y, color=one.color, size=2.6, alpha=0.6),
            Dots(label="target", x=list(range(1, runs + 1)), y=targets, color=INK, marker="_", size=8.0),
        ],
        x_ticks=range(1, runs + 1) if runs <= 8 else range(1, runs + 1, math.ceil(runs / 8)),
        x_range=(0.3, runs + 0.7),
        y_range=_axis(one),
    )


def _seeds(one: PlayedCondition[Guesses]) -> str:
    shown = ", ".join(map(str, one.seeds[:5]))
    return f"{one.condition.title}: {shown}{', ...' if len(one.seeds) > 5 else ''}"
