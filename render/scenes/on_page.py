"""How scenes go to a page: as plain data of a few kinds of drawing, so that the page knows kinds and no scenario.

`still` is what holds for the whole episode, `moving` what one moment adds. By kind:

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
"""From how many players on only a histogram of their numbers is sent."""
BINS = 200

Plain = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class PageFace:
    """How a scenario's scenes are shown on a page.

    Attributes:
        kind: the kind of drawing.
        still: what holds for the whole episode, from any of its scenes.
        moving: what one scene adds.
        sight: what one player sees in a scene, told the player's index: `cells`, and `lines` of text; `None` if the
            scenario cannot say.
        personas: each player's persona in a few words, from the `start` event.
        moments: rounds worth a look, with a few words on each, from an episode's events.
    """

    kind: str
    still: Callable[[Any], Plain]
    moving: Callable[[Any], Plain]
    sight: Callable[[Any, int], Plain] | None = None
    personas: Callable[[Event], Sequence[str]] | None = None
    moments: Callable[[Sequence[Event]], list[tuple[int, str]]] | None = None


def plain(values: Any) -> list[Any]:
    """Numbers as JSON has them: rounded to what a picture shows, missing ones `None`."""
    found: list[Any] = np.asarray(values).tolist()
    return [_plain(one) for one in found]


def numbers(values: Any, low: float, high: float) -> Plain:
    """Each player's number, or how many there are in each of `BINS` equal parts of the range."""
    array = np.asarray(values, dtype=np.float64)
    if len(array) <= MOST_POINTS:
        return {"values": plain(array)}
    return {"bins": np.histogram(array[np.isfinite(array)], bins=BINS, range=(low, high))[0].tolist()}


def face_of(reference: Any) -> PageFace:
    """The face that a descriptor names, or the table."""
    found: PageFace = load(reference) or TABLE
    return found


def frame(face: PageFace, scene: Scene) -> Plain:
    """One scene."""
    return {"round": scene.round, "doing": scene.state(), **face.moving(scene)}


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return [_plain(one) for one in value]
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
