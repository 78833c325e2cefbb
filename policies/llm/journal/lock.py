"""One writer for one part of a journal.

On one machine the kernel decides (a lock on the journal file, gone when its holder dies). Where a shared folder does
not carry such locks between machines, a lease beside the journal does: who writes, with a heartbeat.
"""

from __future__ import annotations

from pathlib import Path

from llm_coop_envs.policies.llm.journal.frames import JournalError
from llm_coop_envs.storage.lease import Lease
from llm_coop_envs.storage.lock import lock, unlock


class PartLock:
    """The right to write one part; held until it is closed.

    Args:
        path: the journal file.
        descriptor: the journal file, open for writing.

    Attributes:
        took_over: who held it and died, in words; `None` if nobody did.

    Raises:
        JournalError: another process writes this part.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._lease = Lease(path.with_name(path.name + ".lock"))
        self._descriptor = descriptor
        locked = lock(descriptor)
        before = self._lease.holder()
        if locked is False or not self._lease.take():
            if locked:
                unlock(descriptor)
            who = "another process" if before is None else before.process
            raise JournalError(
                f"{path}: {who} is writing it; wait for its end, or give this one another part of the run to write"
            )
        self.took_over = None if before is None else f"{before.process} no longer writes it"

    def beat(self) -> bool:
        """Show that this writer lives, and say whether it still holds the part: a sleeping machine may have lost it."""
        return self._lease.beat()

    def close(self) -> None:
        """Give the part up; to be called before the file is closed."""
        self._lease.release()
        unlock(self._descriptor)
