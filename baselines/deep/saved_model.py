"""Read networks from the files of stable-baselines3 (`model.save("model.zip")`) without executing anything.

Only the weights are loaded, and the description is read as JSON; its pickled objects are ignored. Models can play that
were trained on `NumericView` or on the numeric form of `SingleAgentView`.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import numpy as np

from llm_coop_envs.baselines.deep.network import LOGITS, NUMBERS, VALUES, Network
from llm_coop_envs.errors import RunError
from llm_coop_envs.util.extras import need
from llm_coop_envs.util.opening import DAMAGED, check_archive, open_memory

_VALUES, _POLICY, _LAST = "q_net.q_net.", "mlp_extractor.policy_net.", "action_net."


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
        first = _VALUES if any(name.startswith(_VALUES) for name in weights) else _POLICY
        activation = str(policy_arguments.get("activation_fn", "ReLU" if first == _VALUES else "Tanh")).lower()
        activation_name = next(name for name in ("tanh", "relu") if f"{name}'" in f"{activation}'")
        chain = sorted({int(name.split(".")[2]) for name in weights if name.startswith(first)})
        prefixes = [f"{first}{k}." for k in chain] + ([] if first == _VALUES else [_LAST])
        layers = tuple((_plain(weights[f"{at}weight"]), _plain(weights[f"{at}bias"])) for at in prefixes)
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror or error})") from error
    except (UnpicklingError, RuntimeError, *DAMAGED) as error:
        raise RunError(
            f"{path}: is no model of stable-baselines3 with layers of tanh or ReLU ({type(error).__name__}); "
            "use policies.from_function for another one"
        ) from error
    output = VALUES if first == _VALUES else NUMBERS if "log_std" in weights else LOGITS
    return Network(scenario="", features=(), layers=layers, activation=activation_name, output=output)


def _plain(tensor: Any) -> Any:
    return tensor.numpy().astype(np.float32)
