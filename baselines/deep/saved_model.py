"""Read networks from the files of stable-baselines3 (`model.save("model.zip")`) without executing anything.

Only the weights are loaded, and the description is read as JSON; its pickled objects are ignored. Models can play that
were trained on `NumericView` or on the numeric form of `SingleAgentView`.
"""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.baselines.deep.network import LOGITS, NUMBERS, SQUASHED, VALUES, Network
from llm_coop_envs.errors import RunError
from llm_coop_envs.util.extras import need
from llm_coop_envs.util.opening import DAMAGED, check_archive, open_memory

#: How names of weights begin, for DQN, SAC, and PPO and A2C: of the hidden layers, and of the last layer's heads.
_HEADS: Mapping[str, tuple[str, ...]] = {
    "q_net.q_net.": (),
    "actor.latent_pi.": ("actor.mu.", "actor.log_std."),
    "mlp_extractor.policy_net.": ("action_net.",),
}
_VALUES, _ACTOR, _ = _HEADS
_ACTIVATIONS = {"tanh": "tanh", "relu": "relu", "leakyrelu": "leaky_relu"}


def read_saved(path: Path) -> Network:
    """Read the network in a file, which does not tell the scenario or the columns that it was trained on.

    Raises:
        RunError: the file is no saved model, or its network is no plain chain of layers.
        MissingExtra: torch is not installed.
    """
    torch = need("torch", f"reading {path}", "sb3")
    try:
        with zipfile.ZipFile(open_memory(path)) as archive:
            check_archive(archive)
            description = json.loads(archive.read("data"))
            weights = torch.load(io.BytesIO(archive.read("policy.pth")), map_location="cpu", weights_only=True)
        policy_arguments = description.get("policy_kwargs") or {}
        first = next(prefix for prefix in _HEADS if any(name.startswith(prefix) for name in weights))
        activation = str(policy_arguments.get("activation_fn", "ReLU" if first in (_VALUES, _ACTOR) else "Tanh"))
        activation_name = _ACTIVATIONS[activation.lower().rstrip("'>").rpartition(".")[2]]
        chain = sorted({int(name.split(".")[2]) for name in weights if name.startswith(first)})
        groups = [(f"{first}{k}.",) for k in chain] + ([_HEADS[first]] if _HEADS[first] else [])
        layers = tuple(
            (as_array([weights[f"{at}weight"] for at in heads]), as_array([weights[f"{at}bias"] for at in heads]))
            for heads in groups
        )
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (UnpicklingError, RuntimeError, *DAMAGED) as error:
        raise RunError(
            f"{path}: is no model of stable-baselines3 with layers of tanh or (leaky) ReLU ({type(error).__name__}); "
            "use policies.from_function for another one"
        ) from error
    output = {_VALUES: VALUES, _ACTOR: SQUASHED}.get(first, NUMBERS if "log_std" in weights else LOGITS)
    return Network(scenario="", features=(), layers=layers, activation=activation_name, output=output)


def as_array(tensors: Sequence[Any]) -> NDArray[np.float32]:
    """Tensors, one below the other, as one array: heads side by side are one layer."""
    return np.concatenate([tensor.detach().numpy() for tensor in tensors]).astype(np.float32)
