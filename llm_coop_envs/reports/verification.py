"""Verification of a report: its tables are made again from the run's episodes and compared file by file."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

from llm_coop_envs.errors import RunError
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.reports.data import PACKAGE
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.util.opening import MAX_EPISODE, read_file


class OldReport(Exception):
    """A report was made before all episodes of its run were played: it cannot be compared with one of all."""


def report_faults(run: Run) -> list[str]:
    """Find the first row of a run's report that does not follow from the run's episodes.

    Returns:
        A sentence on that row; nothing if the report is correct or not in the run's folder, or the run not complete.

    Raises:
        MissingExtra: matplotlib is not installed.
        OldReport: the report has only some of the run's episodes.
    """
    report = run.folder / "report"
    if not run.complete or not (report / PACKAGE).is_file():
        return []
    with tempfile.TemporaryDirectory() as temporary:
        remade = Path(temporary)
        try:
            write_report(run.folder, remade)
        except RunError as error:
            return [str(error)]
        older, whole = (_lines(home / "episodes.csv") for home in (report, remade))
        if older and set(older) < set(whole):
            raise OldReport(
                f"it is of {len(older) - 1} of {len(whole) - 1} episodes; llm-coop report {run.folder} makes it anew"
            )
        names = sorted({path.relative_to(home).as_posix() for home in (report, remade) for path in home.rglob("*.csv")})
        differences = (_difference(report / name, remade / name) for name in names)
        return list(itertools.islice(filter(None, differences), 1))


def _lines(path: Path) -> list[str]:
    """The lines of a file; none if it cannot be read, which the comparison tells."""
    try:
        return read_file(path, MAX_EPISODE).decode().splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _difference(path: Path, remade: Path) -> str:
    """Say how a file first differs from the one that was made again; empty if it does not."""
    if not (path.is_file() and remade.is_file()):
        return f"{path}: {'is no table of this report' if path.is_file() else 'is not there'}"
    try:
        lines = [read_file(file, MAX_EPISODE).decode().splitlines() for file in (path, remade)]
    except OSError as error:
        return f"{path}: cannot be read ({error.strerror or error})"
    except UnicodeDecodeError as error:
        return f"{path}: is no UTF-8 text ({error.reason})"
    for number, (was, now) in enumerate(itertools.zip_longest(*lines, fillvalue=""), 1):
        if was != now:
            return f"{path}: row {number} is {was[:120]!r}, from the episodes {now[:120]!r} follows"
    return ""
