"""Figures of evacuations."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from llm_coop_envs.benchmarks.report.drawing import Drawing, need, shades
from llm_coop_envs.benchmarks.report.gather import KEPT_ROUNDS, Escape, Gathered, Played
from llm_coop_envs.benchmarks.report.published import escape_run, escape_table
from llm_coop_envs.core.statistics import bootstrap_means
from llm_coop_envs.evacuation.report import as_published, published_curves
from llm_coop_envs.evacuation.room_charts import Room, Snapshot, draw_snapshots
from llm_coop_envs.render.charts.curves import Curve, Panel, draw_panels

SHOWN_ROUNDS = (0, 2, 4, 8)
_TRAIL = 4


def snapshots(gathered: Gathered) -> list[Drawing]:
    """The room after rounds 0, 2, 4 and 8, one figure for each condition."""
    return [_snapshots(played) for played in need(gathered, "evacuation")]


def escapes(gathered: Gathered) -> list[Drawing]:
    """How many have left by each round, in all and by exit."""
    conditions = need(gathered, "evacuation")
    names = list(dict.fromkeys(name for one in conditions for e in one.escapes for name in exit_names(e)))
    published = any(as_published(one.condition) for one in conditions)
    most = max(int(e.out.max()) for one in conditions for e in one.escapes)
    if published:
        most = max(most, *(counts[-1] for counts in escape_run().reached.values()))
    panels = [_panel(conditions, None, None, published)]
    panels += [_panel(conditions, name, 1.05 * most, published) for name in names]
    # Two columns for the usual three exits, so that a page can hold it.
    across = 2 if len(panels) in (2, 4) else 3
    rows = [panels[i : i + across] for i in range(0, len(panels), across)]
    sources = ""
    if published:
        sources = f" Dashed: published. {escape_table()[0].source}; by exit: {escape_run().source}."
    return [
        Drawing(
            name="evacuation_escapes",
            caption="People who have left by each round, in all and by exit. Lines are means over episodes, bands "
            f"their 95 % bootstrap intervals.{sources}",
            figure=draw_panels(rows, size=(3.7, 2.7)),
        )
    ]


def exit_names(episode: Escape) -> list[str]:
    """The exits of an episode's room."""
    return list(cast("dict[str, Any]", episode.room)["exit_names"])


def _panel(conditions: list[Played], name: str | None, top: float | None, published: bool) -> Panel:
    curves = published_curves(name) if published else []
    color = shades(conditions)
    for one in conditions:
        having = [e for e in one.escapes if name is None or name in exit_names(e)]
        if not having:
            continue
        columns = [e.out.sum(axis=1) if name is None else e.out[:, exit_names(e).index(name)] for e in having]
        mean, low, high = bootstrap_means(np.stack(columns).astype(np.float64))
        banded = len(columns) > 1
        curves.append(
            Curve(
                label=one.name,
                x=range(len(mean)),
                y=mean.tolist(),
                low=low.tolist() if banded else None,
                high=high.tolist() if banded else None,
                color=color[one.condition.name],
            )
        )
    return Panel(
        title="all exits" if name is None else f"{name} exit",
        x_label="round",
        y_label="people who have left",
        curves=curves,
        y_range=(0, top),
    )


def _snapshots(played: Played) -> Drawing:
    published = escape_run()
    alike = as_published(played.condition) and played.condition.settings["talk"] == published.talk
    compared = alike and published.seed in played.seeds
    seed = published.seed if compared else played.seeds[0]
    episode = played.escapes[played.seeds.index(seed)]
    shown = [number for number in SHOWN_ROUNDS if number < len(episode.positions)]
    moments = []
    for number in shown:
        inside = f"{episode.inside[number]} inside"
        if compared:
            inside += f" (published run: {published.in_room[number]})"
        moments.append(_moment(episode, number, inside))
    plan = cast("dict[str, Any]", episode.room)
    names = exit_names(episode)
    room = Room(
        rows=plan["rows"],
        cols=plan["cols"],
        exit_names=names,
        exit_cells=[(names.index(name), row, col) for name, row, col in plan["exits"]],
        desks=[(row, col) for row, col in plan["desks"]],
    )
    source = f" Published run: {published.source}." if compared else ""
    missing = [number for number in SHOWN_ROUNDS if number not in shown]
    ended = f" The episode ended before round {missing[0]}." if missing else ""
    return Drawing(
        name=f"evacuation_snapshots_{played.condition.name}",
        caption=f"The room in the condition '{played.condition.title}' ({played.who} players), seed {seed}, after "
        f"rounds {', '.join(map(str, shown))}. Colour and shape: the exit a person heads for. Grey lines: the cells "
        f"of the last {_TRAIL} rounds.{ended}{source}",
        figure=draw_snapshots(room, [moments]),
    )


def _moment(episode: Escape, number: int, note: str) -> Snapshot:
    where, heading, hurt = episode.positions[number], episode.headings[number], episode.disabled[number]
    inside = np.flatnonzero(where[:, 0] >= 0)
    well = [i for i in inside.tolist() if not hurt[i]]
    first = max(0, min(number, KEPT_ROUNDS) - _TRAIL)
    return Snapshot(
        title="start" if number == 0 else f"round {number}",
        note=note,
        people=[(int(where[i, 0]), int(where[i, 1]), int(heading[i])) for i in well],
        disabled=[(int(where[i, 0]), int(where[i, 1])) for i in inside.tolist() if hurt[i]],
        trails=[[(int(r), int(c)) for r, c in episode.positions[first : number + 1, i]] for i in well]
        if number
        else (),
    )
