"""The report's section on emergency evacuation, and its figures.

Published values are those of `published.json`: a table of escapes by round in three arms, and one run step by step.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.core.scenario import Scenario
from llm_coop_envs.evacuation.faces.report_room import Snapshot, draw_snapshots, exit_color
from llm_coop_envs.render.charts.layout import draw_panels
from llm_coop_envs.render.charts.panels import Curve, Panel
from llm_coop_envs.render.charts.style import PUBLISHED
from llm_coop_envs.reports.means import mean_curves, spread_text
from llm_coop_envs.reports.page_parts import Cell, ReportTable, TableRow, fixed, interval_cell
from llm_coop_envs.reports.played import Floats, PlayedCondition, unit_of
from llm_coop_envs.reports.section import (
    Drawing,
    FigureKind,
    ScenarioSection,
    comparable,
    is_shown_beside,
    marked,
    marks_text,
    with_unflagged,
)
from llm_coop_envs.runs.citation import WU_2024
from llm_coop_envs.runs.tables import EpisodeTables
from llm_coop_envs.statistics.intervals import Range, mean_interval
from llm_coop_envs.studies.conditions import Condition

SHOWN_ROUNDS = (0, 2, 4, 8)
#: Columns of a table that has no published ones.
MOST_ROUNDS = 10
_TRAIL = 4
_LOOKS = {"no_communication": ("#374151", "o"), "communication": ("#7b8492", "s")}

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Escape:
    """An evacuation.

    Attributes:
        room: the `room` of its `start` event.
        out: (rounds of the settings + 1, exits) how many had left by each exit after each round.
        inside: how many were in the room after each kept round, from 0.
        positions: (kept rounds, people, 2) from round 0 to the last of `SHOWN_ROUNDS`, -1 for those who have left.
        headings: (kept rounds, people) the exit each heads for, -1 for none.
        disabled: (kept rounds, people) whether each was hurt and stays.
    """

    room: Mapping[str, Any]
    out: Ints
    inside: tuple[int, ...]
    positions: Ints
    headings: Ints
    disabled: NDArray[np.bool_]

    @property
    def exits(self) -> list[str]:
        """The exits' names."""
        return list(self.room["exit_names"])

    def count_left(self, name: str | None) -> Floats:
        """Return how many had left by one exit, or by any, after each round: (rounds of the settings + 1,)."""
        counts = self.out.sum(axis=1) if name is None else self.out[:, self.exits.index(name)]
        return counts.astype(np.float64)


