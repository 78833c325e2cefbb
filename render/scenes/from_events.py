"""Scenes from recorded events, for replays, films and figures. No episode is simulated again."""

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
        table: make tables instead of the scenario's own scenes.

    Raises:
        SceneError: there is no such scenario, or the event is damaged.
    """
    scenario = start.get("scenario") if start.get("type") == "start" else None
    if scenario is None:
        raise SceneError("the record does not begin with a start event; it is no whole episode")
    try:
        own = load(scenario_of(scenario).scene)
        tracker_type: type[Tracker[Any]] = TableTracker if table or own is None else own
    except StudyError as error:
        raise SceneError(f"there is no picture of {scenario!r}: {error}") from error
    try:
        return tracker_type(start)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise SceneError(f"the start event is damaged ({type(error).__name__}: {error})") from error


def frames(events: Iterable[Event], *, per: str = "step") -> list[Scene]:
    """The scenes of an episode, in order.

    Args:
        events: the episode's events, in order.
        per: `"step"` for a scene at the beginning and after each step with a message or choice; `"round"` for a scene
            at the beginning, after each settled round, and at the end.

    Raises:
        SceneError: the events are not an episode of a known scenario, or they are damaged.
    """
    if per not in ("step", "round"):
        raise ValueError(f"per={per!r}: must be 'step' or 'round'")
    remaining = iter(events)
    first = next(remaining, None)
    if first is None:
        raise SceneError("there are no events; record the episode with record=True")
    following = tracker(first)
    scenes: list[Scene] = []
    fresh, step = True, -1
    for event in remaining:
        try:
            kind = event["type"]
            acts = kind in ("message", "choice")
            if fresh and (acts and event["step"] > step if per == "step" else kind != "end"):
                following.step = event["step"]
                scenes.append(following.scene())
                fresh = False
            following.add(event)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise SceneError(f"an event of the record is damaged ({type(error).__name__}: {error})") from error
        if acts:
            step = event["step"]
        fresh = fresh or per == "step" or kind in ("round", "end")
    return [*scenes, following.scene()] if fresh else scenes
