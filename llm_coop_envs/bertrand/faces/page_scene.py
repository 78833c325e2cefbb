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
"""A price that falls by less than this share of itself is no deviation."""


def _still(scene: BertrandScene) -> Plain:
    return {"rounds": scene.rounds, "unit": "price", **_levels(scene)}


def _levels(scene: BertrandScene) -> Plain:
    levels = [("Nash", scene.nash), ("cartel", scene.joint)]
    found = [{"label": label, "value": float(np.mean(prices))} for label, prices in levels]
    return {"levels": found, "band": list(scene.band)}


def _moving(scene: BertrandScene) -> Plain:
    if not len(scene.prices):
        return {"values": [], "more": {}}
    more = {"units sold": scene.demand, "profit": scene.profits}
    shown = {"values": plain(scene.prices[-1]), "more": {name: plain(rows[-1]) for name, rows in more.items()}}
    return {**shown, **(_levels(scene) if scene.left else {})}


def _moments(events: Sequence[Event]) -> list[tuple[int, str]]:
    agents: list[str] = next((event["agents"] for event in events if event["type"] == "start"), [])
    rounds = of_type(events, "round")
    found = [
        (event["round"], "first collusive round: prices close, above Nash") for event in rounds if event["together"]
    ]
    found = found[:1]
    found += [(event["round"], f"{listed(event['agents'])} left the market") for event in of_type(events, "left")]
    for before, event in pairwise(rounds):
        if before["together"]:
            for firm, was, now in zip(agents, before["prices"], event["prices"], strict=True):
                if None not in (was, now) and now < (1 - DEVIATION) * was:
                    found.append((event["round"], f"{firm} deviates: {was:g} to {now:g}"))
    return found


PAGE = PageFace(kind="chart", still=_still, moving=_moving, moments=_moments)