class EvacuationSection(ScenarioSection[Escape]):
    """Escapes by round, in all and by exit, beside the published table and run; and the room in its first rounds."""

    papers = (WU_2024,)
    episode_caption = "People who have left by each exit, by round."
    overview_caption = "People who have left by round"

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.published_table: Mapping[str, Any] = scenario.published["table_2"]
        self.published_run: Mapping[str, Any] = scenario.published["run_seed_4"]
        self.episode_source = self.published_run["source"]

    def read(self, episode: EpisodeTables) -> Escape:
        """Read the departures of all rounds, and everybody's cell in the first rounds, from the events."""
        start = episode.events[0]
        people = len(start["agents"])
        names = start["room"]["exit_names"]
        group = [names.index(name) for name, _, _ in start["room"]["exits"]]
        out = np.zeros((start["settings"]["rounds"] + 1, len(names)), dtype=np.int64)
        positions = [np.array(start["positions"], dtype=np.int64)]
        headings = [np.full(people, -1, dtype=np.int64)]
        disabled = [np.zeros(people, dtype=np.bool_)]
        for event in episode.events:
            if event["type"] != "round":
                continue
            hurt = disabled[-1].copy()
            hurt[event["disabled"]] = True
            for _, cell in event["escaped"]:
                # Nobody comes back, so counts stay until the last round, also after an early end.
                out[event["round"] :, group[cell]] += 1
            if event["round"] <= max(SHOWN_ROUNDS):
                positions.append(np.array([[-1, -1] if p is None else p for p in event["positions"]], dtype=np.int64))
                headings.append(np.array([-1 if h is None else h for h in event["headings"]], dtype=np.int64))
                disabled.append(hurt)
        return Escape(
            room=start["room"],
            out=out,
            inside=tuple(int((cells[:, 0] >= 0).sum()) for cells in positions),
            positions=np.stack(positions),
            headings=np.stack(headings),
            disabled=np.stack(disabled),
        )

    def intro(self) -> list[str]:
        """What is played."""
        room = (
            " In the published room (33 by 33 cells) two of three exits are three cells wide, the right one a single "
            "cell."
            if any(is_shown_beside(played.condition, self.published_table, self.source) for played in self.conditions)
            else ""
        )
        return [
            "People leave a room by its exits. Everybody wants out fast; whoever walks to the nearest exit finds "
            f"others there.{room} Counted is how many have left by each round."
        ]

    def figures(self) -> list[FigureKind]:
        """Escapes, and the room."""
        return [
            FigureKind(name="evacuation-escapes", about="cumulative escapes by exit, with bands", draw=self.escapes),
            FigureKind(name="evacuation-snapshots", about="the room after rounds 0, 2, 4 and 8", draw=self.snapshots),
        ]

    def tables(self) -> list[ReportTable]:
        """How many have left by each round: a table for each number of people, published ones beside the same."""
        groups = list(self._groups())
        crowds = [conditions[0].condition.settings["people"] for conditions, _ in groups]
        return [
            self._table(conditions, arms, ", other rooms" if not arms and crowds.count(people) > 1 else "")
            for (conditions, arms), people in zip(groups, crowds, strict=True)
        ]

    def published_values(self, condition: Condition, measure: str) -> list[tuple[str, float]]:
        """Also the published numbers of people who have left by a round."""
        table, values = self.published_table, super().published_values(condition, measure)
        columns = {f"escaped_round_{number}": index for index, number in enumerate(table["rounds"])}
        if measure in columns and is_shown_beside(condition, table, self.source):
            own = [arm for arm in table["rows"] if comparable(condition, arm)]
            values += [(f"GPT-4, {arm['title']}", arm["escaped"][columns[measure]]) for arm in own]
        return values

    def _groups(self) -> Iterator[tuple[list[PlayedCondition[Escape]], list[Mapping[str, Any]]]]:
        """Yield groups of conditions that can be compared, each with the published arms to compare them with."""
        groups: dict[tuple[int, bool], list[PlayedCondition[Escape]]] = {}
        for played in self.conditions:
            alike = is_shown_beside(played.condition, self.published_table, self.source)
            key = played.condition.settings["people"], alike
            groups.setdefault(key, []).append(played)
        for (_, alike), conditions in groups.items():
            arms = self.published_table["rows"] if alike else []
            yield conditions, [arm for arm in arms if any(comparable(played.condition, arm) for played in conditions)]

    def _table(
        self, conditions: Sequence[PlayedCondition[Escape]], arms: Sequence[Mapping[str, Any]], ending: str
    ) -> ReportTable:
        table = self.published_table
        people = conditions[0].condition.settings["people"]
        longest = max(len(escape.out) for played in conditions for escape in played.episodes) - 1
        step = 1 if longest <= MOST_ROUNDS else 5 * math.ceil(longest / MOST_ROUNDS / 5)
        columns = table["rounds"] if arms else range(step, longest + 1, step)
        rows = []
        for played in with_unflagged(conditions):
            counts_by_episode = [escape.count_left(None) for escape in played.episodes]
            values_by_column = [
                [float(counts[r]) if r < len(counts) else None for counts in counts_by_episode] for r in columns
            ]
            cells = [
                interval_cell(mean_interval(played.per_unit(values), Range(low=0, high=people)), 1, of=played.units)
                for values in values_by_column
            ]
            rows.append(played.row(cells))
        for arm in arms:
            cells = [Cell(text=fixed(value)) for value in arm["escaped"]]
            below = f"published, {table['runs']} runs"
            rows.append(TableRow(name=f"GPT-4, {arm['title']}", below=below, cells=cells, published=True))
        return ReportTable(
            title=f"People who have left, of {people}{ending}",
            head=["by round", *map(str, columns)],
            rows=rows,
            notes=[
                f"Here: mean over {unit_of(conditions)} with 95 % interval.",
                *([f"Published: {table['source']}."] if arms else []),
                *self.flag_notes(),
            ],
        )

    def escapes(self) -> list[Drawing]:
        """How many have left by each round, in all and by exit; a figure for each number of people."""
        groups = list(self._groups())
        return [
            self._escapes(conditions, arms, f"_{i}" if len(groups) > 1 else "")
            for i, (conditions, arms) in enumerate(groups, 1)
        ]

    def _escapes(
        self, conditions: Sequence[PlayedCondition[Escape]], arms: Sequence[Mapping[str, Any]], ending: str
    ) -> Drawing:
        names = list(dict.fromkeys(name for played in conditions for e in played.episodes for name in e.exits))
        run = any(is_shown_beside(played.condition, self.published_run, self.source) for played in conditions)
        highest = max(
            [_highest_count(conditions), *(counts[-1] for counts in self._published_arrivals().values() if run)]
        )
        panels = [_panel(conditions, None, self._arm_curves(arms), None)]
        panels += [_panel(conditions, name, self._run_curves(name) if run else [], 1.05 * highest) for name in names]
        panels = [marked(panel, conditions) for panel in panels]
        # Two columns for the usual three exits, so that a page can hold it.
        across = 2 if len(panels) in (2, 4) else 3
        rows = [panels[i : i + across] for i in range(0, len(panels), across)]
        by_exit = f"; by exit: {self.published_run['source']}" if run else ""
        source = f" Dashed: published. {self.published_table['source']}{by_exit}." if arms else ""
        people = conditions[0].condition.settings["people"]
        return Drawing(
            name=f"evacuation_escapes{ending}",
            caption=f"People who have left, of {people}, by each round, in all and by exit. "
            f"{spread_text(conditions)}{marks_text(conditions)}{source}",
            alt="Line charts: cumulative number of people who left, in all and by each exit, by round; this run's "
            f"conditions solid with bands{', published runs dashed' if arms else ''}. Numbers are in the table below.",
            figure=draw_panels(rows, size=(3.7, 2.7)),
            published=bool(arms),
        )

    def snapshots(self) -> list[Drawing]:
        """The room after rounds 0, 2, 4 and 8, one figure for each condition."""
        return [self._snapshots(played, first=not index) for index, played in enumerate(self.conditions)]

    def episode_panel(self, played: PlayedCondition[Escape], number: int) -> Panel:
        """Who left by which exit in one episode, beside the published run if it is the same."""
        escape = played.episodes[number]
        curves = [
            Curve(
                label=f"{name} exit (here, {played.who})",
                x=range(len(escape.out)),
                y=escape.out[:, i].tolist(),
                color=exit_color(i),
            )
            for i, name in enumerate(escape.exits)
        ]
        if self._is_published_run(played, played.seeds[number]):
            curves += [
                self._arrival_curve(f"published, {name} exit", name, exit_color(i), "o", slice(6, None, 10))
                for i, name in enumerate(escape.exits)
                if name in self._published_arrivals()
            ]
        top = 1.05 * _highest_count(self.conditions)
        return Panel(title="", x_label="round", y_label="people out", curves=curves, y_range=(0, top), counts=True)

    def overview_panel(self, conditions: Sequence[PlayedCondition[Escape]], temperature: float) -> Panel:
        """How many have left by each round."""
        curves = [curve for played in conditions for curve in _left_curves(played, None)]
        return Panel(title="", x_label="round", y_label="people out", curves=curves, y_range=(0, None), counts=True)

    def _is_published_run(self, played: PlayedCondition[Escape], seed: int) -> bool:
        """Whether an episode has the protocol, talk and seed of the published run."""
        run = self.published_run
        return seed == run["seed"] and is_shown_beside(played.condition, run, self.source)

    def _published_arrivals(self) -> dict[str, list[int]]:
        """Return how many had reached each exit in the published run, by step; people leave one step later."""
        return {name: self.published_run[f"reached_{name}"] for name in ("left", "bottom", "right")}

    def _arrival_curve(self, label: str, name: str, color: str, marker: str, picked: slice) -> Curve:
        return Curve(
            label=label,
            x=[frame + 1 for frame in self.published_run["frames"][picked]],
            y=self._published_arrivals()[name][picked],
            color=color,
            published=True,
            marker=marker,
        )

    def _arm_curves(self, arms: Sequence[Mapping[str, Any]]) -> list[Curve]:
        """Return the published escapes by all exits, as dashed curves."""
        return [
            Curve(
                label=f"published: GPT-4, {arm['title']} ({self.published_table['runs']} runs)",
                x=self.published_table["rounds"],
                y=arm["escaped"],
                color=_LOOKS[arm["arm"]][0],
                marker=_LOOKS[arm["arm"]][1],
                published=True,
            )
            for arm in arms
            if arm["arm"] in _LOOKS
        ]

    def _run_curves(self, name: str) -> list[Curve]:
        """Return the published escapes by one exit, as dashed curves."""
        label = f"published: GPT-4, communication (one run, seed {self.published_run['seed']})"
        picked = slice(4, None, 5)
        return [self._arrival_curve(label, name, PUBLISHED, "^", picked)] if name in self._published_arrivals() else []

    def _shown_seed(self, played: PlayedCondition[Escape]) -> int:
        """Return the seed to show: that of the published run if it was played, else one that all conditions have."""
        if any(self._is_published_run(other, seed) for other in self.conditions for seed in other.seeds):
            candidates = [self.published_run["seed"]]
        else:
            # In the first condition's order: [0, 7, 8] and [7, 0, 9] both show the room of seed 0.
            first_seeds = self.conditions[0].seeds
            candidates = [seed for seed in first_seeds if all(seed in other.seeds for other in self.conditions)]
        return next((seed for seed in candidates if seed in played.seeds), played.seeds[0])

    def _snapshots(self, played: PlayedCondition[Escape], *, first: bool) -> Drawing:
        """Draw one condition's room; the first caption explains the symbols of all of them."""
        seed = self._shown_seed(played)
        compared = self._is_published_run(played, seed)
        escape = played.episodes[played.seeds.index(seed)]
        # The last record may hold departures alone, after the last round that was played.
        played_rounds = min(len(escape.positions) - 1, played.condition.settings["rounds"])
        shown_rounds = [number for number in SHOWN_ROUNDS if number <= played_rounds]
        moments = []
        for number in shown_rounds:
            beside = f" (published run: {self.published_run['in_room'][number]})" if compared else ""
            moments.append(_moment(escape, number, f"{escape.inside[number]} inside{beside}"))
        source = f" Published run: {self.published_run['source']}." if compared else ""
        missing = [number for number in SHOWN_ROUNDS if number not in shown_rounds]
        ended = f" The episode ended before round {missing[0]}." if missing else ""
        how = f" Colour and shape: the exit a person heads for. Grey lines: the cells of the last {_TRAIL} rounds."
        return Drawing(
            name=f"evacuation_snapshots_{played.condition.name}",
            caption=f"The room in the condition '{played.condition.title}' ({played.who} players), seed {seed}, after "
            f"rounds {', '.join(map(str, shown_rounds))}.{how * first}{ended}{source}",
            alt=f"Plans of the room after rounds {', '.join(map(str, shown_rounds))} in the condition "
            f"'{played.condition.title}': who is where, and which exit each heads for.",
            figure=draw_snapshots(escape.room, [moments]),
        )


