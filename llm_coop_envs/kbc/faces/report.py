"""The report's section on the Keynesian beauty contest, and its figures.

Published values are those of `published.json`: the variance of the numbers by k in six arms.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from llm_coop_envs.core.scenario import Scenario
from llm_coop_envs.kbc import reference
from llm_coop_envs.kbc.faces.report_crowd import LargeContest, crowd_tables, kinds_figure, read_crowd
from llm_coop_envs.kbc.faces.report_panels import (
    MOST_RUNS,
    Guesses,
    axis_range,
    count_bins,
    decision_panel,
    distribution_panel,
    number_range,
    seed_text,
    shared_rounds,
    shown_decisions,
    step_name,
    target_text,
    variance_curves,
)
from llm_coop_envs.kbc.metrics import chosen_rounds, present_choices, variance_range
from llm_coop_envs.kbc.settings import KBCSettings
from llm_coop_envs.render.charts.layout import draw_panels
from llm_coop_envs.render.charts.panels import Curve, Dots, Panel
from llm_coop_envs.render.charts.style import INK, PALETTE, PUBLISHED
from llm_coop_envs.reports.means import spread_text
from llm_coop_envs.reports.page_parts import NOTHING, Cell, ReportTable, TableRow, fixed, interval_cell
from llm_coop_envs.reports.played import PlayedCondition, unit_of
from llm_coop_envs.reports.section import (
    Drawing,
    FigureKind,
    NotDrawn,
    ScenarioSection,
    comparable,
    concerns,
    is_shown_beside,
    marked,
    marks_text,
    with_unflagged,
)
from llm_coop_envs.runs.citation import PAN_2024, WU_2024
from llm_coop_envs.runs.tables import EpisodeTables
from llm_coop_envs.statistics.intervals import mean_interval
from llm_coop_envs.studies.conditions import Condition

MOST_NUMBERS = 1000
# The longest title of a condition that a panel holds, in characters.
_NARROW = 28
_MOST_DECISIONS = 12
# The arms of the paper's main figure; the table holds all.
_LOOKS = {
    "gpt_4": ("#374151", "o"),
    "gpt_4_cooperate": ("#6b7280", "s"),
    "gpt_4_uncooperative": ("#9aa3af", "^"),
}


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
        """Read the numbers and targets of one episode, without numbers that a study forces."""
        rounds = chosen_rounds(episode.events)
        return Guesses(
            rounds=tuple(event["round"] for event in rounds),
            choices=tuple(present_choices(event).astype(np.float64) for event in rounds),
            targets=tuple(float(event["target"]) for event in rounds),
            crowd=read_crowd(episode),
        )

    def intro(self) -> list[str]:
        """How the game is played."""
        targets = list(dict.fromkeys(target_text(played) for played in self.conditions))
        nested = any(step_name(played) == "k" for played in self.conditions)
        near = all(played.condition.settings["winner_rule"] != "tolerance" for played in self.conditions)
        return [
            f"Players name a number; {'the nearest' if near else 'whoever is near enough'} to a target "
            f"({' or '.join(targets)}) wins. "
            + (
                "In a nested session they decide at k = 0, then talk, if they may, before each later k. "
                if nested
                else ""
            )
            + "The smaller the variance of the numbers, the more the players agree."
        ]

    def figures(self) -> list[FigureKind]:
        """The figures of this section."""
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
            FigureKind(name="kbc-choices", about="the numbers run by run, with the targets", draw=self.choices),
        ]

    def tables(self) -> list[ReportTable]:
        """The variance by k or decision: contests as published beside the published arms, then other contests."""
        large = crowd_tables(self._large, self.scenario.published["large_scale"], self.source)
        return [*(self._table(*group) for group in self._groups()), *large]

    @property
    def _large(self) -> list[tuple[PlayedCondition[Guesses], list[LargeContest]]]:
        """The conditions with large contests, and these contests."""
        crowds = [(played, [e.crowd for e in played.episodes if e.crowd is not None]) for played in self.conditions]
        return [(played, contests) for played, contests in crowds if contests]

    def variance(self) -> list[Drawing]:
        """The variance of the numbers by k or decision; contests as published have a panel of their own."""
        panels, sources = [], ""
        for conditions, step, arms in self._groups():
            curves = [self._arm(arm, *_LOOKS[arm["arm"]]) for arm in arms if arm["arm"] in _LOOKS]
            sources = f" Dashed: published. {self.published['source']}." if curves else sources
            # Beside each other round the decision; published values stand on it.
            places = len(conditions) + (len(conditions) % 2 if curves else 0)
            gap = min(0.04, 0.6 / places)
            own_curves = [
                curve
                for i, played in enumerate(conditions)
                if shared_rounds(played)
                for curve in variance_curves(played, gap * (i - (places - 1) / 2))
            ]
            ks = sorted(
                {k for played in conditions for k in shared_rounds(played)} | set(self.published["k"] if curves else ())
            )
            if len(ks) > 1:
                panel = Panel(
                    title=f"Variance of the numbers by {step}{self._other(arms)}",
                    x_label="k (talks so far)" if step == "k" and any(played.talk for played in conditions) else step,
                    y_label="variance of the players' numbers",
                    curves=[*curves, *own_curves],
                    x_ticks=ks if len(ks) <= 10 else None,
                    y_range=(0, None),
                )
                panels.append(marked(panel, conditions))
        if not panels:
            raise NotDrawn("the beauty contests of the run have one decision each; a variance by k needs several")
        return [
            Drawing(
                name="kbc_variance",
                caption="Population variance of the players' numbers at each decision. "
                f"{spread_text(self.conditions, 'whiskers')}{sources}{marks_text(self.conditions)}",
                alt="Line chart: mean variance of the chosen numbers at each decision, this run's conditions solid "
                f"with intervals{', published arms dashed' if sources else ''}. The numbers are in the table "
                "below.",
                figure=draw_panels([panels], size=(5.4, 3.8)),
                published=bool(sources),
            )
        ]

    def distribution(self) -> list[Drawing]:
        """The distribution of the first decision's numbers, beside that of people in the same contest."""
        readers = self.scenario.published["readers"]
        groups: dict[tuple[tuple[float, float], bool], list[PlayedCondition[Guesses]]] = {}
        for played in self.conditions:
            first = 0 if step_name(played) == "k" else 1
            # A study may force all numbers of the first decision, and the second one does not stand for it.
            if all(episode.rounds[:1] == (first,) for episode in played.episodes):
                alike = concerns(readers, self.source) and reference.comparable(
                    KBCSettings.build(**played.condition.settings)
                )
                groups.setdefault((number_range(played), alike), []).append(played)
        if not groups:
            raise NotDrawn("no beauty contest of the run has come to a decision")
        narrow = {key: conditions for key, conditions in groups.items() if count_bins(*key[0]) <= MOST_NUMBERS}
        if not narrow:
            low, high = next(iter(groups))[0]
            raise NotDrawn(f"the numbers go from {low:g} to {high:g}; distributions are drawn for up to {MOST_NUMBERS}")
        too_wide = [
            played.condition.title for key, conditions in groups.items() if key not in narrow for played in conditions
        ]
        other = f" Not shown, because its numbers have too wide a range: {', '.join(too_wide)}." if too_wide else ""
        people = any(alike for _, alike in narrow)
        beside = f" as the published curve is. Grey: {readers['source']}" if people else ""
        panels = [distribution_panel(conditions, span, alike) for (span, alike), conditions in narrow.items()]
        return [
            Drawing(
                name="kbc_distribution",
                caption="Numbers of the first decision, all players of all episodes, rounded to integers, as shares, "
                "smoothed by a Gaussian kernel of bandwidth 1"
                f"{beside}.{other}",
                alt="Line chart: how often each number was named in the first decision, one curve for each condition"
                f"{', and a grey one for people' if people else ''}.",
                figure=draw_panels([panels[i : i + 2] for i in range(0, len(panels), 2)], size=(5.6, 3.4)),
            )
        ]

    def choices(self) -> list[Drawing]:
        """Every player's number in every run, with the target; conditions in rows, decisions in columns."""
        conditions = [played for played in self.conditions if shared_rounds(played)]
        if not conditions:
            raise NotDrawn("no beauty contest of the run has come to a decision")
        # Contests of one decision stand side by side, the others have a row each.
        once = [played for played in conditions if len(shown_decisions(played)) == 1]
        across = max(2 if len(once) > 1 else 1, *(len(shown_decisions(played)) for played in conditions))
        wide = across <= 2
        longest = _NARROW + 20 * wide
        alone = [decision_panel(played, shown_decisions(played)[0], longest) for played in once]
        rows = [alone[i : i + across] for i in range(0, len(alone), across)]
        rows += [
            [decision_panel(played, k, longest) for k in shown_decisions(played)]
            for played in conditions
            if played not in once
        ]
        most_runs = max(len(played.seeds) for played in conditions)
        cut_note = f" Of up to {most_runs:,} runs the first {MOST_RUNS} are shown." if most_runs > MOST_RUNS else ""
        forced = any(played.condition.has_forced_choices for played in conditions)
        forced_note = ", also made from numbers that a study forces, which are not shown" if forced else ""
        return [
            Drawing(
                name="kbc_choices",
                caption="Each dot is one player's number, each column of dots one run, in the order of the seeds "
                f"({seed_text(conditions)}).{cut_note} Bars: the target{forced_note}.",
                alt="Charts of dots: every player's number in every run, conditions in rows and decisions in columns, "
                "with the targets as bars.",
                figure=draw_panels(rows, size=(5.4 if wide else 3.0, 2.6), legend_columns=2),
            )
        ]

    def episode_panel(self, played: PlayedCondition[Guesses], number: int) -> Panel:
        """Every number of one contest, by decision."""
        episode = played.episodes[number]
        x: list[float] = []
        for k, numbers in zip(episode.rounds, episode.choices, strict=True):
            x += (k + (np.linspace(-0.25, 0.25, len(numbers)) if len(numbers) > 1 else np.zeros(1))).tolist()
        y = [value for numbers in episode.choices for value in numbers.tolist()]
        return Panel(
            title="",
            x_label=step_name(played),
            y_label="number",
            dots=[
                Dots(label=f"player (here, {played.who})", x=x, y=y, color=PALETTE[0], size=2.2, alpha=0.6),
                Dots(label="target", x=episode.rounds, y=episode.targets, color=INK, marker="_", size=11.0),
            ],
            x_ticks=episode.rounds if len(episode.rounds) <= 8 else None,
            y_range=axis_range(played),
        )

    def overview_panel(self, conditions: Sequence[PlayedCondition[Guesses]], temperature: float) -> Panel:
        """The variance by k, beside the published arm of that temperature."""
        curves = [curve for played in conditions if shared_rounds(played) for curve in variance_curves(played)]
        if all(is_shown_beside(played.condition, self.published, self.source) for played in conditions):
            arms = [arm for arm in self._arms_for(conditions) if arm.get("temperature") == temperature]
            curves += [self._arm(arm, PUBLISHED, "o") for arm in arms]
        steps = {step_name(played) for played in conditions}
        x_label = steps.pop() if len(steps) == 1 else "decision"
        return Panel(title="", x_label=x_label, y_label="variance", curves=curves, y_range=(0, None))

    def _groups(self) -> Iterator[tuple[list[PlayedCondition[Guesses]], str, list[Mapping[str, Any]]]]:
        """Groups of comparable conditions, the name of their decisions (`"k"`), and the published arms for them."""
        groups: dict[tuple[str, bool], list[PlayedCondition[Guesses]]] = {}
        for played in self.conditions:
            alike = is_shown_beside(played.condition, self.published, self.source)
            groups.setdefault((step_name(played), alike), []).append(played)
        for (step, alike), conditions in sorted(groups.items(), key=lambda group: not group[0][1]):
            yield conditions, step, self._arms_for(conditions) if alike else []

    def published_values(self, condition: Condition, measure: str) -> list[tuple[str, float]]:
        """Also the published variance of the first and the last decision."""
        place = {"variance_first": 0, "variance_last": -1}.get(measure)
        alike = is_shown_beside(condition, self.published, self.source)
        arms = self.published["arms"] if place is not None and alike else []
        return [
            *super().published_values(condition, measure),
            *((arm["title"], arm["mean"][place]) for arm in arms if is_shown_beside(condition, arm, self.source)),
        ]

    def _arms_for(self, conditions: Sequence[PlayedCondition[Guesses]]) -> list[Mapping[str, Any]]:
        """The published arms that are comparable with one of some conditions."""
        return [
            arm
            for arm in self.published["arms"]
            if concerns(arm, self.source) and any(comparable(played.condition, arm) for played in conditions)
        ]

    def _table(
        self, conditions: Sequence[PlayedCondition[Guesses]], step: str, arms: Sequence[Mapping[str, Any]]
    ) -> ReportTable:
        published = self.published
        ks = sorted(
            {k for played in conditions for e in played.episodes for k in e.rounds}
            | set(published["k"] if arms else ())
        )
        cut_note = f" {len(ks) - _MOST_DECISIONS} more decisions are not shown." if len(ks) > _MOST_DECISIONS else ""
        ks = ks[:_MOST_DECISIONS]
        rows = []
        for played in with_unflagged(conditions):
            within = variance_range(played.condition.settings)
            variances = [[episode.variances.get(k) for episode in played.episodes] for k in ks]
            cells = [
                interval_cell(mean_interval(played.per_unit(values), within), 0, of=played.units)
                for values in variances
            ]
            rows.append(played.row(cells))
        for arm in arms:
            cells_by_k = dict(zip(published["k"], map(_published_cell, arm["mean"], arm["band"]), strict=True))
            cells = [cells_by_k.get(k, NOTHING) for k in ks]
            below = f"published, {published['runs']} runs"
            rows.append(TableRow(name=arm["title"], below=below, cells=cells, published=True))
        return ReportTable(
            title=f"Variance by {step}{self._other(arms)}",
            head=["", *(f"{step} = {k}" if step == "k" else f"{step} {k}" for k in ks)],
            rows=rows,
            notes=[
                f"Here: population variance, mean over {unit_of(conditions)} with 95 % interval.{cut_note}",
                *([f"Published: the same contest. {published['source']}."] if arms else []),
                *self.flag_notes(),
            ],
        )

    def _other(self, arms: Sequence[Mapping[str, Any]]) -> str:
        """The end of a title for contests without published arms, where other contests have some."""
        return ", other contests" if not arms and any(others for _, _, others in self._groups()) else ""

    def _arm(self, arm: Mapping[str, Any], color: str, marker: str) -> Curve:
        """A published arm, dashed."""
        published = self.published
        label = f"published: {arm['title']} ({published['runs']} runs)"
        return Curve(label=label, x=published["k"], y=arm["mean"], color=color, published=True, marker=marker)


def _published_cell(mean: float, band: Sequence[float] | None) -> Cell:
    below = "" if band is None else f"{fixed(band[0], 0)} to {fixed(band[1], 0)}"
    return Cell(text=fixed(mean, 0), below=below)
