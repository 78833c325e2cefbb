"""Price competition on a page: prices over rounds, with Nash and cartel price."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from llm_coop_envs.bertrand.faces.scene import BertrandScene
from llm_coop_envs.core.records import of_type
from llm_coop_envs.core.scenario import Event
from llm_coop_envs.interface.wording import listed
from llm_coop_envs.render.scenes.on_page import PageFace, Plain, plain

DEVIATION = 0.1
"""A price that falls by a smaller share of itself does not count as a deviation."""


def _static_fields(scene: BertrandScene) -> Plain:
    return {"rounds": scene.rounds, "unit": "price", **_levels(scene)}


def _levels(scene: BertrandScene) -> Plain:
    levels = [("Nash", scene.nash), ("cartel", scene.joint)]
    lines = [{"label": label, "value": float(np.mean(prices))} for label, prices in levels]
    return {"levels": lines, "band": list(scene.band)}


def _moment_fields(scene: BertrandScene) -> Plain:
    if not len(scene.prices):
        return {"values": [], "more": {}}
    quantities = {"units sold": scene.demand, "profit": scene.profits}
    fields = {"values": plain(scene.prices[-1]), "more": {name: plain(rows[-1]) for name, rows in quantities.items()}}
    return {**fields, **(_levels(scene) if scene.departed else {})}


def _list_moments(events: Sequence[Event]) -> list[tuple[int, str]]:
    agents: list[str] = next((event["agents"] for event in events if event["type"] == "start"), [])
    rounds = [event for event in of_type(events, "round") if not event.get("forced")]
    moments = [
        (event["round"], "first collusive round: prices close, above Nash") for event in rounds if event["together"]
    ]
    moments = moments[:1]
    moments += [(event["round"], f"{listed(event['agents'])} left the market") for event in of_type(events, "left")]
    for previous, event in pairwise(rounds):
        if previous["together"]:
            for firm, was, now in zip(agents, previous["prices"], event["prices"], strict=True):
                if None not in (was, now) and now < (1 - DEVIATION) * was:
                    moments.append((event["round"], f"{firm} deviates: {was:g} to {now:g}"))
    return moments


PAGE = PageFace(kind="chart", still=_static_fields, moving=_moment_fields, moments=_list_moments)
