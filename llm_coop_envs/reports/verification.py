"""Checking a report: its tables are made again from the run's episodes and compared, file by file."""

from __future__ import annotations

import itertools
import tempfile
from pathlib import Path

from llm_coop_envs.errors import RunError
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.reports.data import PACKAGE
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.util.opening import MAX_EPISODE, read_file


def report_faults(run: Run) -> list[str]:
    """A sentence on the first row of a run's report that is not what its episodes make of it.

    Nothing is said of a run that has no report in its folder, or is not complete.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    there = run.folder / "report"
    if not run.complete or not (there / PACKAGE).is_file():
        return []
    with tempfile.TemporaryDirectory() as place:
        made = Path(place)
        try:
            write_report(run.folder, made)
        except RunError as error:
            return [str(error)]
        names = sorted({path.relative_to(home).as_posix() for home in (there, made) for path in home.rglob("*.csv")})
        found = (_difference(there / name, made / name) for name in names)
        return list(itertools.islice(filter(None, found), 1))


def _difference(path: Path, made: Path) -> str:
    """How a file first differs from the one that was made again; empty if it does not."""
    if not (path.is_file() and made.is_file()):
        return f"{path}: {'is no table of this report' if path.is_file() else 'is not there'}"
    try:
        lines = [read_file(one, MAX_EPISODE).decode().splitlines() for one in (path, made)]
    except OSError as error:
        return f"{path}: cannot be read ({error.strerror or error})"
    except UnicodeDecodeError as error:
        return f"{path}: is no UTF-8 text ({error.reason})"
    for number, (was, now) in enumerate(itertools.zip_longest(*lines, fillvalue=""), 1):
        if was != now:
            return f"{path}: row {number} is {was[:120]!r}, from the episodes {now[:120]!r} follows"
    return ""
