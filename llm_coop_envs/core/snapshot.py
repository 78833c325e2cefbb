"""Snapshots: everything about an environment as JSON data, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llm_coop_envs.core.array_env import ArrayEnv
from llm_coop_envs.core.channels import Audience
from llm_coop_envs.errors import SnapshotError
from llm_coop_envs.util.packing import packed, unpacked

FORMAT = 2
_KEPT = (
    *("cycles", "round", "phase", "over", "_truncated", "_np_random", "_rewards", "_alive", "_flags"),
    *("_levels", "_level", "_orders"),
)


def snapshot(game: ArrayEnv) -> dict[str, Any]:
    """Everything but the recorded events of a game."""
    if not game._started:
        raise SnapshotError("get_state() was called before reset(); there is no episode to save yet")
    _ = game.np_random
    return {
        "format": FORMAT,
        "scenario": game.name,
        "settings": game.settings.to_json(),
        "game": {name: packed(getattr(game, name)) for name in _KEPT},
        "key": [str(part) for part in game._key],
        "audience": packed(game._audience.heard_by),
        "conversation": game.conversation.get_state(),
        "own": game._snapshot(),
        **({} if game._notices is None else {"notices": game._notices.get_state()}),
        **({} if game.regulator is None else {"regulator": game.regulator.get_state()}),
    }


def restore(game: ArrayEnv, state: Mapping[str, Any]) -> None:
    """Put a game into a saved state."""
    if not isinstance(state, Mapping) or state.get("format") != FORMAT:
        raise SnapshotError(f"this is no state of format {FORMAT} that get_state() made")
    if state["scenario"] != game.name:
        raise SnapshotError(f"this state is of {state['scenario']}, not of {game.name}")
    mine = game.settings.to_json()
    if state["settings"] != mine:
        theirs = state["settings"]
        changed = sorted(k for k in {*mine, *theirs} if mine.get(k) != theirs.get(k))
        raise SnapshotError(
            "this state was made with other settings: "
            + ", ".join(f"{k}={theirs.get(k)!r} there, {mine.get(k)!r} here" for k in changed)
        )
    try:
        _restore(game, state)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise SnapshotError(f"this state is damaged ({type(error).__name__}: {error})") from error


def _restore(game: ArrayEnv, state: Mapping[str, Any]) -> None:
    game._clear()
    for name in _KEPT:
        setattr(game, name, unpacked(state["game"][name]))
    game._audience = Audience(unpacked(state["audience"]))
    game._all_alive = bool(game._alive.all())
    game._who = game._levels[game._level] if game._level < len(game._levels) else game._everyone[:0]
    game.conversation.set_state(state["conversation"])
    game.conversation.now = game.round
    first, second = state.get("key", (0, 0))
    game._key = game.conversation.key = int(first), int(second)
    names = game.possible_agents
    game.agents = [] if game.over else [names[i] for i in game.live.tolist()]
    game._started = True
    game._told_changes = game.settings.in_force(game.round)
    game._restore(state["own"])
    if game._notices is not None:
        game._notices.set_state(state["notices"])
    if game.regulator is not None:
        game.regulator.set_state(state["regulator"])
