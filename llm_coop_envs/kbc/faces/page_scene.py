"""A beauty contest on a page: everybody's number on a line."""

from __future__ import annotations

from collections.abc import Sequence

from llm_coop_envs.core.records import of_type
from llm_coop_envs.core.scenario import Event
from llm_coop_envs.kbc.faces.scene import KbcScene
from llm_coop_envs.render.scenes.on_page import PageFace, Plain, numbers


def _still(scene: KbcScene) -> Plain:
    offset = "" if scene.offset == "0" else f" + {scene.offset}"
    return {"low": scene.low, "high": scene.high, "what": f"the target is {scene.ratio} of the mean{offset}"}


def _moving(scene: KbcScene) -> Plain:
    last = scene.last
    if last is None:
        return {"values": [], "marks": [], "winners": []}
    marks = [{"label": "mean", "value": last.mean}, {"label": "target", "value": last.target}]
    return {**numbers(last.choices, scene.low, scene.high), "marks": marks, "winners": [*last.winners[:1000]]}


def _moments(events: Sequence[Event]) -> list[tuple[int, str]]:
    found = [(event["round"], f"{len(event['agents'])} left") for event in of_type(events, "left")]
    for event in of_type(events, "round"):
        numbers = set(event["choices"]) - {None}
        if len(numbers) == 1:
            return [*found, (event["round"], f"everybody chose {numbers.pop():g} for the first time")]
    return found


PAGE = PageFace(kind="line", still=_still, moving=_moving, moments=_moments)
