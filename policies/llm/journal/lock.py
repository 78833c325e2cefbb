"""One writer for one part of a journal.

On one machine the kernel decides (a lock on the journal file, gone when its holder dies). Where a shared folder does
not carry such locks between machines, a small file beside the journal does: who writes, with a heartbeat.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import socket
import sys
import time
from pathlib import Path
from typing import Any

from llm_coop_envs.policies.llm.journal.errors import JournalError

HEARTBEAT = 10.0
STALE = 60.0
_FAR = 1 << 40  # Windows locks ranges of bytes, and locked ones cannot be read: one far behind the end is taken


class PartLock:
    """The right to write one part; held until released.

    Args:
        path: the journal file.
        descriptor: the journal file, open for writing.

    Raises:
        JournalError: another process writes this part.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._beside = path.with_name(path.name + ".lock")
        self._descriptor = descriptor
        self._token = secrets.token_hex(8)
        self.took_over: str | None = None
        kernel = _lock(descriptor)
        holder = self._holder()
        if kernel is False:
            raise self._refused(holder)
        if holder is not None:
            here = holder.get("machine") == _machine()
            alive = _alive(holder.get("pid")) if here and kernel is None else not here and self._age() < STALE
            if alive:
                _unlock(descriptor)
                raise self._refused(holder)
            self.took_over = f"process {holder.get('pid')} on {holder.get('host')} no longer writes it"
        self._write()

    def beat(self) -> bool:
        """Show that this writer lives.

        Returns:
            Whether it still holds the part: a machine that slept too long may have lost it.
        """
        holder = self._holder()
        if holder is None or holder.get("token") != self._token:
            return False
        os.utime(self._beside)
        return True

    def release(self) -> None:
        """Give the part up; to be called before the file is closed."""
        holder = self._holder()
        if holder is not None and holder.get("token") == self._token:
            self._beside.unlink(missing_ok=True)
        _unlock(self._descriptor)

    def _holder(self) -> dict[str, Any] | None:
        try:
            found = json.loads(self._beside.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def _write(self) -> None:
        new = self._beside.with_name(f"{self._beside.name}.{self._token}")
        content = {"token": self._token, "machine": _machine(), "host": socket.gethostname(), "pid": os.getpid()}
        new.write_text(json.dumps(content), encoding="utf-8")
        new.replace(self._beside)

    def _age(self) -> float:
        """Seconds since the holder's last sign of life, by the clock of the disk's machine."""
        probe = self._beside.with_name(f"{self._beside.name}.{self._token}")
        try:
            probe.touch()
            now = probe.stat().st_mtime
            probe.unlink()
            return now - self._beside.stat().st_mtime
        except OSError:
            return time.time() - self._beside.stat().st_mtime

    def _refused(self, holder: dict[str, Any] | None) -> JournalError:
        who = "another process" if holder is None else f"process {holder.get('pid')} on {holder.get('host')}"
        return JournalError(
            f"{self._path}: {who} is writing it; wait for its end, or give this one another part of the run to write"
        )


def _machine() -> str:
    """This machine since its last start: a process number says nothing elsewhere, or after a restart."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()} {boot}"


def _alive(pid: object) -> bool:
    if not isinstance(pid, int) or pid <= 0:
        return False
    if sys.platform == "win32":
        return True  # there, asking would end the process; only the heartbeat's age could tell
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> bool | None:
        try:
            os.lseek(descriptor, _FAR, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(descriptor: int) -> bool | None:
        """Whether the kernel gave the lock; `None` if this folder has no locks."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            return None if error.errno in (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS) else False
        return True

    def _unlock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
