"""Snapshots: the whole state of an environment as JSON data, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from llm_coop_envs.core.array_env import ArrayEnv
from llm_coop_envs.core.channels import Audience
from llm_coop_envs.errors import SnapshotError

FORMAT = 1


def generator_state(rng: np.random.Generator) -> dict[str, Any]:
    """A generator's state as JSON data; 128-bit integers as decimal strings, which every JSON reader keeps exact."""
    state = rng.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise SnapshotError(f"only PCG64 generators can be saved, not {state['bit_generator']}")
    return {
        "bit_generator": "PCG64",
        "state": str(state["state"]["state"]),
        "inc": str(state["state"]["inc"]),
        "has_uint32": int(state["has_uint32"]),
        "uinteger": int(state["uinteger"]),
    }


def generator_from(data: Mapping[str, Any]) -> np.random.Generator:
    """The generator that `generator_state` described."""
    bits = np.random.PCG64()
    bits.state = {
        "bit_generator": data["bit_generator"],
        "state": {"state": int(data["state"]), "inc": int(data["inc"])},
        "has_uint32": data["has_uint32"],
        "uinteger": data["uinteger"],
    }
    return np.random.Generator(bits)


def snapshot(game: ArrayEnv) -> dict[str, Any]:
    """Everything but the recorded events of a game."""
    if not game._started:
        raise SnapshotError("get_state() was called before reset(); there is no episode to save yet")
    return {
        "format": FORMAT,
        "scenario": game.name,
        "settings": game.settings.to_json(),
        "generator": generator_state(game.np_random),
        "cycles": game.cycles,
        "round": game.round,
        "phase": game.phase,
        "over": game.over,
        "truncated": game._truncated,
        "rewards": game._rewards.tolist(),
        "alive": game._alive.tolist(),
        "flags": [[i, list(flags)] for i, flags in game._flags.items()],
        "levels": [level.tolist() for level in game._levels],
        "level": game._level,
        "orders": [list(order) for order in game._orders],
        "audience": game._audience.to_json(),
        "conversation": game.conversation.get_state(),
        "own": game._snapshot(),
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
    game._np_random = generator_from(state["generator"])
    game.cycles = state["cycles"]
    game.round = state["round"]
    game.phase = state["phase"]
    game.over = state["over"]
    game._truncated = state["truncated"]
    game._rewards = np.array(state["rewards"], dtype=np.float64)
    game._alive = np.array(state["alive"], dtype=np.bool_)
    game._all_alive = bool(game._alive.all())
    game._flags = {i: tuple(flags) for i, flags in state["flags"]}
    game._levels = [np.array(level, dtype=np.intp) for level in state["levels"]]
    game._level = state["level"]
    game._who = game._levels[game._level] if game._level < len(game._levels) else game._everyone[:0]
    game._orders = [list(order) for order in state["orders"]]
    game._audience = Audience.from_json(state["audience"])
    game.conversation.set_state(state["conversation"])
    names = game.possible_agents
    game.agents = [] if game.over else [names[i] for i in np.flatnonzero(game._alive).tolist()]
    game._started = True
    game._restore(state["own"])
