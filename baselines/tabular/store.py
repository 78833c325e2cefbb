"""Learned tables as files: arrays and, as JSON, what they were learned by.

The same arrays and description give the same bytes. A table is named by its path, or by the name of a shipped one.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from llm_coop_envs.baselines.tabular.settings import LEARNINGS, Learning, check_seed
from llm_coop_envs.core.settings import suggestion
from llm_coop_envs.errors import LlmCoopError, RunError

SHIPPED = Path(__file__).parent / "shipped"
SUFFIX = ".npz"
_ABOUT = "about"

Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True, kw_only=True)
class StoredTable:
    """A table and where it comes from.

    Attributes:
        learning: the settings it was learned with.
        seed: the seed.
        episodes: after how many episodes.
        arrays: what was learned.
    """

    learning: Learning
    seed: int
    episodes: int
    arrays: Arrays

    @property
    def scenario(self) -> str:
        """The scenario it plays."""
        return self.learning.scenario

    def about(self) -> dict[str, Any]:
        """All but the arrays, as plain data."""
        return {
            "scenario": self.scenario,
            "learning": self.learning.to_json(),
            "seed": self.seed,
            "episodes": self.episodes,
        }


def save(table: StoredTable, path: Path) -> None:
    """Write a table, at once or not at all.

    Raises:
        RunError: the file cannot be written.
    """
    about = np.frombuffer(json.dumps(table.about(), sort_keys=True).encode(), dtype=np.uint8)
    content: dict[str, Any] = {_ABOUT: about, **table.arrays}
    unfinished = path.with_name(path.name + ".part")
    try:
        with unfinished.open("wb") as file:
            np.savez_compressed(file, **content)
        unfinished.replace(path)
    except OSError as error:
        raise RunError(f"{path}: cannot be written ({error.strerror or error}); choose another folder") from error


def load(name: str | Path) -> StoredTable:
    """Read a table.

    Args:
        name: a path, or the name of a shipped table.

    Raises:
        RunError: there is no such table, or the file is no table.
    """
    path = find(name)
    try:
        with np.load(path, allow_pickle=False) as data:
            arrays = {key: data[key] for key in data.files}
        about = json.loads(arrays.pop(_ABOUT).tobytes())
        kind = LEARNINGS[about["scenario"]]
        return StoredTable(
            learning=kind.from_json(about["learning"]),
            seed=check_seed(about["seed"]),
            episodes=about["episodes"],
            arrays=arrays,
        )
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror or error}); train a table anew") from error
    except (AttributeError, KeyError, TypeError, ValueError, zipfile.BadZipFile, EOFError, LlmCoopError) as error:
        raise RunError(f"{path}: is no table of the tabular learners; train one, or name a shipped one") from error


def shipped() -> list[str]:
    """The names of the shipped tables."""
    return sorted(path.stem for path in SHIPPED.glob("*" + SUFFIX))


def find(name: str | Path) -> Path:
    """The file of a table.

    Raises:
        RunError: there is none.
    """
    inside = SHIPPED / f"{name}{SUFFIX}"
    if str(name) in shipped():
        return inside
    path = Path(name)
    if path.is_dir() and (path / "table.npz").is_file():
        return path / "table.npz"
    if path.is_file():
        return path
    raise RunError(
        f"there is no table '{name}': neither a file nor a shipped table; {suggestion(str(name), shipped())}"
    )
