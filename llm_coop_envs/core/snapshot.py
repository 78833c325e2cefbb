"""Snapshots: everything about an environment as JSON data, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_coop_envs.core.array_env import ArrayEnv
from llm_coop_envs.errors import SnapshotError
from llm_coop_envs.util.opening import DAMAGED

FORMAT = 2


def snapshot(env: ArrayEnv) -> dict[str, Any]:
    """Save an environment's episode, the recorded events apart, with the scenario and settings it belongs to.

    Raises:
        SnapshotError: before the first `reset`.
    """
    if not env.is_started:
        raise SnapshotError("get_state() was called before reset(); there is no episode to save yet")
    return {"format": FORMAT, "scenario": env.name, "settings": env.settings.to_json(), **env.save_episode()}


def restore(env: ArrayEnv, state: Mapping[str, Any]) -> None:
    """Continue a saved episode in an environment of the same scenario and settings.

    Raises:
        SnapshotError: the state belongs to another scenario, version or settings, or is damaged.
    """
    if not isinstance(state, Mapping) or state.get("format") != FORMAT:
        raise SnapshotError(f"this is no state of format {FORMAT} that get_state() made")
    mine, theirs, scenario = env.settings.to_json(), state.get("settings"), state.get("scenario")
    if not isinstance(scenario, str) or not isinstance(theirs, Mapping):
        raise SnapshotError("this state is damaged: it says no scenario, or no settings")
    if scenario != env.name:
        raise SnapshotError(f"this state is of {scenario}, not of {env.name}")
    if theirs != mine:
        changed = sorted(name for name in {*mine, *theirs} if mine.get(name) != theirs.get(name))
        raise SnapshotError(
            "this state was made with other settings: "
            + ", ".join(f"{name}={theirs.get(name)!r} there, {mine.get(name)!r} here" for name in changed)
        )
    try:
        env.load_episode(state)
    except DAMAGED as error:
        raise SnapshotError(f"this state is damaged ({type(error).__name__}: {error})") from error
