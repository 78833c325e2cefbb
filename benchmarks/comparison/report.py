"""The comparison as a page: one figure, one table, and why the counts differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from llm_coop_envs.benchmarks import report as reports
from llm_coop_envs.benchmarks.comparison.arms import MARKETS, Arm, trained_note
from llm_coop_envs.benchmarks.comparison.playing import LAST, Row
from llm_coop_envs.benchmarks.comparison.published import published_rounds
from llm_coop_envs.benchmarks.comparison.runs import read_plan, read_rows
from llm_coop_envs.benchmarks.report.page_parts import (
    NOTHING,
    Cell,
    EmbeddedFigure,
    ReportTable,
    TableRow,
    fixed,
)
from llm_coop_envs.benchmarks.report.section import WU_2024
from llm_coop_envs.bertrand.metrics import WINDOW
from llm_coop_envs.core.statistics import Interval, bootstrap_mean
from llm_coop_envs.errors import RunError
from llm_coop_envs.render.charts.dots import Dot, DotPanel, draw_dots
from llm_coop_envs.render.charts.style import BLUE, GREEN, VERMILION, need_matplotlib, png
from llm_coop_envs.storage.files import write_whole

PAGE, TABLE = "index.html", "table.json"
FIGURE = "collusion_comparison"
_COLOURS = (BLUE, VERMILION, GREEN)

WHY = (
    "The counts differ because they count different things. A Q-learner knows nothing at first and asks prices at "
    "random for long (with the published decay of exploration every second price is random until period 173,000), "
    "and its count ends when its strategy changes no more; rules and models bring what they know along and are "
    "counted from their first round; and the 2,000 rounds are quoted from other work, with another learner."
)
"""Why 400, 2,000 and 1.75 million rounds do not contradict each other."""

_HEAD = (
    "",
    "rounds until prices stay together",
    f"first {WINDOW} rounds in a row",
    "final price",
    "profit gain",
    "index",
    "limit cycle",
    "rivals' answer, %",
    "does not pay, %",
    "back, %",
    "rounds until back",
)


def write_comparison(folder: Path, out: Path | None = None, *, partial: bool = False) -> Path:
    """Write the report on a comparison.

    Args:
        folder: its folder.
        out: where to write; `folder/report` by default.
        partial: accept a comparison that is not complete; the page then says so.

    Returns:
        The page.

    Raises:
        RunError: it is not complete, or damaged, or nothing can be written.
        MissingExtra: matplotlib is not installed.
    """
    need_matplotlib()
    plan, rows = read_plan(folder), read_rows(folder)
    arms = [_arm(data) for data in plan["arms"].values()]
    total = sum(arm.episodes * len(arm.presets) for arm in arms)
    if not rows:
        raise RunError(f"{folder}: holds no finished episode yet; run the comparison first")
    if len(rows) < total and not partial:
        raise RunError(
            f"{folder}: is not complete ({len(rows)} of {total} episodes); continue it with the command it was begun "
            "with, or report on what is there with --partial"
        )
    figure, numbers = picture(arms, rows), table(arms, rows)
    out = out or folder / "report"
    write_whole(out / f"{FIGURE}.png", figure.png)
    write_whole(out / TABLE, (json.dumps(plain_table(numbers), indent=1) + "\n").encode())
    home = Path(reports.__file__).parent
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([Path(__file__).parent, home]),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    content = environment.get_template("page_comparison.jinja").render(
        style=(home / "page.css").read_text(encoding="utf-8"),
        why=WHY,
        figure=figure,
        table=numbers,
        there=len(rows),
        total=total,
        models=any(arm.asks for arm in arms),
        arms=arms,
        markets=MARKETS,
        seed=plan["seed"],
        folder=folder,
        paper=WU_2024.full,
    )
    write_whole(out / PAGE, content.encode())
    return out / PAGE


def picture(arms: Sequence[Arm], rows: Sequence[Row]) -> EmbeddedFigure:
    """Rounds until prices stay together, profit gain, and the rivals' answer, of every arm in every market."""
    published = published_rounds()
    lines = [arm.title for arm in arms] + [one.title for one in published]
    found: dict[str, list[Dot]] = {"stays": [], "gain": [], "answer": []}
    for line, arm in enumerate(arms):
        for group, preset in enumerate(MARKETS):
            for measure, dots in found.items():
                mean = _mean(_of(rows, arm, preset), measure, 100.0 if measure == "answer" else 1.0)
                if mean is not None:
                    dots.append(Dot(line=line, value=mean.mean, low=mean.low, high=mean.high, group=group))
    for line, one in enumerate(published, len(arms)):
        found["stays"].append(Dot(line=line, value=one.rounds))
        if one.gain is not None:
            found["gain"].append(Dot(line=line, value=one.gain))
        if one.arm == "calvano":
            found["answer"].append(Dot(line=line, value=-12.7))
    figure = draw_dots(
        lines,
        list(zip(MARKETS.values(), _COLOURS, strict=True)),
        [
            DotPanel(title="until prices stay together", label="rounds", dots=found["stays"], log=True),
            DotPanel(
                title="profit gain",
                label="0: Nash, 1: joint profit",
                dots=found["gain"],
                levels=[(0.0, ""), (1.0, "")],
            ),
            DotPanel(
                title="rivals' answer to a deviation",
                label="price change, %",
                dots=found["answer"],
                levels=[(0.0, "")],
            ),
        ],
    )
    return EmbeddedFigure(
        name=FIGURE,
        alt="Three charts of dots with intervals, one line per kind of player and one colour per market: rounds until "
        "prices stay together on a logarithmic axis, profit gain, and the rivals' price change after a deviation, with "
        "published values as open diamonds. All numbers are in the table below.",
        png=png(figure),
    )


