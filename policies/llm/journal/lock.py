"""The exclusive right to write one part of a journal.

On one machine a kernel lock on the journal file decides; it is gone when its holder dies. Some shared folders do not
carry such locks between machines. There a lease beside the file decides, which names the writer and has a heartbeat.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from llm_coop_envs.policies.llm.journal.frames import JournalError, explain_os_errors
from llm_coop_envs.storage.lease import Lease
from llm_coop_envs.storage.machine import HERE, Machine


class PartLock:
    """The right to write one part; held until it is closed.

    Args:
        path: the journal file.
        descriptor: the journal file, open for writing.
        machine: where this process runs.

    Attributes:
        took_over: a sentence on a dead process that held it before; `None` if there was none.

    Raises:
        JournalError: another process writes this part.
    """

    def __init__(self, path: Path, descriptor: int, machine: Machine = HERE) -> None:
        self._lease = Lease(path.with_name(path.name + ".lock"), machine=machine)
        self._descriptor = descriptor
        self._machine = machine
        locked = machine.lock(descriptor)
        holder = self._lease.holder()
        # Who has this kernel, in whatever container, and not the lock, is dead.
        is_dead = bool(locked) and holder is not None and holder.kernel == machine.kernel
        if locked is not False and not is_dead:
            holder = self._lease.settle_holder()
        if locked is False or not self._lease.take(is_dead=is_dead):
            if locked:
                machine.unlock(descriptor)
            holder_name = "another process" if holder is None else holder.process
            raise JournalError(
                f"{path}: {holder_name} is writing it; "
                "wait for its end, or give this one another part of the run to write"
            )
        self.took_over = None if holder is None else f"{holder.process} no longer writes it"

    def beat(self) -> bool:
        """Renew the lease.

        Returns:
            Whether this process still holds the part; a machine that slept may have lost it.
        """
        return self._lease.beat()

    def holds(self) -> bool:
        """Whether this process surely still holds the part; see `Lease.holds`."""
        return self._lease.holds()

    def close(self) -> None:
        """Release the part; to be called before the file is closed."""
        self._lease.release()
        self._machine.unlock(self._descriptor)


@contextlib.contextmanager
def open_part(path: Path, machine: Machine = HERE) -> Iterator[tuple[int, PartLock]]:
    """Open a part's file for appending, by this process alone; create it if it is missing.

    Yields:
        The file's descriptor, and the right to write it.

    Raises:
        JournalError: another process writes this part, or it cannot be written.
    """
    with explain_os_errors(path):
        machine.make_folder(path.parent)
        is_new = not machine.is_there(path)
        descriptor = machine.open(path, os.O_APPEND)
    try:
        with contextlib.closing(PartLock(path, descriptor, machine)) as part_lock:
            if is_new:
                machine.sync_folder(path.parent)
            yield descriptor, part_lock
    finally:
        machine.close(descriptor)
