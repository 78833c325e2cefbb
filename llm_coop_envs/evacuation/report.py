"""The report's section on emergency evacuation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.benchmarks.report.blocks import (
    Cell,
    Picture,
    Section,
    Table,
    TableRow,
    colours,
    fixed,
    interval_cell,
)
from llm_coop_envs.benchmarks.report.published import EscapeRow, escape_run, escape_table
from llm_coop_envs.benchmarks.run.tables import EpisodeTables
from llm_coop_envs.benchmarks.study.study import Condition
from llm_coop_envs.core.statistics import bootstrap_mean, bootstrap_means
from llm_coop_envs.render.charts.curves import Curve, draw_curves
from llm_coop_envs.render.charts.style import png

PUBLISHED_ROUNDS = 50
_LOOKS = {"no_communication": ("#374151", "o"), "communication": ("#7b8492", "s")}

Counts = NDArray[np.float64]


class EvacuationSection:
    """Escapes by round, in all and by exit, beside the published table and run."""

    def __init__(self, conditions: Sequence[Condition], who: Mapping[str, str]) -> None:
        self._conditions = conditions
        self._who = who
        self._out: dict[str, list[dict[str, Counts]]] = {c.name: [] for c in conditions}
        self._exits: list[str] = []

    def add(self, episode: EpisodeTables) -> None:
        """Take what is needed of an episode: how many had left by each exit after each round."""
        names = list(dict.fromkeys(episode.events[0]["room"]["exit_names"]))
        self._exits.extend(name for name in names if name not in self._exits)
        horizon = int(episode.condition.settings["rounds"])
        counts: dict[str, Counts] = {name: np.zeros(horizon) for name in names}
        for row in episode.rounds:
            for name in names:
                # Nobody comes back: after an early end all stays as it was in the last round.
                counts[name][row["round"] - 1 :] = row[f"escaped_{name}"]
        self._out[episode.condition.name].append(counts)

    def fill(self, section: Section) -> None:
        """Write the section."""
        section.intro = [
            "People leave a room by its exits; in the published room (33 by 33 cells) two of three are three cells "
            "wide, the right one a single cell. Everybody wants out fast; whoever walks to the nearest exit finds "
            "others there. Counted is how many have left by each round."
        ]
        section.pictures = [
            self._picture("all exits", "evacuation_all", None),
            *(self._picture(f"{name} exit", f"evacuation_{name}", name) for name in self._exits),
        ]
        run = escape_run()
        section.picture_notes = [
            "Bands: 95 % bootstrap interval of the mean.",
            f"Published single run: seed {run.seed}, with communication. {run.source}.",
        ]
        section.tables = [self._table()]

    def _matrix(self, condition: Condition, exit_name: str | None) -> Counts | None:
        """Cumulative escapes (episodes, rounds) by one exit or all."""
        episodes = self._out[condition.name]
        if not episodes or (exit_name is not None and exit_name not in episodes[0]):
            return None
        if exit_name is None:
            return np.stack([np.sum(list(e.values()), axis=0) for e in episodes])
        return np.stack([e[exit_name] for e in episodes])

    def _most_by_an_exit(self) -> float:
        """The common end of the axes of the single exits, so that they can be compared."""
        published = max(counts[-1] for counts in escape_run().reached.values())
        ours = max(counts.max() for episodes in self._out.values() for e in episodes for counts in e.values())
        return 1.05 * float(max(ours, published))

    def _picture(self, what: str, file: str, exit_name: str | None) -> Picture:
        curves = []
        if any(as_published(c) for c in self._conditions):
            curves += published_curves(exit_name)
        shades = colours(self._conditions)
        for condition in self._conditions:
            matrix = self._matrix(condition, exit_name)
            if matrix is None:
                continue
            mean, low, high = (np.concatenate([[0.0], row]) for row in bootstrap_means(matrix))
            banded = len(matrix) > 1
            curves.append(
                Curve(
                    label=f"here, {self._who[condition.name]}: {condition.title} (n = {len(matrix)})",
                    x=range(len(mean)),
                    y=mean.tolist(),
                    low=low.tolist() if banded else None,
                    high=high.tolist() if banded else None,
                    color=shades[condition.name],
                )
            )
        figure = draw_curves(
            curves,
            title=f"Escaped by {what}",
            x_label="round",
            y_label="people who have left",
            y_range=(0, None if exit_name is None else self._most_by_an_exit()),
            legend_rows=2 + len(self._conditions),
        )
        return Picture(
            name=file,
            alt=f"Line chart: cumulative number of people who left by {what}, by round; this run's conditions "
            "solid with bands, published runs dashed.",
            png=png(figure),
        )

    def _table(self) -> Table:
        arms = escape_table()
        rounds = arms[0].rounds
        rows = []
        for condition in self._conditions:
            matrix = self._matrix(condition, None)
            if matrix is None:
                continue
            cells = [
                interval_cell(bootstrap_mean(matrix[:, r - 1].tolist()) if r <= matrix.shape[1] else None, 1)
                for r in rounds
            ]
            people = condition.settings["people"]
            below = f"{self._who[condition.name]}, n = {len(matrix)}" + (
                "" if people == arms[0].people else f", {people} {'person' if people == 1 else 'people'}"
            )
            rows.append(TableRow(name=condition.title, below=below, cells=cells))
        rows += [_published_row(arm) for arm in arms]
        return Table(
            title=f"People who have left, of {arms[0].people}",
            head=["by round", *(str(r) for r in rounds)],
            rows=rows,
            notes=[
                "Here: mean over episodes with 95 % bootstrap interval.",
                f"Published: {arms[0].source}.",
            ],
        )


def as_published(condition: Condition) -> bool:
    """Whether a condition plays in the published room with the published number of people."""
    settings = condition.settings
    return bool(
        settings["people"] == 100
        and settings["rows"] == settings["cols"] == 33
        and list(settings["exit_widths"]) == [3, 3, 1]
        and settings["exits"] is None
        and settings["desks"] == "none"
    )


def published_curves(exit_name: str | None) -> list[Curve]:
    """The published escapes, in all or by one exit, dashed."""
    run = escape_run()
    if exit_name is None:
        return [
            Curve(
                label=f"published: GPT-4, {arm.title} ({arm.runs} runs)",
                x=arm.rounds,
                y=arm.escaped,
                color=_LOOKS[arm.arm][0],
                marker=_LOOKS[arm.arm][1],
                published=True,
            )
            for arm in escape_table()
            if arm.arm in _LOOKS
        ]
    if exit_name not in run.reached:
        return []
    # Whoever reaches an exit cell has left one step later.
    picked = range(4, len(run.frames), 5)
    return [
        Curve(
            label=f"published: GPT-4, communication (one run, seed {run.seed})",
            x=[run.frames[i] + 1 for i in picked],
            y=[run.reached[exit_name][i] for i in picked],
            color=_LOOKS["communication"][0],
            marker=_LOOKS["communication"][1],
            published=True,
        )
    ]


def _published_row(arm: EscapeRow) -> TableRow:
    cells = [Cell(text=fixed(value)) for value in arm.escaped]
    return TableRow(name=f"GPT-4, {arm.title}", below=f"published, {arm.runs} runs", cells=cells, published=True)
