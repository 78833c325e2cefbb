"""The report that `llm-coop report` wrote of a run: its address on the page, and its files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from llm_coop_envs.page.known_runs import KnownRuns
from llm_coop_envs.util.opening import lies_inside

FOLDER, PAGE = "report", "index.html"
MOST_FILES = 2_000


def report_address(name: str, folder: Path) -> str | None:
    """The address of a run's report on the page; `None` if none was written."""
    return f"report/{_key(name)}/{PAGE}" if (folder / FOLDER / PAGE).is_file() else None


def find_file(known_runs: KnownRuns, key: str, name: str) -> Path | None:
    """A file of a report by the key of its run and its name below the report's folder; `None` if there is none.

    Both are looked up, and never become part of a path.
    """
    folder = next((path for run, path in known_runs.folders().items() if _key(run) == key), None)
    if folder is None:
        return None
    found = 0
    for where, _, files in os.walk(folder / FOLDER):
        for file in files:
            path = Path(where, file)
            found += 1
            if found > MOST_FILES:
                return None
            if path.relative_to(folder / FOLDER).as_posix() == name and lies_inside(path):
                return path
    return None


def _key(name: str) -> str:
    """A run's name in an address, where its slashes would be folders."""
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:16]
