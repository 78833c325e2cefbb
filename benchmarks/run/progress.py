"""How a run looks in a terminal, and in a log file."""

from __future__ import annotations

import time
from collections.abc import Iterable
from types import TracebackType

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn
from rich.text import Text

from llm_coop_envs.benchmarks.run.folder import Run
from llm_coop_envs.benchmarks.run.watcher import Watcher
from llm_coop_envs.core.quoting import harmless

QUIET_SECONDS = 15.0


class _Bars(Progress):
    """Progress bars with a line of text below."""

    below = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        """The bars, then the line."""
        yield from super().get_renderables()
        if self.below:
            yield Text(self.below, overflow="fold")


class RichWatcher(Watcher):
    """Shows a progress bar with the time that remains; a line now and then when there is no terminal.

    Args:
        console: where to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress = _Bars(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
        )
        self._bar: TaskID | None = None
        self._done = 0
        self._total = 0
        self._running = 0
        self._spoken = time.monotonic()
        self._asked = ""

    @property
    def begun(self) -> bool:
        """Whether the run folder was accepted and playing began."""
        return self._bar is not None

    def __enter__(self) -> RichWatcher:
        """Start drawing."""
        if self._console.is_terminal:
            self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing, whatever happened."""
        if self._progress.live.is_started:
            self._progress.stop()

    def begin(self, run: Run, todo: int, workers: int) -> None:
        """Say what will be done."""
        self._total, self._done, self._running = run.total, run.total - todo, todo
        there = f", {self._done} of them already there" if self._done else ""
        self._console.print(
            f"Study [bold]{run.manifest['study']}[/]: {len(run.conditions)} conditions, {run.total} episodes{there}; "
            f"{_processes(workers, self._running)}; run folder {run.folder}",
            highlight=False,
            soft_wrap=True,
        )
        if all(kind == "scripted" for kind in run.manifest["policies"].values()):
            self._console.print("All players are scripted rules; no language model plays.", highlight=False)
        self._bar = self._progress.add_task("Playing", total=run.total, completed=self._done, left="")

    def episode(self, condition: str, seed: int, seconds: float, left: float | None) -> None:
        """Count one more."""
        self._done += 1
        remaining = "" if left is None else f"about {clock(left)} left"
        if self._bar is not None:
            self._progress.update(self._bar, completed=self._done, left=remaining)
        self._speak(remaining)

    def say(self, sentence: str) -> None:
        """Say something above the bar."""
        self._console.print(escape(harmless(sentence)), highlight=False, soft_wrap=True)

    def asked(self, line: str) -> None:
        """Show what models were asked, and what it cost."""
        self._asked = self._progress.below = harmless(line)
        self._speak("")

    def _speak(self, remaining: str) -> None:
        """In a log, a line now and then."""
        if not self._console.is_terminal and time.monotonic() - self._spoken > QUIET_SECONDS:
            self._spoken = time.monotonic()
            parts = [f"{self._done} of {self._total} episodes", remaining, self._asked]
            self._console.print(escape(", ".join(filter(None, parts))), highlight=False, soft_wrap=True)

    def stopping(self) -> None:
        """Say that Ctrl-C was understood."""
        if self._asked:
            what = "answers under way are waited for. Press Ctrl-C again to drop them; all others are kept."
        else:
            what = (
                "running episodes are being finished. Press Ctrl-C again to stop at once; nothing that is written gets "
                "lost."
            )
        self._console.print(f"Stopping: {what}", highlight=False, soft_wrap=True)

    def tables(self) -> None:
        """Say that tables are being written."""
        if self._bar is not None:
            self._progress.update(self._bar, description="Writing tables", left="")
            self._progress.below = ""


def clock(seconds: float) -> str:
    """Seconds as m:ss or h:mm:ss."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _processes(workers: int, todo: int) -> str:
    if not workers:
        return "side by side in one process"
    workers = min(workers, todo)
    return "1 process" if workers == 1 else f"{workers} processes"
