"""A beauty contest on a page: everybody's number on a line."""

from __future__ import annotations

from collections.abc import Sequence

from llm_coop_envs.core.records import of_type
from llm_coop_envs.core.scenario import Event
from llm_coop_envs.kbc.faces.scene import KbcScene
from llm_coop_envs.render.scenes.on_page import PageFace, Plain, numbers


def _static_fields(scene: KbcScene) -> Plain:
    offset = "" if scene.offset == "0" else f" + {scene.offset}"
    return {
        "low": scene.low,
        "high": scene.high,
        "what": f"the target is {scene.ratio} of the {scene.statistic}{offset}",
    }


def _moment_fields(scene: KbcScene) -> Plain:
    last = scene.last
    if last is None:
        return {"values": [], "marks": [], "winners": []}
    lines = [{"label": "mean", "value": last.mean}, {"label": "target", "value": last.target}]
    return {**numbers(last.choices, scene.low, scene.high), "marks": lines, "winners": [*last.winners[:1000]]}


def _list_moments(events: Sequence[Event]) -> list[tuple[int, str]]:
    moments = [(event["round"], f"{len(event['agents'])} left") for event in of_type(events, "left")]
    for event in of_type(events, "round"):
        numbers = set(event["choices"]) - {None}
        if len(numbers) == 1:
            return [*moments, (event["round"], f"everybody chose {numbers.pop():g} for the first time")]
    return moments


def _name_hearers(start: Event) -> str:
    """What those are called who hear a player, by the setting `audience`."""
    return {"neighbours": "neighbours", "group": "others of the group"}.get(
        str(start["settings"].get("audience")), "others"
    )


PAGE = PageFace(kind="line", still=_static_fields, moving=_moment_fields, moments=_list_moments, hearers=_name_hearers)
