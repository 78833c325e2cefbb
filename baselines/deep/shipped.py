"""The trained policies that come with the package, and how a policy is found by what a user types."""

from __future__ import annotations

from pathlib import Path

from llm_coop_envs.baselines.deep.folder import MANIFEST, POLICY
from llm_coop_envs.baselines.deep.network import SUFFIX, Network, read_network
from llm_coop_envs.core.settings import suggestion
from llm_coop_envs.errors import RunError, SettingsError

FOLDER = Path(__file__).parent / "shipped"


def shipped() -> dict[str, Path]:
    """The shipped policies' files by name."""
    return {path.stem: path for path in sorted(FOLDER.glob(f"*{SUFFIX}"))}


def trained_lines() -> dict[str, str]:
    """One line about each shipped policy, by the name it plays under."""
    lines = {}
    for name, path in shipped().items():
        about = read_network(path).about
        training = about["training"]
        where = [training["env"], *([training["preset"]] if training["preset"] else [])]
        where += [f"{field}={value}" for field, value in training["settings"].items()]
        how = f"{about['done']:,} steps, seed {training['seed']}"
        lines[f"sb3:{name}"] = f"{training['algo']} on {', '.join(where)}; {how}"
    return lines


def find_network(argument: str) -> Network:
    """A network by a shipped policy's name, a training folder or a file.

    Raises:
        SettingsError: there is no such policy.
        RunError: the file is no trained policy.
    """
    known = shipped()
    if argument in known:
        return read_network(known[argument])
    path = Path(argument).expanduser()
    if not argument or not path.exists():
        why = f"there is no trained policy of that name and no such file; {suggestion(argument, known)}"
        raise SettingsError("policy", f"sb3:{argument}", why)
    if not path.is_dir():
        return read_network(path)
    if (path / POLICY).is_file():
        return read_network(path / POLICY)
    if (path / MANIFEST).is_file():
        raise RunError(f"{path}: this training has no policy yet; wait for its first evaluation, or train on")
    raise RunError(f"{path}: is no training folder (there is no {MANIFEST} in it)")
