"""Checkpoints of a training, from which it continues as if it had never stopped, as a file of plain arrays.

A checkpoint holds the learner's weights and its optimisers, the transitions of DQN and SAC, every random stream (also
the global ones of NumPy and torch, which stable-baselines3 draws from), and the environments in the middle of their
episodes. The file holds numbers and JSON only; reading it executes nothing.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch  # pyright: ignore[reportMissingImports]

from llm_coop_envs.errors import RunError
from llm_coop_envs.storage.arrays import Arrays, pack_arrays, read_arrays
from llm_coop_envs.storage.files import write_whole
from llm_coop_envs.util.opening import DAMAGED
from llm_coop_envs.util.packing import generator_from, generator_state

_COUNTS = ("num_timesteps", "_n_updates", "_n_calls", "_episode_num", "exploration_rate")
_REPLAY = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


def save_checkpoint(path: Path, models: Sequence[Any]) -> None:
    """Write a checkpoint of a learner, or of those of all seats, between two rollouts.

    Raises:
        RunError: it cannot be written.
    """
    numpy_state = np.random.get_state(legacy=False)
    arrays: Arrays = {"torch": torch.get_rng_state().numpy(), "numpy": numpy_state["state"]["key"]}
    state: dict[str, Any] = {
        "numpy": {name: numpy_state[name] for name in ("has_gauss", "gauss")} | {"pos": numpy_state["state"]["pos"]},
        "rows": models[0].env.unwrapped.rows.get_state(),
    }
    for seat, model in enumerate(models):
        own, learner_state = _pack_learner(model)
        arrays |= {_prefix(seat) + name: value for name, value in own.items()}
        state |= {_prefix(seat) + name: value for name, value in learner_state.items()}
    write_whole(path, pack_arrays(arrays, state, level=1))


def _prefix(seat: int) -> str:
    """The prefix of a seat's entries; empty for the first seat or the only learner."""
    return f"seat_{seat}/" if seat else ""


def _seat_entries(saved: Mapping[str, Any], seat: int) -> dict[str, Any]:
    """The entries of one seat, without their prefix."""
    prefix = _prefix(seat)
    return {name.removeprefix(prefix): value for name, value in saved.items() if name.startswith(prefix)}


def _pack_learner(model: Any) -> tuple[Arrays, dict[str, Any]]:
    """The arrays and the other state of one learner."""
    arrays: Arrays = {"last_obs": model._last_obs, "last_starts": np.asarray(model._last_episode_starts)}
    for name, value in model.policy.state_dict().items():
        arrays[f"policy/{name}"] = value.cpu().numpy()
    for prefix, optimizer in _optimizers(model).items():
        for index, parts in optimizer.state_dict()["state"].items():
            for name, value in parts.items():
                arrays[f"{prefix}/{index}/{name}"] = value.cpu().numpy()
    arrays |= {f"tensor/{name}": tensor.detach().numpy() for name, tensor in _tensors(model).items()}
    state = {
        "counts": {name: getattr(model, name) for name in _COUNTS if hasattr(model, name)},
        "choices": generator_state(model.action_space.np_random),
    }
    replay = getattr(model, "replay_buffer", None)
    if replay is not None:
        filled = replay.buffer_size if replay.full else replay.pos
        state["replay"] = {"pos": replay.pos, "full": replay.full}
        arrays |= {f"replay/{name}": getattr(replay, name)[:filled] for name in _REPLAY}
    return arrays, state


def _optimizers(model: Any) -> dict[str, torch.optim.Optimizer]:
    """A learner's optimisers by the prefix of their entries: `optimizer`, or `actor.optimizer` and so on."""
    names = [name for name in model._get_torch_save_params()[0] if name != "policy"]
    return {name.removeprefix("policy."): operator.attrgetter(name)(model) for name in names}


def _tensors(model: Any) -> dict[str, torch.Tensor]:
    """What a learner changes besides its networks, such as SAC's temperature."""
    return {name: getattr(model, name) for name in model._get_torch_save_params()[1] if hasattr(model, name)}


def load_checkpoint(path: Path, models: Sequence[Any]) -> None:
    """Restore fresh learners of the same settings from a checkpoint.

    Raises:
        RunError: the file is damaged, or belongs to other settings.
    """
    try:
        arrays, state = read_arrays(path)
        for seat, model in enumerate(models):
            _restore(model, _seat_entries(arrays, seat), _seat_entries(state, seat))
        models[0].env.unwrapped.rows.set_state(state["rows"])
        # The global streams come last, because making the learners drew from them.
        torch.set_rng_state(torch.as_tensor(arrays["torch"]))
        np.random.set_state(
            {
                "bit_generator": "MT19937",
                "state": {"key": arrays["numpy"], "pos": state["numpy"]["pos"]},
                "has_gauss": state["numpy"]["has_gauss"],
                "gauss": state["numpy"]["gauss"],
            }
        )
    except (*DAMAGED, RuntimeError, OSError) as error:
        reason = getattr(error, "strerror", None) or str(error).split("\n")[0]
        raise RunError(f"{path}: cannot be continued ({reason}); train again into another folder with -o") from error


def _restore(model: Any, arrays: Arrays, state: dict[str, Any]) -> None:
    model.policy.load_state_dict(
        {name: torch.as_tensor(arrays[f"policy/{name}"]) for name in model.policy.state_dict()}
    )
    for prefix, optimizer in _optimizers(model).items():
        moments: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in arrays.items():
            if name.startswith(f"{prefix}/"):
                _, index, part = name.split("/")
                moments.setdefault(int(index), {})[part] = torch.as_tensor(value)
        optimizer.load_state_dict({**optimizer.state_dict(), "state": moments})
    for name, tensor in _tensors(model).items():
        tensor.data.copy_(torch.as_tensor(arrays[f"tensor/{name}"]))
    if "replay" in state:
        replay = model.replay_buffer
        for name in _REPLAY:
            saved = arrays[f"replay/{name}"]
            getattr(replay, name)[: len(saved)] = saved
        replay.pos, replay.full = state["replay"]["pos"], state["replay"]["full"]
    model._last_obs = arrays["last_obs"]
    model._last_episode_starts = arrays["last_starts"]
    for name, value in state["counts"].items():
        setattr(model, name, value)
    model.action_space._np_random = generator_from(state["choices"])
