"""Several processes write one run, each its part: who plays which episode, and who may change the manifest.

A part claims an episode by a lease (`storage.lease`), which needs no locks of the file system; what a part left that is
gone keeps its name. It belongs to whoever is started next: only then are its answers read, and none is asked again.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

from llm_coop_envs.errors import RunError
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.runs.workers import Task
from llm_coop_envs.storage.files import cannot_write
from llm_coop_envs.storage.lease import Lease, check_leases, heartbeat, hold_lease

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
        self._held: dict[Task, Lease] = {}
        self._lost: set[Task] = set()
        self._heart: contextlib.ExitStack | None = None

    def take_over(self, tasks: Sequence[Task]) -> None:
        """Claim what parts have begun that are gone; to be called before the journal is read."""
        for task in tasks:
            if self._lease(task).holder() is not None:
                self._claim(task, begun_elsewhere=True)

    def claim(self, task: Task) -> bool:
        """Claim an episode; whether this part is to play it."""
        # Without a model there are no answers that would have to be known.
        anew = not self._run.conditions[task[0]].asks_a_model
        return task in self._held or self._claim(task, begun_elsewhere=anew)

    def check(self, task: Task) -> None:
        """Make sure that a claimed episode is still this part's.

        Raises:
            RunError: this process was silent for so long that another part took it over.
        """
        if task in self._lost or not self._held[task].beat():
            name, seed = self._run.conditions[task[0]].name, task[1]
            raise RunError(
                f"condition '{name}', seed {seed}: another part took it over, because this one (part "
                f"'{self._part}') showed no sign of life; start this part again"
            )

    def release(self, task: Task) -> None:
        """Give up the claim on an episode that was written."""
        self._held.pop(task).release()

    def elsewhere(self) -> int:
        """How many episodes other parts are playing now."""
        tasks = [(index, seed) for index, one in enumerate(self._run.conditions) for seed in one.seeds]
        holders = (self._lease(task).holder() for task in tasks if task not in self._held)
        return sum(one is not None and one.lives for one in holders)

    def close(self) -> None:
        """Let go of everything; what is claimed and not written keeps this part's name."""
        if self._heart is not None:
            self._heart.close()
        for lease in self._held.values():
            lease.leave()
        self._held.clear()

    def _claim(self, task: Task, *, begun_elsewhere: bool) -> bool:
        lease = self._lease(task)
        try:
            self._path(task).parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(self._path(task), error) from error
        before = lease.holder()
        # The name of a part that went while this one was playing: its answers are not known here.
        known = before is None or before.name == self._part or begun_elsewhere
        if not known or (before is None and self._written(task)) or not lease.take():
            return False
        if before is None and self._written(task):  # by another one, between looking and taking
            lease.release()
            return False
        self._held[task] = lease
        if self._heart is None:
            self._heart = contextlib.ExitStack()
            self._heart.enter_context(heartbeat(self._beat))
        return True

    def _beat(self) -> None:
        """Show that this part lives."""
        for task, lease in list(self._held.items()):
            if not lease.beat() and task in self._held:
                self._lost.add(task)

    def _written(self, task: Task) -> bool:
        return self._run.events_path(self._run.conditions[task[0]].name, task[1]).is_file()

    def _lease(self, task: Task) -> Lease:
        return Lease(self._path(task), self._part)

    def _path(self, task: Task) -> Path:
        return self._run.folder / FOLDER / self._run.conditions[task[0]].name / str(task[1])


def alone(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Wait until no other part changes the manifest, and keep them from it.

    Raises:
        RunError: the folder cannot be written.
    """
    return hold_lease(folder / ".manifest")


def check_shared(folder: Path) -> None:
    """Refuse to share a run where episodes cannot be claimed.

    Raises:
        RunError: on Windows, in a folder whose file system carries no leases, or one that cannot be written.
    """
    if sys.platform == "win32":
        raise RunError("--part: parts of a run are not told apart on Windows; play the run in one process")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from error
    check_leases(folder)
