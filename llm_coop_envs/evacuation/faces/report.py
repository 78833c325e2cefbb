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
from llm_coop_envs.render.charts.curves import Curve, Panel, draw_panels
from llm_coop_envs.render.charts.style import PUBLISHED
from llm_coop_envs.reports.citation import WU_2024
from llm_coop_envs.reports.page_parts import Cell, ReportTable, TableRow, fixed, interval_cell
from llm_coop_envs.reports.section import (
    Drawing,
    FigureKind,
    Floats,
    PlayedCondition,
    ScenarioSection,
    comparable,
    marked,
    marks_text,
    mean_curve,
    with_unflagged,
)
from llm_coop_envs.runs.tables import EpisodeTables
from llm_coop_envs.statistics.intervals import mean_interval

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
        disabled: (kept rounds, people) who was hurt and stays.
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

    def left_by(self, name: str | None) -> Floats:
        """(rounds of the settings + 1,) how many had left by one exit, or by any."""
        found = self.out.sum(axis=1) if name is None else self.out[:, self.exits.index(name)]
        return found.astype(np.float64)


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
        """Who had left after each round, and where everybody was in the first ones."""
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
                # Nobody comes back: after an early end all stays as it was.
                out[event["round"] :, group[cell]] += 1
            if event["round"] <= max(SHOWN_ROUNDS):
                positions.append(np.array([[-1, -1] if p is None else p for p in event["positions"]], dtype=np.int64))
                headings.append(np.array([-1 if h is None else h for h in event["headings"]], dtype=np.int64))
                disabled.append(hurt)
        return Escape(
            room=start["room"],
            out=out,
            inside=tuple(int((where[:, 0] >= 0).sum()) for where in positions),
            positions=np.stack(positions),
            headings=np.stack(headings),
            disabled=np.stack(disabled),
        )

    def intro(self) -> list[str]:
        """What is played."""
        room = (
            " In the published room (33 by 33 cells) two of three exits are three cells wide, the right one a single "
            "cell."
            if any(comparable(one.condition, self.published_table) for one in self.conditions)
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
        crowds = [shown[0].condition.settings["people"] for shown, _ in groups]
        return [
            self._table(shown, arms, ", other rooms" if not arms and crowds.count(people) > 1 else "")
            for (shown, arms), people in zip(groups, crowds, strict=True)
        ]

    def _groups(self) -> Iterator[tuple[list[PlayedCondition[Escape]], list[Mapping[str, Any]]]]:
        """Conditions that can stand beside each other, and the published arms for them."""
        groups: dict[tuple[int, bool], list[PlayedCondition[Escape]]] = {}
        for one in self.conditions:
            key = one.condition.settings["people"], comparable(one.condition, self.published_table)
            groups.setdefault(key, []).append(one)
        for (_, alike), shown in groups.items():
            arms = self.published_table["rows"] if alike else []
            yield shown, [arm for arm in arms if any(comparable(one.condition, arm) for one in shown)]

    def _table(
        self, shown: Sequence[PlayedCondition[Escape]], arms: Sequence[Mapping[str, Any]], ending: str
    ) -> ReportTable:
        table = self.published_table
        people = shown[0].condition.settings["people"]
        longest = max(len(escape.out) for one in shown for escape in one.episodes) - 1
        step = 1 if longest <= MOST_ROUNDS else 5 * math.ceil(longest / MOST_ROUNDS / 5)
        marks = table["rounds"] if arms else range(step, longest + 1, step)
        rows = []
        for one in with_unflagged(shown):
            left = [escape.left_by(None) for escape in one.episodes]
            found = [[float(counts[r]) if r < len(counts) else None for counts in left] for r in marks]
            cells = [interval_cell(mean_interval(values), 1, of=len(one.seeds), within=(0, people)) for values in found]
            rows.append(one.row(cells))
        for arm in arms:
            cells = [Cell(text=fixed(value)) for value in arm["escaped"]]
            below = f"published, {table['runs']} runs"
            rows.append(TableRow(name=f"GPT-4, {arm['title']}", below=below, cells=cells, published=True))
        return ReportTable(
            title=f"People who have left, of {people}{ending}",
            head=["by round", *map(str, marks)],
            rows=rows,
            notes=[
                "Here: mean over episodes with 95 % interval.",
                *([f"Published: {table['source']}."] if arms else []),
                *self.flag_notes(),
            ],
        )

    def escapes(self) -> list[Drawing]:
        """How many have left by each round, in all and by exit; a figure for each number of people."""
        groups = list(self._groups())
        return [
            self._escapes(shown, arms, f"_{i}" if len(groups) > 1 else "") for i, (shown, arms) in enumerate(groups, 1)
        ]

    def _escapes(
        self, shown: Sequence[PlayedCondition[Escape]], arms: Sequence[Mapping[str, Any]], ending: str
    ) -> Drawing:
        names = list(dict.fromkeys(name for one in shown for e in one.episodes for name in e.exits))
        run = any(comparable(one.condition, self.published_run) for one in shown)
        most = max([_most(shown), *(counts[-1] for counts in self._reached().values() if run)])
        panels = [_panel(shown, None, self._arm_curves(arms), None)]
        panels += [_panel(shown, name, self._run_curves(name) if run else [], 1.05 * most) for name in names]
        panels = [marked(panel, shown) for panel in panels]
        # Two columns for the usual three exits, so that a page can hold it.
        across = 2 if len(panels) in (2, 4) else 3
        rows = [panels[i : i + across] for i in range(0, len(panels), across)]
        by_exit = f"; by exit: {self.published_run['source']}" if run else ""
        source = f" Dashed: published. {self.published_table['source']}{by_exit}." if arms else ""
        people = shown[0].condition.settings["people"]
        return Drawing(
            name=f"evacuation_escapes{ending}",
            caption=f"People who have left, of {people}, by each round, in all and by exit. Lines are means over "
            f"episodes, bands their 95 % intervals.{marks_text(shown)}{source}",
            alt="Line charts: cumulative number of people who left, in all and by each exit, by round; this run's "
            f"conditions solid with bands{', published runs dashed' if arms else ''}. Numbers are in the table below.",
            figure=draw_panels(rows, size=(3.7, 2.7)),
            published=bool(arms),
        )

    def snapshots(self) -> list[Drawing]:
        """The room after rounds 0, 2, 4 and 8, one figure for each condition."""
        return [self._snapshots(one, first=not place) for place, one in enumerate(self.conditions)]

    def episode_panel(self, one: PlayedCondition[Escape], number: int) -> Panel:
        """Who left by which exit in one episode, beside the published run if it is the same."""
        escape = one.episodes[number]
        curves = [
            Curve(
                label=f"{name} exit (here, {one.who})",
                x=range(len(escape.out)),
                y=escape.out[:, i].tolist(),
                color=exit_color(i),
            )
            for i, name in enumerate(escape.exits)
        ]
        if self._is_published_run(one, one.seeds[number]):
            curves += [
                self._reached_curve(f"published, {name} exit", name, exit_color(i), "o", slice(6, None, 10))
                for i, name in enumerate(escape.exits)
                if name in self._reached()
            ]
        top = 1.05 * _most(self.conditions)
        return Panel(title="", x_label="round", y_label="have left", curves=curves, y_range=(0, top))

    def overview_panel(self, conditions: Sequence[PlayedCondition[Escape]], temperature: float) -> Panel:
        """How many have left by each round."""
        curves = [_mean_left(one, one.episodes, None) for one in conditions]
        return Panel(title="", x_label="round", y_label="have left", curves=curves, y_range=(0, None))

    def _is_published_run(self, one: PlayedCondition[Escape], seed: int) -> bool:
        """Whether an episode has the protocol, talk and seed of the published run."""
        return comparable(one.condition, self.published_run) and seed == self.published_run["seed"]

    def _reached(self) -> dict[str, list[int]]:
        """How many had reached each exit in the published run, by step; they leave one step later."""
        return {name: self.published_run[f"reached_{name}"] for name in ("left", "bottom", "right")}

    def _reached_curve(self, label: str, name: str, color: str, marker: str, picked: slice) -> Curve:
        return Curve(
            label=label,
            x=[frame + 1 for frame in self.published_run["frames"][picked]],
            y=self._reached()[name][picked],
            color=color,
            published=True,
            marker=marker,
        )

    def _arm_curves(self, arms: Sequence[Mapping[str, Any]]) -> list[Curve]:
        """The published escapes in all, dashed."""
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
        """The published escapes by one exit, dashed."""
        label = f"published: GPT-4, communication (one run, seed {self.published_run['seed']})"
        picked = slice(4, None, 5)
        return [self._reached_curve(label, name, PUBLISHED, "^", picked)] if name in self._reached() else []

    def _shown_seed(self, one: PlayedCondition[Escape]) -> int:
        """The seed whose room is shown: the published run's if that is there, else one that all conditions have."""
        if any(self._is_published_run(other, seed) for other in self.conditions for seed in other.seeds):
            wanted = [self.published_run["seed"]]
        else:
            wanted = [seed for seed in one.seeds if all(seed in other.seeds for other in self.conditions)]
        return next((seed for seed in wanted if seed in one.seeds), one.seeds[0])

    def _snapshots(self, one: PlayedCondition[Escape], *, first: bool) -> Drawing:
        """One condition's room; the first caption says how all of them are read."""
        seed = self._shown_seed(one)
        compared = self._is_published_run(one, seed)
        escape = one.episodes[one.seeds.index(seed)]
        shown = [number for number in SHOWN_ROUNDS if number < len(escape.positions)]
        moments = []
        for number in shown:
            beside = f" (published run: {self.published_run['in_room'][number]})" if compared else ""
            moments.append(_moment(escape, number, f"{escape.inside[number]} inside{beside}"))
        source = f" Published run: {self.published_run['source']}." if compared else ""
        missing = [number for number in SHOWN_ROUNDS if number not in shown]
        ended = f" The episode ended before round {missing[0]}." if missing else ""
        how = f" Colour and shape: the exit a person heads for. Grey lines: the cells of the last {_TRAIL} rounds."
        return Drawing(
            name=f"evacuation_snapshots_{one.condition.name}",
            caption=f"The room in the condition '{one.condition.title}' ({one.who} players), seed {seed}, after "
            f"rounds {', '.join(map(str, shown))}.{how * first}{ended}{source}",
            alt=f"Plans of the room after rounds {', '.join(map(str, shown))} in the condition "
            f"'{one.condition.title}': who is where, and which exit each heads for.",
            figure=draw_snapshots(escape.room, [moments]),
        )


def _most(conditions: Sequence[PlayedCondition[Escape]]) -> int:
    """The most who left by one exit in an episode; at least 1, so that axes have a length."""
    return max(1, *(int(escape.out.max()) for one in conditions for escape in one.episodes))


def _panel(
    shown: Sequence[PlayedCondition[Escape]], name: str | None, published: Sequence[Curve], top: float | None
) -> Panel:
    """How many have left in all, or by one exit."""
    curves = [*published]
    for one in shown:
        having = [escape for escape in one.episodes if name is None or name in escape.exits]
        if having:
            curves.append(_mean_left(one, having, name))
    return Panel(
        title="all exits" if name is None else f"{name} exit",
        x_label="round",
        y_label="people who have left",
        curves=curves,
        y_range=(0, top),
    )


def _mean_left(one: PlayedCondition[Escape], escapes: Sequence[Escape], name: str | None) -> Curve:
    table = np.stack([escape.left_by(name) for escape in escapes])
    people = one.condition.settings["people"]
    return mean_curve(one.label, range(table.shape[1]), table, one.color, within=(0, people))


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
