"""Episodes that failed: what is written of them, which mistakes are an episode's own, when a condition is given up.

A failure costs the study one episode. It is named in the run folder until the episode is played.
"""

from __future__ import annotations

import contextlib
import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from llm_coop_envs.errors import (
    ActionError,
    LlmCoopError,
    ResetNeeded,
    RunError,
    SceneError,
    SettingsError,
    SnapshotError,
)
from llm_coop_envs.runs.folder import FAILURES, Run
from llm_coop_envs.storage.files import write_whole
from llm_coop_envs.studies.conditions import Condition
from llm_coop_envs.util.keys import scrub

Task = tuple[int, int]  # index of the condition, seed
#: For each episode that failed, what tells its record from a later one.
Marks = Mapping[tuple[str, int], tuple[int, int]]
#: How many episodes of a condition may fail before one is played; after them it is given up until the next session.
GIVEN_UP = 3
# What a policy or a scenario does wrong. Any other error of this package says that no episode can be played.
_OWN = (ActionError, ResetNeeded, SceneError, SettingsError, SnapshotError)


@dataclass(frozen=True, kw_only=True)
class Failed:
    """An episode that failed.

    Attributes:
        task: the episode.
        sentence: what happened, and where the traceback is.
    """

    task: Task
    sentence: str


def is_own(error: Exception) -> bool:
    """Whether an error is the episode's own, so that other episodes can be played."""
    return not isinstance(error, LlmCoopError) or isinstance(error, _OWN)


def record_failure(run: Run, condition: Condition, seed: int, error: Exception | str) -> str:
    """Write the failure of an episode to the run folder; returns a sentence on it.

    Args:
        run: the run.
        condition: the episode's condition.
        seed: its seed.
        error: the error that the episode raised, or what happened to its process.
    """
    path = run.failure_path(condition.name, seed)
    what = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    sentence = scrub(f"condition '{condition.name}', seed {seed} failed: {' '.join(what.split())}")
    trace = "" if isinstance(error, str) else scrub("".join(traceback.format_exception(error)))
    with contextlib.suppress(RunError):
        write_whole(path, f"{sentence}\n\n{trace}".encode())
        sentence += f"; see {path}" if isinstance(error, str) else f"; the traceback is in {path}"
    return sentence


def mark_failures(run: Run) -> Marks:
    """Mark the episodes that failed until now."""
    marks = {}
    for episode in run.failures():
        with contextlib.suppress(OSError):
            status = run.failure_path(*episode).stat()
            marks[episode] = status.st_mtime_ns, status.st_size
    return marks


def summarise_failures(run: Run, most: int = 3) -> str:
    """A sentence, without its full stop, on how many episodes failed, and which; empty without any."""
    sentences = [*run.failures().values()]
    more = [f"and {len(sentences) - most} more, see {run.folder / FAILURES}"] if len(sentences) > most else []
    return (
        f"{len(sentences)} of {run.total} episodes failed: {'; '.join([*sentences[:most], *more])}" if sentences else ""
    )


def count_there(run: Run) -> str:
    """How many episodes of a run are there, and which failed, in words."""
    return "; ".join(filter(None, [f"{len(run.finished())} of {run.total} episodes", summarise_failures(run)]))


class Failures:
    """The failures of a session, and which episodes it may still begin.

    Args:
        run: the run.
        before: the failures before the session, whose episodes are tried again. One that another part of the run adds
            is left alone.
        say: called with a sentence on each failure.
    """

    def __init__(self, run: Run, before: Marks, say: Callable[[str], None]) -> None:
        self._run = run
        self._before = before
        self._say = say
        self._counts: Counter[int] = Counter()
        names = [condition.name for condition in run.conditions]
        self._played = {names.index(name) for name, _ in run.finished()}

    def note_played(self, task: Task) -> None:
        """Note that an episode was played."""
        self._played.add(task[0])

    def add(self, failed: Failed) -> None:
        """Add a failure, and say what follows from it."""
        index = failed.task[0]
        self._counts[index] += 1
        self._say(f"{failed.sentence[0].upper()}{failed.sentence[1:]}")
        if self._counts[index] == GIVEN_UP and index not in self._played:
            name = self._run.conditions[index].name
            self._say(f"Condition '{name}' is given up: {GIVEN_UP} of its episodes failed, and none was played")

    def may_begin(self, task: Task) -> bool:
        """Whether an episode may be begun: its condition is not given up, and it did not fail in another part."""
        index, seed = task
        if self._counts[index] >= GIVEN_UP and index not in self._played:
            return False
        episode = self._run.conditions[index].name, seed
        try:
            status = self._run.failure_path(*episode).stat()
        except OSError:
            return True
        return self._before.get(episode) == (status.st_mtime_ns, status.st_size)
