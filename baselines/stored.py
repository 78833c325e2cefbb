"""Look up a learned policy by what a user types: the name of a shipped one, a file, or a run folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.storage.folder import MANIFEST
from llm_coop_envs.util.checks import suggestion
from llm_coop_envs.util.trust import check_folder

SUFFIX = ".npz"


def shipped_in(folder: Path) -> dict[str, Path]:
    """The shipped files of a folder, by name."""
    return {path.stem: path for path in sorted(folder.glob(f"*{SUFFIX}"))}


def find_stored(policy: str, argument: str, shipped: Mapping[str, Path], result: str = "") -> Path:
    """Find a file by the name of a shipped one, by its path, or by a run folder that holds `result` (if not empty).

    Raises:
        SettingsError: there is no such file.
        RunError: the folder holds no such file, or not yet.
        TrustError: the path is not trusted.
    """
    if argument in shipped:
        return shipped[argument]
    path = Path(argument).expanduser()
    check_folder("trained player", path)
    if not argument or not path.exists():
        reason = f"is neither shipped nor a file nor a run folder; {suggestion(argument, shipped)}"
        raise SettingsError("policy", f"{policy}:{argument}", reason)
    if not path.is_dir():
        return path
    if not result or not (path / MANIFEST).is_file():
        raise RunError(f"{path}: is no run folder of '{policy}' (there is no {MANIFEST} in it); give another one")
    if not (path / result).is_file():
        raise RunError(f"{path}: there is no {result} yet; go on with that run first")
    return path / result


def check_played(policy: str, scenario: str, learned: str) -> None:
    """Raise `SettingsError` if a policy was learned in another scenario than it plays; `scenario` may be empty."""
    if scenario and learned != scenario:
        raise SettingsError("policy", policy, f"was trained on {learned}, not on {scenario}")


def check_options(options: Mapping[str, Any], names: tuple[str, ...] = ()) -> None:
    """Raise `SettingsError` for an option that a learned policy does not have."""
    for name, value in options.items():
        if name not in names:
            raise SettingsError(name, value, f"is no option of this policy; known are {', '.join(names) or 'none'}")
