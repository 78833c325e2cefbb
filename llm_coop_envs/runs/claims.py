"""Let several processes write one run, each its part: divide the episodes, and guard the manifest.

A part claims an episode by a lease (`storage.lease`), which needs no locks of the file system. The lease of a part that
is gone keeps that part's name. The next part that is started takes such episodes over, reads the answers that were
recorded for them, and asks for none of them again.
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
        """Claim episodes that parts began that are gone; call it before the journal is read."""
        for task in tasks:
            if self._lease(task).holder() is not None:
                self._claim(task, begun_elsewhere=True)

    def claim(self, task: Task) -> bool:
        """Claim an episode; returns whether this part is to play it."""
        # Without a model, an episode that another part began holds no answers that this part would have to know.
        anew = not self._run.conditions[task[0]].asks_a_model
        return task in self._held or self._claim(task, begun_elsewhere=anew)

    def check(self, task: Task) -> None:
        """Make sure that a claimed episode is still this part's.

        Raises:
            RunError: this process was silent for so long that another part took the episode over.
        """
        if task in self._lost or not self._held[task].beat():
            name, seed = self._run.conditions[task[0]].name, task[1]
            raise RunError(
                f"condition '{name}', seed {seed}: another part took it over, because this one (part "
                f"'{self._part}') showed no sign of life; start this part again"
            )

    def release(self, task: Task) -> None:
        """Release an episode that was written."""
        self._held.pop(task).release()

    def count_elsewhere(self) -> int:
        """Count the episodes that other parts are playing now."""
        tasks = [(index, seed) for index, condition in enumerate(self._run.conditions) for seed in condition.seeds]
        holders = (self._lease(task).holder() for task in tasks if task not in self._held)
        return sum(holder is not None and holder.lives for holder in holders)

    def close(self) -> None:
        """Leave all claims; episodes that are not written keep this part's name."""
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
        holder = lease.holder()
        # The answers of a part that went while this one was playing are not known here.
        has_answers = holder is None or holder.name == self._part or begun_elsewhere
        if not has_answers or (holder is None and self._is_written(task)) or not lease.take():
            return False
        if holder is None and self._is_written(task):  # by another part, between the look and the lease
            lease.release()
            return False
        self._held[task] = lease
        if self._heart is None:
            self._heart = contextlib.ExitStack()
            self._heart.enter_context(heartbeat(self._beat))
        return True

    def _beat(self) -> None:
        """Renew all leases, and note those that another part took."""
        for task, lease in list(self._held.items()):
            if not lease.beat() and task in self._held:
                self._lost.add(task)

    def _is_written(self, task: Task) -> bool:
        return self._run.events_path(self._run.conditions[task[0]].name, task[1]).is_file()

    def _lease(self, task: Task) -> Lease:
        return Lease(self._path(task), self._part)

    def _path(self, task: Task) -> Path:
        return self._run.folder / FOLDER / self._run.conditions[task[0]].name / str(task[1])


def claim_alone(folder: Path) -> contextlib.AbstractContextManager[None]:
    """Wait until no other part changes the manifest, and keep them from it.

    Raises:
        RunError: the folder cannot be written.
    """
    return hold_lease(folder / ".manifest")


def check_can_share(folder: Path) -> None:
    """Check that several parts can share a run in a folder.

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
