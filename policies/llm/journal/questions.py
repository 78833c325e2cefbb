"""The questions of a journal, and how one differs from the recorded one."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llm_coop_envs.policies.llm.chat import ChatRequest, RequestKey
from llm_coop_envs.policies.llm.journal.frames import Gap, journal_files, read_commits

_SHOWN = 80


def read_questions(folder: Path, gaps: list[str] | None = None) -> Iterator[tuple[RequestKey, Any]]:
    """The lines that hold a question and what came of it, of all parts.

    What cannot be read is left out; `gaps` gets a sentence on each.
    """
    for path in journal_files(folder):
        for commit in read_commits(path):
            if isinstance(commit, Gap):
                if gaps is not None:
                    gaps.append(f"{path}: {commit.size} bytes from byte {commit.start} cannot be read ({commit.why})")
            else:
                with contextlib.suppress(KeyError, TypeError, ValueError):  # `read_run` tells of them
                    for line in commit.lines():
                        if "request" in line:
                            yield RequestKey(*line["key"]), line


def difference(folder: Path, key: RequestKey, request: ChatRequest) -> str:
    """How a question differs from the one that is recorded under its key, for a message."""
    recorded = next((line["request"] for name, line in read_questions(folder) if name == key), None)
    return "it cannot be said in what" if recorded is None else _compare(recorded, request.plain())


def _compare(old: dict[str, Any], new: dict[str, Any]) -> str:
    for name in sorted({*old, *new} - {"messages"}):
        if old.get(name) != new.get(name):
            return f"{name} was {old.get(name)!r}, is now {new.get(name)!r}"
    before, after = old["messages"], new["messages"]
    if len(before) != len(after):
        return f"it had {len(before)} messages, has now {len(after)}"
    for number, ((role, text), (new_role, new_text)) in enumerate(zip(before, after, strict=True), start=1):
        if role != new_role:
            return f"message {number} was the {role}'s, is now the {new_role}'s"
        lines = itertools.zip_longest(text.splitlines(), new_text.splitlines(), fillvalue="")
        for index, (was, now) in enumerate(lines, start=1):
            if was != now:
                return f"message {number}, line {index} was {_short(was, now)!r}, is now {_short(now, was)!r}"
    return "only in white space at the ends of lines"


def _short(text: str, other: str) -> str:
    """The part of a line around its first difference from another."""
    pairs = itertools.zip_longest(text, other)
    common = next(index for index, (one, another) in enumerate(pairs) if one != another)
    start = max(0, common - _SHOWN // 2)
    return ("…" if start else "") + text[start : start + _SHOWN] + ("…" if len(text) > start + _SHOWN else "")
