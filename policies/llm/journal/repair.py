"""Describe a journal's content in sentences, and repair a damaged journal."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from pathlib import Path

from llm_coop_envs.policies.llm.journal.frames import Gap, explain_os_errors, journal_files
from llm_coop_envs.policies.llm.journal.lock import PartLock
from llm_coop_envs.policies.llm.journal.records import Answers, PartReport, read_part
from llm_coop_envs.storage.files import atomic_path
from llm_coop_envs.storage.machine import HERE, Machine
from llm_coop_envs.util.opening import open_file
from llm_coop_envs.util.paths import StrPath


def describe(report: PartReport) -> list[str]:
    """Describe a part in sentences: its answers, its cost, and its damage."""
    path = report.path
    models = ", ".join(f"{count} by {model}" for model, count in sorted(report.models.items())) or "none"
    money = f"${report.cost:.4f}" + (f" and {report.unpriced} answers of unknown price" if report.unpriced else "")
    sentences = [
        f"{path}: {report.answers} answers ({models}; {report.cached} from a cache) in {report.calls} attempts, "
        f"{report.prompt_tokens} + {report.completion_tokens} tokens, {money}"
    ]
    if report.errors:
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(report.errors.items()))
        sentences.append(f"{path}: failed attempts: {kinds}")
    if report.lost:
        sentences.append(
            f"{path}: {report.lost} attempts without an answer may be on the bill (${report.lost_usd:.4f})"
        )
    if report.torn is not None:
        sentences.append(
            f"{path}: the last commit was cut short ({report.torn.size} bytes); the next run moves it aside"
        )
    if report.damage is not None:
        sentences.append(report.damage)
    return sentences


def cut_back(path: Path, descriptor: int, tail: Gap, machine: Machine = HERE) -> Path:
    """Move a commit that was cut short from an open part into a separate file. No answer in it was ever used."""
    aside = path.with_name(f"{path.name}.torn-{tail.start}-{time.time_ns()}")
    with explain_os_errors(path), machine.reader(path) as file:
        file.seek(tail.start)
        machine.write_whole(aside, file.read(tail.size))
        machine.cut(descriptor, tail.start)
        machine.sync(descriptor)
    return aside


def salvage(folder: StrPath) -> list[str]:
    """Rewrite every damaged part from its readable commits; the old file stays beside it.

    Returns:
        A sentence for each part that was rewritten.

    Raises:
        RunError: a part is being written, or cannot be written.
    """
    sentences = []
    for path in journal_files(folder):
        report = read_part(path, Answers(folder))
        if report.gaps:
            with explain_os_errors(path), path.open("rb+") as file, contextlib.closing(PartLock(path, file.fileno())):
                sentences.append(_rewrite(report))
    return sentences


def _rewrite(report: PartReport) -> str:
    """Replace a damaged part by its readable commits; returns a sentence about it."""
    path = report.path
    aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
    with atomic_path(path) as temporary, open_file(path) as old, temporary.open("wb") as new:
        for gap in report.gaps:
            new.write(old.read(gap.start - old.tell()))
            old.seek(gap.end)
        shutil.copyfileobj(old, new)
        try:
            os.link(path, aside)
        except OSError:  # a file system without links
            shutil.copyfile(path, aside)
    lost = sum(gap.size for gap in report.gaps)
    return (
        f"{path}: written anew with {report.answers} answers, without {lost} unreadable bytes; the old file is "
        f"{aside.name}"
    )
