"""An episode's course: a few named series by round, drawn from its frames, so that two episodes can be laid together.

The kinds of drawing are those of `llm_coop_envs.render.scenes.on_page`.
"""

from __future__ import annotations

import json
import math
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any

MOST_POINTS = 2_000
"""Of an episode with more rounds, rounds at equal distances are drawn, and its last one."""
MOST_PLAYERS = 40
"""Up to how many players each has a series of its own."""

Frame = Mapping[str, Any]
Values = dict[str, float | None]


def read_course(table: sqlite3.Connection, episode: str, about: Mapping[str, Any]) -> dict[str, Any]:
    """Read an episode's course from its index.

    Args:
        table: the index.
        episode: the episode's name there.
        about: what the index holds of the episode beside its frames.

    Returns:
        `rounds`, `places` of their frames, `every` how many-th round is there, `unit`, `series` (`name` and `values`)
        and `players`, series likewise, empty if there are too many.
    """
    count = len(about["rounds"])
    every = max(1, math.ceil(count / MOST_POINTS))
    rows = table.execute(
        "SELECT place, round, frame FROM frames WHERE episode = ? AND (place % ? = 0 OR place = ?) ORDER BY place",
        (episode, every, count - 1),
    )
    read_values = _READERS.get(about["kind"], _of_table)
    names = about["names"] if about["kind"] == "chart" and len(about["names"]) <= MOST_PLAYERS else []
    places, rounds = [], []
    columns: list[Values] = []
    own: list[list[float | None]] = []
    for place, round_, text in rows:
        frame = json.loads(text)
        places.append(place)
        rounds.append(round_)
        columns.append(read_values(frame, about["still"]))
        if names:
            values = frame.get("values") or []
            own.append([values[k] if k < len(values) else None for k in range(len(names))])
    series = list(dict.fromkeys(name for column in columns for name in column))
    return {
        "rounds": rounds,
        "places": places,
        "every": every,
        "unit": about["still"].get("unit", ""),
        "series": [{"name": name, "values": [column.get(name) for column in columns]} for name in series],
        "players": [{"name": name, "values": [row[k] for row in own]} for k, name in enumerate(names)],
    }


def _of_chart(frame: Frame, still: Frame) -> Values:
    unit = still.get("unit", "value")
    values = [value for value in frame.get("values") or () if value is not None]
    if not values:
        return {f"mean {unit}": None}
    return {
        f"mean {unit}": math.fsum(values) / len(values),
        f"lowest {unit}": min(values),
        f"highest {unit}": max(values),
    }


def _of_line(frame: Frame, still: Frame) -> Values:
    return {mark["label"]: mark["value"] for mark in frame.get("marks", ())}


def _of_room(frame: Frame, still: Frame) -> Values:
    out: Sequence[int] = frame["out"]
    exits = {f"out by {exit_['name']}": count for exit_, count in zip(still["exits"], out, strict=False)}
    return {"people out": sum(out), **exits}


def _of_table(frame: Frame, still: Frame) -> Values:
    totals = {name: value for name, value in (frame.get("totals") or {}).items() if isinstance(value, int | float)}
    chosen = [value for value in frame.get("choices") or () if isinstance(value, int | float)]
    return {**({"mean choice": math.fsum(chosen) / len(chosen)} if chosen else {}), **totals}


_READERS: Mapping[str, Callable[[Frame, Frame], Values]] = {"chart": _of_chart, "line": _of_line, "room": _of_room}
