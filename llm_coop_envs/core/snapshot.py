"""Snapshots: the whole state of an environment as JSON data, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from llm_coop_envs.core.channels import Audience
from llm_coop_envs.errors import SnapshotError

if TYPE_CHECKING:
    from llm_coop_envs.core.env import ScenarioEnv

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


def snapshot_env(env: ScenarioEnv) -> dict[str, Any]:
    """Everything but the recorded events of `env`."""
    if not env._started:
        raise SnapshotError("get_state() was called before reset(); there is no episode to save yet")
    return {
        "format": FORMAT,
        "scenario": env.metadata["name"],
        "settings": env.settings.to_json(),
        "generator": generator_state(env.np_random),
        "cycles": env.cycles,
        "round": env.round,
        "phase": env.phase,
        "over": env.over,
        "truncated": env._truncated,
        "rewards": env._rewards.tolist(),
        "alive": env._alive.tolist(),
        "flags": [[i, list(flags)] for i, flags in env._flags.items()],
        "levels": [level.tolist() for level in env._levels],
        "level": env._level,
        "orders": [list(order) for order in env._orders],
        "audience": env._audience.to_json(),
        "conversation": env.conversation.get_state(),
        "own": env._snapshot(),
    }


def restore_env(env: ScenarioEnv, state: Mapping[str, Any]) -> None:
    """Put `env` into a saved state."""
    if not isinstance(state, Mapping) or state.get("format") != FORMAT:
        raise SnapshotError(f"this is no state of format {FORMAT} that get_state() made")
    if state["scenario"] != env.metadata["name"]:
        raise SnapshotError(f"this state is of {state['scenario']}, not of {env.metadata['name']}")
    mine = env.settings.to_json()
    if state["settings"] != mine:
        theirs = state["settings"]
        changed = sorted(k for k in {*mine, *theirs} if mine.get(k) != theirs.get(k))
        raise SnapshotError(
            "this state was made with other settings: "
            + ", ".join(f"{k}={theirs.get(k)!r} there, {mine.get(k)!r} here" for k in changed)
        )
    try:
        _restore(env, state)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise SnapshotError(f"this state is damaged ({type(error).__name__}: {error})") from error


def _restore(env: ScenarioEnv, state: Mapping[str, Any]) -> None:
    env._clear()
    env._np_random = generator_from(state["generator"])
    env.cycles = state["cycles"]
    env.round = state["round"]
    env.phase = state["phase"]
    env.over = state["over"]
    env._truncated = state["truncated"]
    env._rewards = np.array(state["rewards"], dtype=np.float64)
    env._alive = np.array(state["alive"], dtype=np.bool_)
    env._all_alive = bool(env._alive.all())
    env._flags = {i: tuple(flags) for i, flags in state["flags"]}
    env._levels = [np.array(level, dtype=np.intp) for level in state["levels"]]
    env._level = state["level"]
    env._who = env._levels[env._level] if env._level < len(env._levels) else env._everyone[:0]
    env._orders = [list(order) for order in state["orders"]]
    env._audience = Audience.from_json(state["audience"])
    env.conversation.set_state(state["conversation"])
    names = env.possible_agents
    env.agents = [] if env.over else [names[i] for i in np.flatnonzero(env._alive).tolist()]
    env._started = True
    env._restore(state["own"])
