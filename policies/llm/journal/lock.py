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
from llm_coop_envs.storage.lock import lock, unlock


class PartLock:
    """The right to write one part; held until it is closed.

    Args:
        path: the journal file.
        descriptor: the journal file, open for writing.

    Attributes:
        took_over: a sentence on a dead process that held it before; `None` if there was none.

    Raises:
        JournalError: another process writes this part.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._lease = Lease(path.with_name(path.name + ".lock"))
        self._descriptor = descriptor
        locked = lock(descriptor)
        holder = self._lease.holder()
        if locked is False or not self._lease.take():
            if locked:
                unlock(descriptor)
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

    def close(self) -> None:
        """Release the part; to be called before the file is closed."""
        self._lease.release()
        unlock(self._descriptor)


@contextlib.contextmanager
def open_part(path: Path) -> Iterator[tuple[int, PartLock]]:
    """Open a part's file for appending, by this process alone; create it if it is missing.

    Yields:
        The file's descriptor, and the right to write it.

    Raises:
        JournalError: another process writes this part, or it cannot be written.
    """
    with explain_os_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        is_new = not path.exists()
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, flags, 0o644)
    try:
        with contextlib.closing(PartLock(path, descriptor)) as part_lock:
            if is_new:
                _sync_folder(path.parent)
            yield descriptor, part_lock
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Make a new file's name survive a power cut, if the system can sync folders."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
