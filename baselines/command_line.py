"""Shared parts of the learners' command lines: settings files, progress, and errors as sentences."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import typer
import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from llm_coop_envs.errors import LlmCoopError, RunError
from llm_coop_envs.util.opening import DAMAGED, read_file
from llm_coop_envs.util.pace import CountedPace

console = Console(emoji=False, highlight=False, soft_wrap=True)
errors = Console(stderr=True, emoji=False, highlight=False, soft_wrap=True)

QUIET_SECONDS = 15.0


class Ticker:
    """Shows progress and the remaining time on stderr: a bar on a terminal, a line now and then in a log file."""

    def __init__(self, label: str, total: int, done: int = 0) -> None:
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.bar = Progress(*columns, TextColumn("{task.fields[left]}"), console=errors, transient=True)
        self._task = self.bar.add_task(label, total=total, completed=done, left="")
        self._label, self._total = label, total
        self._done = done
        self._pace = CountedPace()
        self._spoken = time.monotonic()

    def next(self) -> None:
        """Count one more as done."""
        self.advance_to(self._done + 1)

    def advance_to(self, done: int) -> None:
        """Set how many are done."""
        self._done = done
        now = time.monotonic()
        remaining = self._pace.remaining(now, done, self._total)
        self.bar.update(self._task, completed=done, left="" if remaining is None else str(remaining))
        if not errors.is_terminal and remaining is not None and now - self._spoken > QUIET_SECONDS:
            self._spoken = now
            errors.print(f"{done} of {self._total} {self._label}, {remaining}")


@contextmanager
def ticking(label: str, total: int, done: int = 0) -> Iterator[Ticker]:
    """Show a ticker while the block runs."""
    ticker = Ticker(label, total, done)
    with ticker.bar if errors.is_terminal else nullcontext():
        yield ticker


def read_fields(path: Path | None) -> dict[str, Any]:
    """Read fields of settings from a YAML or JSON file; without a file there are none.

    Raises:
        RunError: the file cannot be read, or holds something else.
    """
    if path is None:
        return {}
    try:
        data: Any = yaml.safe_load(read_file(path).decode())
    except (OSError, yaml.YAMLError, *DAMAGED) as error:
        raise RunError(f"the settings file {path} cannot be read: {error}") from error
    if not isinstance(data, dict):
        raise RunError(f"the settings file {path} must hold fields and their values")
    return data


def run_app(app: typer.Typer) -> None:
    """Run a command line. Errors that a user can repair become one sentence and exit code 2; Ctrl-C exits with 130."""
    try:
        app()
    except LlmCoopError as error:
        errors.print(f"error: {error}", markup=False)
        raise SystemExit(2) from None
    except KeyboardInterrupt as stop:
        errors.print(f"{str(stop) or 'stopped'}; what was finished is kept, the same command goes on from there")
        raise SystemExit(130) from None
