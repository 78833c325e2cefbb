"""The report's section on the Keynesian beauty contest, and its figures.

Published values are those of `published.json`: the variance of the numbers by k in six arms.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_coop_envs.core.scenario import Scenario
from llm_coop_envs.kbc import reference
from llm_coop_envs.kbc.faces.report_crowd import LargeContest, crowd_tables, kinds_figure, read_crowd
from llm_coop_envs.kbc.metrics import named
from llm_coop_envs.kbc.reference import histogram, nyt_density, smoothed
from llm_coop_envs.kbc.settings import KBCSettings
from llm_coop_envs.render.charts.curves import Curve, Dots, Panel, draw_panels
from llm_coop_envs.render.charts.style import FAINT, INK, PALETTE, PUBLISHED
from llm_coop_envs.reports.citation import PAN_2024, WU_2024
from llm_coop_envs.reports.page_parts import NOTHING, Cell, ReportTable, TableRow, fixed, interval_cell
from llm_coop_envs.reports.section import (
    Drawing,
    FigureKind,
    Floats,
    NotDrawn,
    PlayedCondition,
    ScenarioSection,
    comparable,
    concerns,
    marked,
    marks_text,
    mean_curve,
    with_unflagged,
)
from llm_coop_envs.runs.tables import EpisodeTables
from llm_coop_envs.statistics.intervals import mean_interval

MOST_NUMBERS = 1000
#: Runs of a condition whose numbers are drawn one by one: more cannot be told apart.
MOST_RUNS = 60
_MOST_COLUMNS = 4
# The longest title of a condition that a panel holds, in characters.
_NARROW = 28
_MOST_DECISIONS = 12
# The arms of the paper's main figure; the table holds all.
_LOOKS = {
    "gpt_4": ("#374151", "o"),
    "gpt_4_cooperate": ("#6b7280", "s"),
    "gpt_4_uncooperative": ("#9aa3af", "^"),
}
_HUMANS = (
    "readers of The New York Times, 2015 (61,140 answers; Leonhardt and Quealy), digitised "
    "from figure 5 of Wu et al. 2024"
)


@dataclass(frozen=True, kw_only=True, eq=False)
class Guesses:
    """A beauty contest.

    Attributes:
        rounds: the decisions' numbers (k in nested sessions).
        choices: the numbers of those who took part at each decision.
        targets: the target at each decision.
        crowd: more of a large contest; `None` of others.
    """

    rounds: tuple[int, ...]
    choices: tuple[Floats, ...]
    targets: tuple[float, ...]
    crowd: LargeContest | None

    @functools.cached_property
    def variances(self) -> dict[int, float]:
        """The population variance of the numbers at each decision."""
        return {k: float(np.var(numbers)) for k, numbers in zip(self.rounds, self.choices, strict=True)}


class KbcSection(ScenarioSection[Guesses]):
    """Variance of the numbers by k beside the published arms, and the numbers themselves."""

    papers = (WU_2024, PAN_2024)
    episode_caption = "Each dot is a player's number at a decision; bars: the targets."
    overview_caption = "Variance of the numbers by k"

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        # Arms with mean and band by k, runs, and the source.
        self.published: Mapping[str, Any] = scenario.published["variance"]
        self.overview_source = f"published. {self.published['source']}"

    def read(self, episode: EpisodeTables) -> Guesses:
        """All numbers and targets."""
        rounds = episode.by_type["round"]
        return Guesses(
            rounds=tuple(event["round"] for event in rounds),
            choices=tuple(named(event).astype(np.float64) for event in rounds),
            targets=tuple(float(event["target"]) for event in rounds),
            crowd=read_crowd(episode),
        )

    def intro(self) -> list[str]:
        """What is played."""
        targets = list(dict.fromkeys(_target(one) for one in self.conditions))
        nested = any(_step_name(one) == "k" for one in self.conditions)
        near = all(one.condition.settings["winner_rule"] != "tolerance" for one in self.conditions)
        return [
            f"Players name a number; {'the nearest' if near else 'whoever is near enough'} to a target made from the "
            f"mean ({' or '.join(targets)}) wins. "
            + (
                "In a nested session they decide at k = 0, then talk, if they may, before each later k. "
                if nested
                else ""
            )
            + "The smaller the variance of the numbers, the more the players agree."
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
            FigureKind(
                name="kbc-kinds",
                about="numbers of the first decision of large contests, by who plays",
                draw=lambda: kinds_figure(self._large),
            ),
            FigureKind(name="kbc-choices", about="every number in every run, with the targets", draw=self.choices),
        ]

    def tables(self) -> list[ReportTable]:
        """The variance by k or decision: the contests as published, beside the published arms, and the others."""
        large = crowd_tables(self._large, self.scenario.published["large_scale"])
        return [*(self._table(*group) for group in self._groups()), *large]

    @property
    def _large(self) -> list[tuple[PlayedCondition[Guesses], list[LargeContest]]]:
        """The conditions with large contests, and what is kept of these."""
        crowds = [(one, [e.crowd for e in one.episodes if e.crowd is not None]) for one in self.conditions]
        return [both for both in crowds if both[1]]

    def variance(self) -> list[Drawing]:
        """The variance of the numbers by k or decision, the contests as published in a panel of their own."""
        panels, sources = [], ""
        for shown, step, arms in self._groups():
            curves = [self._arm(arm, *_LOOKS[arm["arm"]]) for arm in arms if arm["arm"] in _LOOKS]
            sources = f" Dashed: published. {self.published['source']}." if curves else sources
            found = [_variance_curve(one, 0.04 * i) for i, one in enumerate(shown, 1) if shared_rounds(one)]
            ks = sorted({k for one in shown for k in shared_rounds(one)} | set(self.published["k"] if curves else ()))
            if len(ks) > 1:
                panel = Panel(
                    title=f"Variance of the numbers by {step}{self._other(arms)}",
                    x_label="k (talks so far)" if step == "k" and any(one.talk for one in shown) else step,
                    y_label="variance of the players' numbers",
                    curves=[*curves, *found],
                    x_ticks=ks if len(ks) <= 10 else None,
                    y_range=(0, None),
                )
                panels.append(marked(panel, shown))
        if not panels:
            raise NotDrawn("the beauty contests of the run have one decision each; a variance by k needs several")
        return [
            Drawing(
                name="kbc_variance",
                caption="Population variance of the players' numbers at each decision. Points are means over "
                f"episodes, whiskers their 95 % intervals.{sources}{marks_text(self.conditions)}",
                alt="Line chart: mean variance of the chosen numbers at each decision, this run's conditions solid "
                f"with intervals{', published arms dashed' if sources else ''}. The numbers are in the table "
                "below.",
                figure=draw_panels([panels], size=(5.4, 3.8)),
                published=bool(sources),
            )
        ]

    def distribution(self) -> list[Drawing]:
        """The numbers of the first decision as distributions, beside those of people who were asked the same."""
        groups: dict[tuple[tuple[float, float], bool], list[PlayedCondition[Guesses]]] = {}
        for one in self.conditions:
            if all(episode.rounds for episode in one.episodes):
                alike = reference.comparable(KBCSettings.build(**one.condition.settings))
                groups.setdefault((_span(one), alike), []).append(one)
        if not groups:
            raise NotDrawn("no beauty contest of the run has come to a decision")
        narrow = {key: shown for key, shown in groups.items() if _bins(*key[0]) <= MOST_NUMBERS}
        if not narrow:
            low, high = next(iter(groups))[0]
            raise NotDrawn(f"the numbers go from {low:g} to {high:g}; distributions are drawn for up to {MOST_NUMBERS}")
        left = [one.condition.title for key, shown in groups.items() if key not in narrow for one in shown]
        other = f" Not shown, because its numbers have too wide a range: {', '.join(left)}." if left else ""
        people = any(alike for _, alike in narrow)
        panels = [_distribution_panel(shown, span, alike) for (span, alike), shown in narrow.items()]
        return [
            Drawing(
                name="kbc_distribution",
                caption="Numbers of the first decision, all players of all episodes, rounded to integers, as shares, "
                "smoothed by a Gaussian kernel of bandwidth 1"
                f"{f' as the published curve is. Grey: {_HUMANS}.' if people else '.'}{other}",
                alt="Line chart: how often each number was named in the first decision, one curve for each condition"
                f"{', and a grey one for people' if people else ''}.",
                figure=draw_panels([panels[i : i + 2] for i in range(0, len(panels), 2)], size=(5.6, 3.4)),
            )
        ]

    def choices(self) -> list[Drawing]:
        """Every player's number in every run, with the target; conditions in rows, decisions in columns."""
        conditions = [one for one in self.conditions if shared_rounds(one)]
        if not conditions:
            raise NotDrawn("no beauty contest of the run has come to a decision")
        # Contests of one decision stand side by side, the others have a row each.
        once = [one for one in conditions if len(_columns(one)) == 1]
        across = max(2 if len(once) > 1 else 1, *(len(_columns(one)) for one in conditions))
        wide = across <= 2
        longest = _NARROW + 20 * wide
        alone = [_decision_panel(one, _columns(one)[0], longest) for one in once]
        rows = [alone[i : i + across] for i in range(0, len(alone), across)]
        rows += [[_decision_panel(one, k, longest) for k in _columns(one)] for one in conditions if one not in once]
        most = max(len(one.seeds) for one in conditions)
        left = f" Of up to {most:,} runs the first {MOST_RUNS} are shown." if most > MOST_RUNS else ""
        return [
            Drawing(
                name="kbc_choices",
                caption="Each dot is one player's number, each column of dots one run, in the order of the seeds "
                f"({_seeds(conditions)}).{left} Bars: the target, made from the mean of the numbers.",
                alt="Charts of dots: every player's number in every run, conditions in rows and decisions in columns, "
                "with the targets as bars.",
                figure=draw_panels(rows, size=(5.4 if wide else 3.0, 2.6), legend_columns=2),
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
        if all(comparable(one.condition, self.published) for one in conditions):
            arms = [arm for arm in self._arms_for(conditions) if arm.get("temperature") == temperature]
            curves += [self._arm(arm, PUBLISHED, "o") for arm in arms]
        steps = {_step_name(one) for one in conditions}
        x_label = steps.pop() if len(steps) == 1 else "decision"
        return Panel(title="", x_label=x_label, y_label="variance", curves=curves, y_range=(0, None))

    def _groups(self) -> Iterator[tuple[list[PlayedCondition[Guesses]], str, list[Mapping[str, Any]]]]:
        """Conditions that can stand beside each other, what their decisions are called, and published arms for them."""
        groups: dict[tuple[str, bool], list[PlayedCondition[Guesses]]] = {}
        for one in self.conditions:
            groups.setdefault((_step_name(one), comparable(one.condition, self.published)), []).append(one)
        for (step, alike), shown in sorted(groups.items(), key=lambda group: not group[0][1]):
            yield shown, step, self._arms_for(shown) if alike else []

    def _arms_for(self, conditions: Sequence[PlayedCondition[Guesses]]) -> list[Mapping[str, Any]]:
        """The published arms that were played as one of some conditions is, which are as published otherwise."""
        return [
            arm
            for arm in self.published["arms"]
            if concerns(arm, self.source) and any(comparable(one.condition, arm) for one in conditions)
        ]

    def _table(
        self, shown: Sequence[PlayedCondition[Guesses]], step: str, arms: Sequence[Mapping[str, Any]]
    ) -> ReportTable:
        published = self.published
        ks = sorted({k for one in shown for e in one.episodes for k in e.rounds} | set(published["k"] if arms else ()))
        left = f" {len(ks) - _MOST_DECISIONS} more decisions are not shown." if len(ks) > _MOST_DECISIONS else ""
        ks = ks[:_MOST_DECISIONS]
        rows = []
        for one in with_unflagged(shown):
            found = [[episode.variances.get(k) for episode in one.episodes] for k in ks]
            cells = [interval_cell(mean_interval(values), 0, of=len(one.seeds), within=(0, None)) for values in found]
            rows.append(one.row(cells))
        for arm in arms:
            known = dict(zip(published["k"], map(_published_cell, arm["mean"], arm["band"]), strict=True))
            cells = [known.get(k, NOTHING) for k in ks]
            below = f"published, {published['runs']} runs"
            rows.append(TableRow(name=arm["title"], below=below, cells=cells, published=True))
        return ReportTable(
            title=f"Variance by {step}{self._other(arms)}",
            head=["", *(f"{step} = {k}" if step == "k" else f"{step} {k}" for k in ks)],
            rows=rows,
            notes=[
                f"Here: population variance, mean over episodes with 95 % interval.{left}",
                *([f"Published: the same contest. {published['source']}."] if arms else []),
                *self.flag_notes(),
            ],
        )

    def _other(self, arms: Sequence[Mapping[str, Any]]) -> str:
        """What ends the title of contests without published arms, where others have some."""
        return ", other contests" if not arms and any(others for _, _, others in self._groups()) else ""

    def _arm(self, arm: Mapping[str, Any], color: str, marker: str) -> Curve:
        """A published arm, dashed."""
        published = self.published
        label = f"published: {arm['title']} ({published['runs']} runs)"
        return Curve(label=label, x=published["k"], y=arm["mean"], color=color, published=True, marker=marker)


def shared_rounds(one: PlayedCondition[Guesses]) -> list[int]:
    """The decisions that every episode of a condition has."""
    return sorted(set.intersection(*(set(episode.rounds) for episode in one.episodes)))


def _published_cell(mean: float, band: Sequence[float] | None) -> Cell:
    below = "" if band is None else f"{fixed(band[0], 0)} to {fixed(band[1], 0)}"
    return Cell(text=fixed(mean, 0), below=below)


def _variance_curve(one: PlayedCondition[Guesses], shift: float = 0.0) -> Curve:
    ks = shared_rounds(one)
    table = np.array([[episode.variances[k] for k in ks] for episode in one.episodes])
    return mean_curve(one.label, ks, table, one.color, within=(0, None), marked=True, whiskers=True, shift=shift)


def _distribution_panel(shown: Sequence[PlayedCondition[Guesses]], span: tuple[float, float], people: bool) -> Panel:
    """The first numbers of some conditions; with those of people, if these were asked the same."""
    low, high = span
    bins = _bins(low, high)
    x = (np.arange(bins) + low).tolist()
    curves = []
    if people:
        human = (100 * nyt_density()).tolist()
        label = "published: people (New York Times, 61,140 answers)"
        curves.append(Curve(label=label, x=x, y=human, low=[0.0] * bins, high=human, color=FAINT))
    for one in shown:
        numbers = np.concatenate([episode.choices[0] for episode in one.episodes])
        label = f"here, {one.who}: {one.title} ({len(numbers)} numbers)"
        shares = (100 * smoothed(histogram(numbers - low, bins))).tolist()
        curves.append(Curve(label=label, x=x, y=shares, color=one.color))
    return Panel(
        title="Numbers named in the first decision",
        x_label="number",
        y_label="share of the players, %",
        curves=curves,
        x_range=(low - 1, high + 1),
        y_range=(0, None),
    )


def _bins(low: float, high: float) -> int:
    return math.ceil(high - low) + 1


def _target(one: PlayedCondition[Guesses]) -> str:
    """What the target is made of the mean, in words."""
    ratio, offset = (str(one.condition.settings[name]) for name in ("ratio", "offset"))
    part = {"2/3": "two thirds of it", "1/2": "half of it", "1": "the mean itself"}.get(ratio, f"{ratio} of it")
    return part if offset == "0" else f"{part} plus {offset}"


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


def _decision_panel(one: PlayedCondition[Guesses], k: int, longest: int) -> Panel:
    x: list[float] = []
    y: list[float] = []
    targets = []
    shown = one.episodes[:MOST_RUNS]
    for run, episode in enumerate(shown, 1):
        at = episode.rounds.index(k)
        targets.append(episode.targets[at])
        values, counts = np.unique(episode.choices[at], return_counts=True)
        for value, count in zip(values.tolist(), counts.tolist(), strict=True):
            # Equal numbers stand side by side; a column is 0.8 wide at most.
            step = min(0.12, 0.8 / count)
            x += [run + step * (i - (count - 1) / 2) for i in range(count)]
            y += [value] * count
    runs = len(shown)
    return Panel(
        title=one.cut_title(longest),
        note=f"{_step_name(one)} {'= ' if _step_name(one) == 'k' else ''}{k}"
        if len(one.episodes[0].rounds) > 1
        else "",
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


def _seeds(conditions: Sequence[PlayedCondition[Guesses]]) -> str:
    """The first seeds, once where all conditions have the same."""
    shown = {
        one.condition.title: ", ".join(map(str, one.seeds[:5])) + (", ..." if len(one.seeds) > 5 else "")
        for one in conditions
    }
    if len(set(shown.values())) == 1:
        return next(iter(shown.values()))
    return "; ".join(f"{title}: {seeds}" for title, seeds in shown.items())
