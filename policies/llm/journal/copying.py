"""Copy recorded answers for branched episodes, which share them with the episodes they continue."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from llm_coop_envs.policies.llm.journal.frames import FOLDER, default_suffix, explain_os_errors, packer
from llm_coop_envs.policies.llm.journal.questions import read_questions
from llm_coop_envs.policies.llm.journal.writer import opening_line
from llm_coop_envs.util.fastjson import dumps
from llm_coop_envs.util.paths import StrPath

_LINES = 200  # in a commit


def write_copies(source: StrPath, folder: StrPath, part: str, copies: Callable[[str, int], Iterable[str]]) -> Path:
    """Copy answers of one run into a new part of another run's journal. The file is complete or does not exist.

    Args:
        source: the run whose journal is read.
        folder: the run that gets the part.
        part: the part's name.
        copies: returns, for an episode's name and a step, the names of the episodes that get the answers given there.

    Returns:
        The part's file. Its answers cost nothing, because they were paid for elsewhere.

    Raises:
        JournalError: it cannot be written.
    """
    path = Path(folder) / FOLDER / f"{part}{default_suffix()}"
    pack = packer(default_suffix())
    aside = path.with_name(f".{path.name}.new")
    with explain_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            lines: list[Any] = [opening_line(f"copied-{part}", part)]
            for key, line in read_questions(source):
                lines += [_copied(line, name) for name in copies(key.episode, key.step)]
                if len(lines) >= _LINES:
                    file.write(pack(b"".join(dumps(line) + b"\n" for line in lines)))
                    lines = []
            if lines:
                file.write(pack(b"".join(dumps(line) + b"\n" for line in lines)))
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    return path


def _copied(line: dict[str, Any], episode: str) -> dict[str, Any]:
    """A recorded line under another episode's name, at no cost."""
    copy = {**line, "key": [episode, *line["key"][1:]]}
    if line["type"] == "answer":
        return {**copy, "from": "branch", "tokens": 0, "usd": 0.0, "reply": {**line["reply"], "cost": 0.0}}
    return {**copy, "error": {**line["error"], "maybe_paid": False}}
