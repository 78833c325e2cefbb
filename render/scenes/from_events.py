"""From recorded events to scenes: what replaying, filming and figures start from. Nothing is simulated again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from llm_coop_envs.core.registry import scenario_of
from llm_coop_envs.errors import SceneError, StudyError
from llm_coop_envs.render.scenes.base import Scene
from llm_coop_envs.render.scenes.table import TableTracker
from llm_coop_envs.render.scenes.tracking import Event, Tracker
from llm_coop_envs.util.references import load


def tracker(start: Event, *, table: bool = False) -> Tracker[Any]:
    """A tracker for the episode that a `start` event opens.

    Args:
        start: the event.
        table: whether the scenes are tables, whatever the scenario's own are.

    Raises:
        SceneError: there is no such scenario, or the event is damaged.
    """
    scenario = start.get("scenario") if start.get("type") == "start" else None
    if scenario is None:
        raise SceneError("the record does not begin with a start event; it is no whole episode")
    try:
        own = load(scenario_of(scenario).scene)
        found: type[Tracker[Any]] = TableTracker if table or own is None else own
    except StudyError as error:
        raise SceneError(f"there is no picture of {scenario!r}: {error}") from error
    try:
        return found(start)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise SceneError(f"the start event is damaged ({type(error).__name__}: {error})") from error


def frames(events: Iterable[Event], *, per: str = "step") -> list[Scene]:
    """The scenes of an episode, one after the other.

    Args:
        events: the episode's events, in order.
        per: `"step"`: one scene for the beginning and one after each step in which something happened; `"round"`: one
            for the beginning, one after each settled round, and one for the end.

    Raises:
        SceneError: the events are no episode of a known scenario, or damaged.
    """
    if per not in ("step", "round"):
        raise ValueError(f"per={per!r}: must be 'step' or 'round'")
    rest = iter(events)
    first = next(rest, None)
    if first is None:
        raise SceneError("there are no events; record the episode with record=True")
    following = tracker(first)
    found: list[Scene] = []
    fresh, step = True, -1
    for event in rest:
        try:
            kind = event["type"]
            acts = kind in ("message", "choice")
            if fresh and (acts and event["step"] > step if per == "step" else kind != "end"):
                following.step = event["step"]
                found.append(following.scene())
                fresh = False
            following.add(event)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise SceneError(f"an event of the record is damaged ({type(error).__name__}: {error})") from error
        if acts:
            step = event["step"]
        fresh = fresh or per == "step" or kind in ("round", "end")
    return [*found, following.scene()] if fresh else found
