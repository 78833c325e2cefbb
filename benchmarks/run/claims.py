"""Several processes write one run, each its part: who plays which episode, and who may change the manifest.

A part claims an episode by a locked file that holds its name; the lock goes with the process, the name stays. What a
part left that is gone belongs to whoever is started next: only then are its answers read, and none is asked again.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from llm_coop_envs.benchmarks.run.folder import Run
from llm_coop_envs.benchmarks.run.workers import Task
from llm_coop_envs.errors import RunError
from llm_coop_envs.storage.files import cannot_write
from llm_coop_envs.storage.lock import FileLock, lock

FOLDER = "claims"


class Claims:
    """The episodes that one part plays.

    Args:
        run: the run.
        part: the part's name.
    """

    def __init__(self, run: Run, part: str) -> None:
        self._run = run
        self._part = part
        self._held: dict[Task, int] = {}

    def take_over(self, tasks: Sequence[Task]) -> None:
        """Claim what parts have begun that are gone; to be called before the journal is read."""
        for task in tasks:
            if self._path(task).is_file():
                self._claim(task, begun_elsewhere=True)

    def claim(self, task: Task) -> bool:
        """Claim an episode; whether this part is to play it."""
        return task in self._held or self._claim(task, begun_elsewhere=False)

    def release(self, task: Task) -> None:
        """Give up the claim on an episode that was written."""
        descriptor = self._held.pop(task)
        self._path(task).unlink(missing_ok=True)
        os.close(descriptor)

    def elsewhere(self) -> int:
        """How many episodes other parts are playing now."""
        count = 0
        for index, condition in enumerate(self._run.conditions):
            for seed in condition.seeds:
                path = self._path((index, seed))
                if (index, seed) in self._held or not path.is_file():
                    continue
                with contextlib.suppress(OSError):
                    descriptor = os.open(path, os.O_RDWR)
                    try:
                        count += lock(descriptor) is False
                    finally:
                        os.close(descriptor)
        return count

    def close(self) -> None:
        """Let go of everything; what is claimed and not written keeps this part's name."""
        for descriptor in self._held.values():
            os.close(descriptor)
        self._held.clear()

    def _claim(self, task: Task, *, begun_elsewhere: bool) -> bool:
        path = self._path(task)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise cannot_write(path, error) from error
        if lock(descriptor) is False:
            os.close(descriptor)
            return False
        condition, seed = self._run.conditions[task[0]].name, task[1]
        owner = os.read(descriptor, 200).decode("utf-8", "replace")
        written = self._run.events_path(condition, seed).is_file() and not owner
        # The name of a part that went while this one was playing: its answers are not known here.
        unknown = owner not in ("", self._part) and not begun_elsewhere
        # The file may have been removed, and the episode written, between opening and locking it.
        gone = not _same(descriptor, path)
        if written or unknown or gone:
            if written:
                path.unlink(missing_ok=True)
            os.close(descriptor)
            return False
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, self._part.encode(), 0)
        self._held[task] = descriptor
        return True

    def _path(self, task: Task) -> Path:
        return self._run.folder / FOLDER / self._run.conditions[task[0]].name / str(task[1])


@contextlib.contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until no other part changes the manifest, and keep them from it.

    Raises:
        RunError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    with FileLock(folder / ".manifest.lock") as manifest:
        manifest.take(wait=True)
        yield


def need_locks() -> None:
    """Refuse to share a run where files cannot be locked.

    Raises:
        RunError: on Windows.
    """
    if sys.platform == "win32":
        raise RunError("--part: this system's file locks do not tell parts apart; play the run in one process")


def _same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False