def _highest_count(conditions: Sequence[PlayedCondition[Escape]]) -> int:
    """Return the most people who left by one exit in an episode, at least 1 so that axes have a length."""
    return max(1, *(int(escape.out.max()) for played in conditions for escape in played.episodes))


def _panel(
    conditions: Sequence[PlayedCondition[Escape]], name: str | None, published: Sequence[Curve], top: float | None
) -> Panel:
    """Return the panel of people who have left in all, or by one exit."""
    curves = [*published]
    for played in conditions:
        if any(name is None or name in escape.exits for escape in played.episodes):
            curves += _left_curves(played, name)
    return Panel(
        title="all exits" if name is None else f"{name} exit",
        x_label="round",
        y_label="people who have left",
        curves=curves,
        y_range=(0, top if any(any(curve.y) for curve in curves) else 1.0),
        counts=True,
    )


def _left_curves(played: PlayedCondition[Escape], name: str | None) -> list[Curve]:
    rounds = len(played.episodes[0].count_left(None))
    counts = [
        escape.count_left(name) if name is None or name in escape.exits else np.full(rounds, np.nan)
        for escape in played.episodes
    ]
    table = played.per_unit_rows(np.stack(counts).astype(float))
    table = table[~np.isnan(table[:, 0])]
    within = Range(low=0, high=played.condition.settings["people"])
    return mean_curves(played.label, range(table.shape[1]), table, played.color, within, played.unit)


def _moment(escape: Escape, number: int, note: str) -> Snapshot:
    where, heading, hurt = escape.positions[number], escape.headings[number], escape.disabled[number]
    inside = np.flatnonzero(where[:, 0] >= 0).tolist()
    well = [i for i in inside if not hurt[i]]
    first = max(0, number - _TRAIL)
    return Snapshot(
        title="start" if number == 0 else f"round {number}",
        note=note,
        people=[(int(where[i, 0]), int(where[i, 1]), int(heading[i])) for i in well],
        disabled=[(int(where[i, 0]), int(where[i, 1])) for i in inside if hurt[i]],
        trails=[[(int(r), int(c)) for r, c in escape.positions[first : number + 1, i]] for i in well] if number else (),
    )