def table(arms: Sequence[Arm], rows: Sequence[Row]) -> ReportTable:
    """All measures of every arm in every market, beside the published ones."""
    lines = []
    for preset, market in MARKETS.items():
        for arm in arms:
            mine = _of(rows, arm, preset)
            if mine:
                below = f"{market}; {arm.kind}, n = {len(mine)}"
                lines.append(TableRow(name=arm.title, below=below, cells=_cells(mine)))
    for one in published_rounds():
        cells = [Cell(text=f"{one.rounds:,.0f}"), *[NOTHING] * (len(_HEAD) - 2)]
        if one.gain is not None:
            cells[3] = Cell(text=fixed(one.gain, 3))
        if one.arm == "calvano":
            cells[6], cells[7], cells[9] = Cell(text="-12.7"), Cell(text="93.6"), Cell(text="5.70")
        lines.append(TableRow(name=one.title, below="published", cells=cells, published=True))
    return ReportTable(
        title="Every kind of player in every market",
        head=_HEAD,
        rows=lines,
        notes=[
            "Means over episodes with 95 % bootstrap intervals; none where all episodes are alike.",
            f"Prices stay together from the first round on after which they always are, for {WINDOW} rounds or more: "
            "between Nash and joint-profit price, with the nearest grid prices counted in, and no further from each "
            "other than a tenth of the distance between the two. This is the published definition with a number for "
            "'close'; play at the Nash price meets it as well, so look at the profit gain beside it. 'k of n' says in "
            "how many episodes prices stay so; the others are left out of the mean.",
            "Q-learning is counted from its first period: until strategies change no more (the window of 100,000 "
            f"periods not counted), and until the first {WINDOW} rounds in a row, exploration included.",
            *filter(None, [trained_note(arms)]),
            f"Price, gain and index are those of the limit cycle, or of the last {LAST} rounds where play does not "
            "repeat itself. The index is that of EconEvals (arXiv 2503.18825): the mean price, 0 at Nash, 1 at joint "
            "profit, cut at both ends.",
            "Deviations: each firm is forced to its static best reply for one round, from every round of the cycle. "
            "The answer is the rivals' price change in the next round. It does not pay if the deviator's discounted "
            "profit (0.95 per round) is lower than without it. Back: play returns to its old cycle, and after how many "
            "rounds.",
            *(f"{one.title}: {one.source}." for one in published_rounds()),
        ],
    )


def plain_table(shown: ReportTable) -> dict[str, Any]:
    """A table as plain data: what each cell says, and what stands below it."""
    return {
        "title": shown.title,
        "head": list(shown.head),
        "rows": [
            {"name": row.name, "below": row.below, "cells": [[cell.text, cell.below] for cell in row.cells]}
            for row in shown.rows
        ],
        "notes": list(shown.notes),
    }


def _cells(rows: Sequence[Row]) -> list[Cell]:
    kinds = [row["cycle"] for row in rows]
    usual = max(sorted(set(kinds)), key=kinds.count)
    return [
        _count_cell(rows, "stays"),
        _count_cell(rows, "window"),
        _cell(rows, "price", 3),
        _cell(rows, "gain", 3),
        _cell(rows, "index", 3),
        Cell(text=usual, below=f"{kinds.count(usual)} of {len(rows)}"),
        _cell(rows, "answer", 1, 100.0),
        _cell(rows, "unprofitable", 1, 100.0),
        _cell(rows, "returned", 1, 100.0),
        _cell(rows, "punishment", 1),
    ]


def _cell(rows: Sequence[Row], measure: str, decimals: int, factor: float = 1.0) -> Cell:
    """A mean with its interval; no interval where all episodes are alike."""
    mean = _mean(rows, measure, factor)
    if mean is None:
        return NOTHING
    low, high = (None if end is None else fixed(end, decimals) for end in (mean.low, mean.high))
    return Cell(text=fixed(mean.mean, decimals), below="" if low == high else f"{low} to {high}")


def _count_cell(rows: Sequence[Row], measure: str) -> Cell:
    """A mean of rounds with its interval, and how many episodes have one."""
    mean = _mean(rows, measure)
    if mean is None:
        return Cell(text=NOTHING.text, below=f"0 of {len(rows)}")
    shown = [f"{mean.n} of {len(rows)}"] if mean.n < len(rows) else []
    if mean.low is not None and mean.high is not None and mean.high > mean.low:
        shown.insert(0, f"{mean.low:,.0f} to {mean.high:,.0f}")
    return Cell(text=f"{mean.mean:,.0f}", below="; ".join(shown))


def _mean(rows: Sequence[Row], measure: str, factor: float = 1.0) -> Interval | None:
    return bootstrap_mean([None if row[measure] is None else factor * float(row[measure]) for row in rows])


def _of(rows: Sequence[Row], arm: Arm, preset: str) -> list[Row]:
    mine = [row for row in rows if row["arm"] == arm.name and row["preset"] == preset]
    return sorted(mine, key=lambda row: int(row["number"]))


def _arm(data: dict[str, Any]) -> Arm:
    return Arm(**{**data, "presets": tuple(data["presets"])})
