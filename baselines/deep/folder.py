"""The folder of a training, which says what is in it and how far it is.

train.json        what is trained, with which versions, in which sessions
checkpoint.npz    everything needed to go on
policy.npz        the latest policy; `policies/` holds one for each evaluation
evaluations.csv   one row per evaluated episode
logs/1/, ...      what stable-baselines3 logs, per session (CSV, and TensorBoard where it is installed)
model.zip         the finished learner, as stable-baselines3 saves it
"""

from __future__ import annotations

import importlib.metadata
import json
import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llm_coop_envs
from llm_coop_envs.baselines.deep.files import write_whole
from llm_coop_envs.baselines.deep.settings import TrainSettings, changed
from llm_coop_envs.errors import RunError

FORMAT = 1
MANIFEST, CHECKPOINT, POLICY, POLICIES = "train.json", "checkpoint.npz", "policy.npz", "policies"
EVALUATIONS, LOGS, MODEL = "evaluations.csv", "logs", "model.zip"
_LIBRARIES = ("gymnasium", "numpy", "pettingzoo", "sb3-contrib", "stable-baselines3", "torch")


@dataclass
class Folder:
    """An open training folder.

    Attributes:
        path: where it is.
        manifest: the content of `train.json`.
    """

    path: Path
    manifest: dict[str, Any]

    @property
    def done(self) -> int:
        """How many steps are behind the checkpoint."""
        return int(self.manifest["done"])

    def write(self, **changes: Any) -> None:
        """Change the manifest.

        Raises:
            RunError: it cannot be written.
        """
        self.manifest |= changes
        with write_whole(self.path / MANIFEST) as file:
            file.write((json.dumps(self.manifest, indent=1, ensure_ascii=False) + "\n").encode())


def open_folder(path: Path, settings: TrainSettings) -> Folder:
    """Begin a training in a folder, or continue the one that is there.

    Raises:
        RunError: the folder holds something else, or cannot be written.
    """
    if (path / MANIFEST).is_file():
        folder = Folder(path, read_manifest(path))
        held = folder.manifest["settings"]
        different = changed(held, settings.to_json())
        if different:
            there = ", ".join(f"{name}={held[name]!r}" for name in different)
            raise RunError(
                f"{path}: holds a training with {there}; give the same settings to continue it, or another folder "
                "with -o"
            )
        if settings.steps < held["steps"]:
            raise RunError(
                f"{path}: was begun for {held['steps']} steps; give as many or more, or another folder with -o"
            )
        return folder
    try:
        held_names = sorted(p.name for p in path.iterdir() if not p.name.startswith(".")) if path.exists() else []
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        why = error.strerror or str(error)
        raise RunError(f"{path}: cannot be written ({why}); choose a folder you can write to with -o") from error
    if held_names:
        raise RunError(f"{path}: is neither empty nor a training (it holds {held_names[0]}); choose another with -o")
    folder = Folder(path, {"format": FORMAT, "done": 0, "settings": settings.to_json(), "sessions": []})
    folder.write()
    return folder


def read_manifest(path: Path) -> dict[str, Any]:
    """The manifest of a training folder.

    Raises:
        RunError: there is none, or it is damaged or of another format.
    """
    file = path / MANIFEST
    try:
        manifest = json.loads(file.read_bytes())
        if manifest["format"] != FORMAT:
            raise RunError(
                f"{file}: has format {manifest['format']!r}, this version of llm-coop-envs reads format {FORMAT}; "
                "use the version that wrote it, or train again into another folder"
            )
        _ = manifest["settings"]["env"], int(manifest["done"]), list(manifest["sessions"])
    except FileNotFoundError as error:
        raise RunError(f"{path}: is no training folder (there is no {MANIFEST} in it)") from error
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise RunError(f"{file}: cannot be read ({error}); train again into another folder with -o") from error
    return dict(manifest)


def versions() -> dict[str, str]:
    """The versions that results may depend on."""
    found = {"llm-coop-envs": llm_coop_envs.__version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
