"""How a run, or anything else that takes a while, looks in a terminal and in a log file."""

from __future__ import annotations

import contextlib
import functools
import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any, TypeVar, cast

from rich.console import Console, RenderableType
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.remaining import clock, count_of
from llm_coop_envs.runs.watcher import Watcher
from llm_coop_envs.util.quoting import harmless

FIRST_SECONDS = 2.0  # of silence in a log before what is being done is said for the first time
QUIET_SECONDS = 15.0  # and between what is said later

Ask = TypeVar("Ask", bound=Callable[..., Any])


@contextlib.contextmanager
def working(what: str) -> Iterator[Callable[[str], None]]:
    """Say on stderr what is being done while it lasts; yields a function that replaces what is said."""
    console = Console(stderr=True, emoji=False)
    if console.is_terminal:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(escape(what), total=None)
            yield lambda text: bar.update(task, description=escape(text))
        return
    told = [what]

    def speak() -> None:
        console.print(f"{escape(told[0])} ...", highlight=False, soft_wrap=True)

    with _now_and_then(speak, FIRST_SECONDS, QUIET_SECONDS):
        yield lambda text: told.__setitem__(0, text)


@contextlib.contextmanager
def counting(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """As `working`, for what can be counted; yields a function that is told how many are done."""
    first: list[tuple[int, float]] = []
    with working(label) as tell:

        def count(done: int) -> None:
            now = time.monotonic()
            before, since = (first or [(done, now)])[0]
            first[:] = [(before, since)]
            left = f", about {clock((now - since) / (done - before) * (total - done))} left" if done > before else ""
            tell(f"{done:,} of {total:,} {label}{left}")

        yield count


@contextlib.contextmanager
def waiting(what: str) -> Iterator[Callable[[Ask], Ask]]:
    """As `working` in a log, for what stops to ask a person; yields what marks the function that asks."""
    console = Console(stderr=True, emoji=False)
    since, quiet = time.monotonic(), FIRST_SECONDS

    def speak() -> None:
        nonlocal since, quiet
        if time.monotonic() - since >= quiet:
            console.print(f"{escape(what)} ...", highlight=False, soft_wrap=True)
            since, quiet = time.monotonic(), QUIET_SECONDS

    def marked(ask: Ask) -> Ask:
        @functools.wraps(ask)
        def asked(*given: Any) -> Any:
            nonlocal since, quiet
            since = math.inf
            try:
                return ask(*given)
            finally:
                since, quiet = time.monotonic(), FIRST_SECONDS

        return cast("Ask", asked)

    with _now_and_then(speak, FIRST_SECONDS, FIRST_SECONDS):
        yield marked


@contextlib.contextmanager
def _now_and_then(speak: Callable[[], None], first: float, later: float) -> Iterator[None]:
    """Call `speak` after some seconds, and then now and then, until the body is done; whatever the body waits for."""
    over = threading.Event()

    def run() -> None:
        pause = first
        while not over.wait(pause):
            speak()
            pause = later

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


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
        self._remaining = ""
        self._asked = ""
        self._log = contextlib.ExitStack()

    @property
    def begun(self) -> bool:
        """Whether the run folder was accepted and playing began."""
        return self._bar is not None

    def __enter__(self) -> RichWatcher:
        """Start drawing, or speaking."""
        if self._console.is_terminal:
            self._progress.start()
        else:
            self._log.enter_context(_now_and_then(self._speak, QUIET_SECONDS, QUIET_SECONDS))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing or speaking, whatever happened."""
        self._log.close()
        if self._progress.live.is_started:
            self._progress.stop()

    def begin(self, run: Run, todo: int, workers: int) -> None:
        """Say what will be done."""
        self._total, self._done, self._running = run.total, run.total - todo, todo
        there = f", {self._done} of them already there" if self._done else ""
        self._console.print(
            f"Study [bold]{run.manifest['study']}[/]: {count_of(len(run.conditions), 'condition')}, "
            f"{count_of(run.total, 'episode')}{there}; "
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
        self._remaining = "" if left is None else f"about {clock(left)} left"
        if self._bar is not None:
            self._progress.update(self._bar, completed=self._done, left=self._remaining)

    def say(self, sentence: str) -> None:
        """Say something above the bar."""
        self._console.print(escape(harmless(sentence)), highlight=False, soft_wrap=True)

    def asked(self, line: str) -> None:
        """Show what models were asked, and what it cost."""
        self._asked = self._progress.below = harmless(line)

    def _speak(self) -> None:
        """In a log, a line now and then."""
        if self.begun:
            parts = [f"{self._done} of {self._total} episodes", self._remaining, self._asked]
            self.say(", ".join(filter(None, parts)))

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
        self._remaining = "writing tables"


def _processes(workers: int, todo: int) -> str:
    if not workers:
        return "side by side in one process"
    workers = min(workers, todo)
    return "1 process" if workers == 1 else f"{workers} processes"
