"""Scenes for web pages: plain data for a few kinds of drawing, so that the page knows no scenario.

`still` holds for the whole episode, `moving` for one scene. By kind of drawing:

    room    still: rows, cols, exits [{name, cells}], desks, hears (radius or null)
            moving: at [[row, col]], from (where they began the round), status, heading (exit or -1), out (by exit)
    chart   still: rounds, unit, levels [{label, value}], band [low, high] or null
            moving: values (each player's), more {name: each player's}, and levels and band where they are others now
    line    still: low, high, what
            moving: values, or bins where there are too many; marks [{label, value}], winners [player]
    table   still: nothing
            moving: choices, players {name: each player's}, totals {name: number}

A status is 0 for inside, 1 for out, 2 for disabled. Numbers that are missing are null.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from llm_coop_envs.core.scenario import Event
from llm_coop_envs.render.scenes.base import Scene
from llm_coop_envs.render.scenes.table import TableScene
from llm_coop_envs.util.references import load

MOST_POINTS = 5_000
"""With more players than this, a histogram of their numbers is sent."""
BINS = 200

Plain = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class PageFace:
    """Functions that turn a scenario's scenes into data for a page.

    Attributes:
        kind: the kind of drawing.
        still: the data of the whole episode, from any of its scenes.
        moving: the data of one scene.
        sight: what the player of an index sees in a scene: `cells`, and `lines` of text; `None` if the scenario does
            not say.
        personas: each player's persona in a few words, from the `start` event.
        moments: notable rounds with a few words on each, from an episode's events.
        hearers: what those are called together who hear a message, from the `start` event, such as "neighbours".
    """

    kind: str
    still: Callable[[Any], Plain]
    moving: Callable[[Any], Plain]
    sight: Callable[[Any, int], Plain] | None = None
    personas: Callable[[Event], Sequence[str]] | None = None
    moments: Callable[[Sequence[Event]], list[tuple[int, str]]] | None = None
    hearers: Callable[[Event], str] = lambda start: "others"


def plain(values: Any) -> list[Any]:
    """Numbers for JSON: rounded to six decimals, missing ones `None`."""
    rows: list[Any] = np.asarray(values).tolist()
    return [_plain(row) for row in rows]


def numbers(values: Any, low: float, high: float) -> Plain:
    """Each player's number, or of many players a histogram with `BINS` equal bins over the range."""
    array = np.asarray(values, dtype=np.float64)
    if len(array) <= MOST_POINTS:
        return {"values": plain(array)}
    return {"bins": np.histogram(array[np.isfinite(array)], bins=BINS, range=(low, high))[0].tolist()}


def face_of(reference: Any) -> PageFace:
    """Load the face that a descriptor names; the table's if it names none."""
    face: PageFace = load(reference) or TABLE
    return face


def frame(face: PageFace, scene: Scene) -> Plain:
    """The data of one scene."""
    return {"round": scene.round, "doing": scene.state(), **face.moving(scene)}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    if isinstance(value, float):
        return round(value, 6) if math.isfinite(value) else None
    return value


def _table(scene: TableScene) -> Plain:
    def last(rows: Mapping[str, Any]) -> Plain:
        return {name: _plain(value[-1].tolist()) for name, value in rows.items() if len(value)}

    few = len(scene.agents) <= MOST_POINTS
    return {
        "choices": plain(scene.choices) if few else [],
        "players": last(scene.players) if few else {},
        "totals": last(scene.totals),
    }


TABLE = PageFace(kind="table", still=lambda scene: {}, moving=_table)
