"""Show the progress of a run, or of anything else that takes a while, in a terminal or a log file."""

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
from llm_coop_envs.runs.notify import Notifier, describe
from llm_coop_envs.runs.remaining import count_of
from llm_coop_envs.runs.watcher import Watcher
from llm_coop_envs.util.pace import CountedPace, Remaining
from llm_coop_envs.util.quoting import harmless

FIRST_SECONDS = 2.0  # of silence in a log before what is being done is said for the first time
QUIET_SECONDS = 15.0  # and between what is said later

Ask = TypeVar("Ask", bound=Callable[..., Any])


@contextlib.contextmanager
def working(activity: str) -> Iterator[Callable[[str], None]]:
    """Show an activity on stderr while it lasts; yields a function that replaces its description."""
    console = Console(stderr=True, emoji=False)
    if console.is_terminal:
        columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task(escape(harmless(activity)), total=None)
            yield lambda text: bar.update(task, description=escape(harmless(text)))
        return
    message = [activity]

    def speak() -> None:
        console.print(f"{escape(harmless(message[0]))} ...", highlight=False, soft_wrap=True)

    with _repeat_meanwhile(speak, FIRST_SECONDS, QUIET_SECONDS):
        yield lambda text: message.__setitem__(0, text)


@contextlib.contextmanager
def counting(label: str, total: int) -> Iterator[Callable[[int], None]]:
    """As `working`, with a count and the time left; yields a function that is called with the number done."""
    pace = CountedPace()
    with working(label) as tell:

        def count(done: int) -> None:
            remaining = pace.remaining(time.monotonic(), done, total)
            tell(f"{done:,} of {total:,} {label}{'' if remaining is None else f', {remaining}'}")

        yield count


@contextlib.contextmanager
def waiting(activity: str) -> Iterator[Callable[[Ask], Ask]]:
    """As `working` in a log, silent while a person is asked; yields a decorator for the function that asks."""
    console = Console(stderr=True, emoji=False)
    since, quiet = time.monotonic(), FIRST_SECONDS

    def speak() -> None:
        nonlocal since, quiet
        if time.monotonic() - since >= quiet:
            console.print(f"{escape(harmless(activity))} ...", highlight=False, soft_wrap=True)
            since, quiet = time.monotonic(), QUIET_SECONDS

    def mark(ask: Ask) -> Ask:
        @functools.wraps(ask)
        def ask_undisturbed(*args: Any) -> Any:
            nonlocal since, quiet
            since = math.inf
            try:
                return ask(*args)
            finally:
                since, quiet = time.monotonic(), FIRST_SECONDS

        return cast("Ask", ask_undisturbed)

    with _repeat_meanwhile(speak, FIRST_SECONDS, FIRST_SECONDS):
        yield mark


@contextlib.contextmanager
def _repeat_meanwhile(speak: Callable[[], None], first: float, later: float) -> Iterator[None]:
    """Call `speak` from a thread after `first` seconds, and then every `later` seconds, until the body is done."""
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
    """Shows a progress bar with the time left; without a terminal, a line every few seconds.

    Args:
        console: the console that shows it.
        notify: a command that gets notices, as `Notifier` says; `None` for none.

    Raises:
        SettingsError: the command cannot be run.
    """

    def __init__(self, console: Console, notify: str | None = None) -> None:
        self._console = console
        self._notifier = None if notify is None else Notifier(notify, self.say)
        self._run: Run | None = None
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
        """Whether the run folder was accepted, so that episodes are played."""
        return self._bar is not None

    def __enter__(self) -> RichWatcher:
        """Start drawing, or speaking."""
        if self._console.is_terminal:
            self._progress.start()
        else:
            self._log.enter_context(_repeat_meanwhile(self._speak, QUIET_SECONDS, QUIET_SECONDS))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop drawing or speaking, whatever happened, once notices are sent."""
        if self._notifier is not None:
            self._notifier.close()
        self._log.close()
        if self._progress.live.is_started:
            self._progress.stop()

    def begin(self, run: Run, todo: int, workers: int) -> None:
        """Print what will be played, and show the bar."""
        self._run = run
        self._total, self._done, self._running = run.total, run.total - todo, todo
        already = f", {self._done} of them already there" if self._done else ""
        self._console.print(
            f"Study [bold]{escape(harmless(run.manifest['study']))}[/]: {count_of(len(run.conditions), 'condition')}, "
            f"{count_of(run.total, 'episode')}{already}; "
            f"{_processes(workers, self._running)}; run folder {escape(harmless(str(run.folder)))}",
            highlight=False,
            soft_wrap=True,
        )
        if all(kind == "scripted" for kind in run.manifest["policies"].values()):
            self._console.print("All players are scripted rules; no language model plays.", highlight=False)
        self._bar = self._progress.add_task("Playing", total=run.total, completed=self._done, left="")

    def episode(self, condition: str, seed: int, seconds: float, remaining: Remaining | None) -> None:
        """Count an episode."""
        self._done += 1
        self._remaining = "" if remaining is None else str(remaining)
        if self._bar is not None:
            self._progress.update(self._bar, completed=self._done, left=self._remaining)

    def say(self, sentence: str) -> None:
        """Print a sentence above the bar."""
        self._console.print(escape(harmless(sentence)), highlight=False, soft_wrap=True)

    def notice(self, kind: str, sentence: str) -> None:
        """Send a notice, which begins with the run's name."""
        if self._notifier is not None:
            run = self._run
            about = {} if run is None else describe(run.folder, run.manifest["study"], self._done, self._total)
            name = "llm-coop" if run is None else run.folder.absolute().name
            self._notifier.send(kind, f"{name}: {sentence.rstrip('.')}.", **about)

    def show_questions(self, line: str) -> None:
        """Show the line on questions to models and their cost below the bar."""
        self._asked = self._progress.below = harmless(line)

    def _speak(self) -> None:
        """Print how far the run is, in a log."""
        if self.begun:
            parts = [f"{self._done} of {self._total} episodes", self._remaining, self._asked]
            self.say(", ".join(filter(None, parts)))

    def stopping(self) -> None:
        """Print that Ctrl-C was understood, and what a second one does."""
        if self._asked:
            consequence = "answers under way are waited for. Press Ctrl-C again to drop them; all others are kept."
        else:
            consequence = (
                "running episodes are being finished. Press Ctrl-C again to stop at once; nothing that is written gets "
                "lost."
            )
        self._console.print(f"Stopping: {consequence}", highlight=False, soft_wrap=True)

    def tables(self) -> None:
        """Show that tables are being written."""
        if self._bar is not None:
            self._progress.update(self._bar, description="Writing tables", left="")
            self._progress.below = ""
        self._remaining = "writing tables"


def _processes(workers: int, todo: int) -> str:
    if not workers:
        return "side by side in one process"
    workers = min(workers, todo)
    return "1 process" if workers == 1 else f"{workers} processes"
