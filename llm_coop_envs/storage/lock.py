"""Locks on files and folders, kept by the kernel: a lock ends with the process that holds it, however that ends."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from typing_extensions import Self

from llm_coop_envs.errors import RunError
from llm_coop_envs.storage.files import cannot_write, sweep
from llm_coop_envs.util.opening import open_descriptor

# Any other error means that the file system does not support locks.
_BUSY = (errno.EAGAIN, errno.EWOULDBLOCK, errno.EACCES)
# Windows locks ranges of bytes, which then cannot be read: the locked byte is far behind the end of the file.
_FAR = 1 << 40
_POLL = 0.05  # seconds
_HOUR = 3600.0  # seconds


class FileLock:
    """A file that exists to be locked; created if it is missing, and never removed.

    Used as a context manager, it releases the lock at the end of the block; nothing is locked before `take`.

    Args:
        path: where the file is.

    Raises:
        RunError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = open_descriptor(path, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        except OSError as error:
            raise cannot_write(path, error) from error

    def take(self, *, shared: bool = False, wait: bool = False) -> bool | None:
        """Lock the file; see `lock`."""
        return lock(self._descriptor, shared=shared, wait=wait)

    def __enter__(self) -> Self:
        """Return the file itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Release the lock."""
        os.close(self._descriptor)


if sys.platform == "win32":
    import msvcrt

    def lock(descriptor: int, *, shared: bool = False, wait: bool = False) -> bool | None:
        """Lock an open file; Windows has no shared locks."""
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
        """Release the lock on an open file, if it is held."""
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)
        except OSError:
            return

else:
    import fcntl

    def lock(descriptor: int, *, shared: bool = False, wait: bool = False) -> bool | None:
        """Lock an open file, or change a lock that is held from exclusive to shared and back.

        The lock belongs to the open file: it ends when the last descriptor is closed, and a second `os.open` of the
        same path cannot lock it even in the same process. To lock a file that other processes may delete, compare it
        with its path afterwards.

        Args:
            descriptor: the open file.
            shared: admit other shared locks.
            wait: wait until the lock is free.

        Returns:
            Whether it is locked; `None` where files cannot be locked so: on some network folders, and for shared locks
            on Windows.
        """
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(descriptor, kind | (0 if wait else fcntl.LOCK_NB))
        except OSError as error:
            return False if error.errno in _BUSY else None
        return True

    def unlock(descriptor: int) -> None:
        """Release the lock on an open file, if it is held."""
        with contextlib.suppress(OSError):  # this file system has no locks
            fcntl.flock(descriptor, fcntl.LOCK_UN)


@contextlib.contextmanager
def lock_folder(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Keep a second writer out of a folder; the lock ends with the process, however that ends.

    The first writer that is alone removes the half-written files of killed ones.

    Args:
        folder: the folder.
        shared: admit other writers that ask for a shared lock, too.

    Raises:
        RunError: another process is writing there.
    """
    with FileLock(folder / ".lock") as lock:
        if lock.take() is not False:
            # Locks of other machines may be invisible here: leave recent half-written files to their writers.
            sweep(folder, min_age=_HOUR if shared else 0.0)
        elif not shared:
            raise RunError(f"{folder}: another process is writing this run; wait for it or stop it first")
        if shared and lock.take(shared=True) is False:
            raise RunError(
                f"{folder}: another process is writing this run and does not share it (it has no --part); wait for it"
            )
        yield
