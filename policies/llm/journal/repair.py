"""Mending a journal, and saying how a question differs from the recorded one."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import time
from pathlib import Path
from typing import Any

from llm_coop_envs.policies.llm.chat import ChatRequest, RequestKey
from llm_coop_envs.policies.llm.journal.errors import explained
from llm_coop_envs.policies.llm.journal.frames import Frame, Gap, read_frames, suffix_of
from llm_coop_envs.policies.llm.journal.lock import PartLock
from llm_coop_envs.policies.llm.journal.reader import Answers, PartReport, journal_files, lines_of, read_part

_SHOWN = 80


def set_aside(path: Path, gap: Gap) -> Path:
    """Copy unreadable bytes into a file of their own.

    Raises:
        JournalError: it cannot be written.
    """
    aside = path.with_name(f"{path.name}.torn-{gap.start}-{time.time_ns()}")
    with explained(path), path.open("rb") as file, aside.open("wb") as copy:
        file.seek(gap.start)
        copy.write(file.read(gap.end - gap.start))
        copy.flush()
        os.fsync(copy.fileno())
    return aside


def damage_sentence(report: PartReport) -> str:
    """What is wrong with a part, and what can be saved."""
    gaps = ", ".join(f"bytes {gap.start} to {gap.end} ({gap.why})" for gap in report.damage)
    return (
        f"{report.path}: is damaged at {gaps}; {report.answers} answers before and after can be read. Restore the file "
        "from a copy, or keep the readable answers and ask the others again: llm-coop journal --salvage RUN"
    )


def describe(folder: Path) -> list[str]:
    """What a run's journal holds, what it cost, and what is wrong with it: a few sentences per part.

    Raises:
        JournalError: a part cannot be opened, or a newer version wrote it.
    """
    said = []
    for path in journal_files(folder):
        report = read_part(path, Answers())
        models = ", ".join(f"{count} by {model}" for model, count in sorted(report.models.items())) or "none"
        money = f"${report.cost:.4f}" + (f" and {report.unpriced} answers of unknown price" if report.unpriced else "")
        said.append(
            f"{path}: {report.answers} answers ({models}; {report.cached} from a cache) in {report.calls} attempts, "
            f"{report.prompt_tokens} + {report.completion_tokens} tokens, {money}"
        )
        if report.errors:
            kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(report.errors.items()))
            said.append(f"{path}: failed attempts: {kinds}")
        if report.lost:
            said.append(f"{path}: {report.lost} attempts without an answer may be on the bill (${report.lost_usd:.4f})")
        if report.torn is not None:
            size = report.torn.end - report.torn.start
            said.append(f"{path}: the last commit was cut short ({size} bytes); the next run moves it aside")
        if report.damage:
            said.append(damage_sentence(report))
    return said


def salvage(folder: Path) -> list[str]:
    """Write every damaged part anew from what can be read; the damaged file is kept beside it.

    Args:
        folder: the run's folder; nobody may be writing it.

    Returns:
        What was done, in sentences.

    Raises:
        JournalError: a part is being written, or cannot be.
    """
    done = []
    for path in journal_files(folder):
        report = read_part(path, Answers())
        if not report.damage:
            continue
        with explained(path):
            descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
            try:
                lock = PartLock(path, descriptor)
                try:
                    done.append(_rewrite(path, report))
                finally:
                    lock.release()
            finally:
                os.close(descriptor)
    return done


def _rewrite(path: Path, report: PartReport) -> str:
    """Replace a damaged part by its readable commits."""
    gaps = {gap.start for gap in report.gaps}
    new = path.with_name(f"{path.name}.new")
    size = path.stat().st_size
    edges = sorted({0, size} | {edge for gap in report.gaps for edge in (gap.start, gap.end)})
    with path.open("rb") as old, new.open("wb") as file:
        for start, end in itertools.pairwise(edges):
            if start not in gaps:
                old.seek(start)
                file.write(old.read(end - start))
        file.flush()
        os.fsync(file.fileno())
    aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
    try:
        os.link(path, aside)
    except OSError:  # a file system without links
        shutil.copyfile(path, aside)
    new.replace(path)
    lost = sum(gap.end - gap.start for gap in report.gaps)
    return (
        f"{path}: written anew with {report.answers} answers, without {lost} unreadable bytes; the old file is "
        f"{aside.name}"
    )


def difference(folder: Path, key: RequestKey, request: ChatRequest) -> str:
    """How a question differs from the one that is recorded under its key, for a message."""
    for path in journal_files(folder):
        with path.open("rb") as file:
            for frame in read_frames(file, suffix_of(path)):
                if not isinstance(frame, Frame):
                    continue
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    for line in lines_of(frame):
                        name = line.get("key")
                        if name and RequestKey(*name) == key and "request" in line:
                            return _compare(line["request"], request.plain())
    return "it cannot be said in what"


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
        lines, new_lines = text.splitlines(), new_text.splitlines()
        for index in range(max(len(lines), len(new_lines))):
            was = lines[index] if index < len(lines) else ""
            now = new_lines[index] if index < len(new_lines) else ""
            if was != now:
                return f"message {number}, line {index + 1} was {_short(was, now)!r}, is now {_short(now, was)!r}"
    return "only in white space at the ends of lines"


def _short(text: str, other: str) -> str:
    """The part of a line around its first difference from another."""
    pairs = zip(text, other, strict=False)
    common = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(text), len(other)))
    start = max(0, common - _SHOWN // 2)
    return ("…" if start else "") + text[start : start + _SHOWN] + ("…" if len(text) > start + _SHOWN else "")
