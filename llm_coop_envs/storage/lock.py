"""Locks on files that the kernel keeps: they go when the process that holds them does, however it ends."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from pathlib import Path

from typing_extensions import Self

from llm_coop_envs.storage.files import cannot_write

_BUSY = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES)  # whatever else a file system says, it carries no locks
_FAR = 1 << 40  # Windows locks ranges of bytes, and locked ones cannot be read: one far behind the end is taken
_POLL = 0.05


class FileLock:
    """A file that exists to be locked; made if it is missing, and left there.

    Raises:
        RunError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise cannot_write(path, error) from error

    def take(self, *, shared: bool = False, wait: bool = False) -> bool | None:
        """Lock it; see `lock`."""
        return lock(self._descriptor, shared=shared, wait=wait)

    def __enter__(self) -> Self:
        """Nothing is locked before `take`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Give the lock up."""
        os.close(self._descriptor)


if sys.platform == "win32":
    import msvcrt

    def lock(descriptor: int, *, shared: bool = False, wait: bool = False) -> bool | None:
        """Lock an open file; shared locks do not exist here."""
        if shared:
            unlock(descriptor)
            return None
        while True:
            os.lseek(descriptor, _FAR, os.SEEK_SET)
            try:
                msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
            except OSError:
                if not wait:
                    return False
                time.sleep(_POLL)
            else:
                return True

    def unlock(descriptor: int) -> None:
        """Give up the lock on an open file, if it is held."""
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
        except OSError:
            return

else:
    import fcntl

    def lock(descriptor: int, *, shared: bool = False, wait: bool = False) -> bool | None:
        """Lock an open file; taking a lock of the other kind (`shared` or not) changes the one that is held.

        The lock belongs to the opened file: it goes with its last descriptor, and another opening of the same file
        is refused even in the same process. To lock a file that others may delete, compare it with its path after.

        Returns:
            Whether it was got; `None` where files cannot be locked so: some network folders, and shared locks on
            Windows.
        """
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(descriptor, kind | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            return False if error.errno in _BUSY else None
        return True

    def unlock(descriptor: int) -> None:
        """Give up the lock on an open file, if it is held."""
        with contextlib.suppress(OSError):  # where nothing can be locked, nothing was
            fcntl.flock(descriptor, fcntl.LOCK_UN)
