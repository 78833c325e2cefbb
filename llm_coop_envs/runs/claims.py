"""Several processes write one run, each its part: who plays which episode, and who may change the manifest.

A part claims an episode by a lease (`storage.lease`), which needs no locks of the file system; what a part left that is
gone keeps its name. It belongs to whoever is started next: only then are its answers read, and none is asked again.

The files of claims are not removed while the run lasts, not even when the episode is written: on a shared folder that
shows new names late, they tell others that it was begun. Their numbers say which of two claims came later, and answers
are recorded with them.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from llm_coop_envs.errors import RunError
from llm_coop_envs.runs.failures import Task
from llm_coop_envs.runs.folder import Run
from llm_coop_envs.storage.files import OversizedFile, cannot_write
from llm_coop_envs.storage.lease import HEARTBEAT, WATCH, Lease, check_leases, hold_lease
from llm_coop_envs.storage.machine import HERE, Machine

FOLDER = "claims"
LATE = WATCH  # seconds after which a shared folder shows what others wrote


class Claims:
    """The episodes that one part plays.

    Args:
        run: the run.
        part: the part's name.
        machine: where it is played.
    """

    def __init__(self, run: Run, part: str, machine: Machine = HERE) -> None:
        self._run = run
        self._part = part
        self._machine = machine
        self._held: dict[Task, Lease] = {}
        self._lost: set[Task] = set()
        self._tasks = {f"{one.name}/{seed}": (i, seed) for i, one in enumerate(run.conditions) for seed in one.seeds}
        self._heart: contextlib.ExitStack | None = None
        self.on_loss: Callable[[Task], object] = lambda _: None

    def take_over(self, tasks: Sequence[Task], say: Callable[[str], None] = lambda _: None) -> None:
        """Claim what parts have begun that are gone; to be called before the journal is read.

        A part on another machine is gone when it has been watched for half a minute without a sign of life; and what it
        wrote in its last half a minute may be shown late: both are waited for.
        """
        begun = {task: found for task in tasks if (found := self._lease(task).holder()) is not None}
        if any(found.watched for found in begun.values()):
            say(f"waiting up to {WATCH:.0f} s for a sign of life of the parts that began {len(begun)} episodes")
        holders = [self._lease(task).settle_holder() for task in begun]
        if any(found is not None and found.gone and found.machine != self._machine.name for found in holders):
            say(f"waiting {LATE:.0f} s until everything is there that a part on another machine wrote")
            self._machine.sleep(LATE)
        for task, found in zip(begun, holders, strict=True):
            # Who lived until now may have written the episode and left during the wait; that may not be shown yet.
            if found is None or not found.lives:
                self._claim(task, begun_elsewhere=True)

    def claim(self, task: Task) -> bool:
        """Claim an episode; whether this part is to play it."""
        # Without a model there are no answers that would have to be known.
        anew = not self._run.conditions[task[0]].asks_a_model
        return self._holds(task) or (task not in self._lost and self._claim(task, begun_elsewhere=anew))

    def number(self, episode: str) -> int:
        """The number of this part's claim on an episode, by the episode's name; 0 if it was never disputed.

        Raises:
            ClaimLost: another part may have taken it over, because this process was silent for so long.
        """
        task = self._tasks.get(episode)
        if task is None:
            return 0
        if not self._holds(task):
            # Imported here: a run of rules loads nothing of language models.
            from llm_coop_envs.policies.llm.chat import ClaimLost

            raise ClaimLost(
                f"{episode}: another part took it over, because this one (part '{self._part}') showed no sign of life"
            )
        return self._held[task].claim

    def release(self, task: Task) -> None:
        """Give up the claim on an episode that was written, or lost."""
        lease = self._held.pop(task, None)
        if lease is not None:
            lease.leave()

    def count_elsewhere(self) -> int:
        """How many episodes other parts are playing now."""
        holders = (self._lease(task).holder() for task in self._tasks.values() if task not in self._held)
        return sum(one is not None and one.lives for one in holders)

    def close(self) -> None:
        """Let go of everything; what is claimed and not written keeps this part's name."""
        if self._heart is not None:
            self._heart.close()
        for lease in self._held.values():
            lease.leave()
        self._held.clear()

    def _holds(self, task: Task) -> bool:
        """Whether this part surely holds an episode; what was lost stays lost."""
        lease = self._held.get(task)
        if lease is None or task in self._lost:
            return False
        if not lease.holds():
            self._lose(task)
        return task not in self._lost

    def _claim(self, task: Task, *, begun_elsewhere: bool) -> bool:
        lease = self._lease(task)
        try:
            self._machine.make_folder(self._path(task).parent)
        except OSError as error:
            raise cannot_write(self._path(task), error) from error
        # The answers of a part that went while this one was playing are not known here.
        if self._is_whole(task) or not lease.take(after=None if begun_elsewhere else self._part):
            return False
        is_whole = self._is_whole(task)
        if is_whole:  # since it was looked at
            lease.leave()
            return False
        # What is damaged makes room. A part writes an episode only where there is none: nobody writes it a second time
        # who was stopped between the last look at the claim and that moment.
        if is_whole is False:
            self._machine.remove(self._run.events_path(self._run.conditions[task[0]].name, task[1]))
        self._held[task] = lease
        if self._heart is None:
            self._heart = contextlib.ExitStack()
            self._heart.enter_context(self._machine.repeat(self._beat, HEARTBEAT))
        return True

    def _beat(self) -> None:
        """Show that this part lives."""
        for task, lease in list(self._held.items()):
            if not lease.beat() and self._held.get(task) is lease:
                self._lose(task)

    def _lose(self, task: Task) -> None:
        if task not in self._lost:
            self._lost.add(task)
            self.on_loss(task)

    def _is_whole(self, task: Task) -> bool | None:
        """Whether an episode that is written can be read; `None` if none is shown."""
        episode = self._run.conditions[task[0]].name, task[1]
        if not self._machine.is_there(self._run.events_path(*episode)):
            return None
        try:
            self._run.read_events(*episode)
        except OversizedFile:
            return True
        except RunError:
            return False
        return True

    def _lease(self, task: Task) -> Lease:
        return Lease(self._path(task), self._part, self._machine)

    def _path(self, task: Task) -> Path:
        return self._run.folder / FOLDER / self._run.conditions[task[0]].name / str(task[1])


def claim_alone(folder: Path) -> contextlib.AbstractContextManager[Lease]:
    """Wait until no other part changes the manifest, and keep them from it.

    Raises:
        RunError: the folder cannot be written.
    """
    return hold_lease(folder / ".manifest")


def check_can_share(folder: Path) -> None:
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
