"""One writer for one part of a journal.

On one machine the kernel decides (a lock on the journal file, gone when its holder dies). Where a shared folder does
not carry such locks between machines, a small file beside the journal does: who writes, with a heartbeat.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

from llm_coop_envs.policies.llm.journal.frames import JournalError
from llm_coop_envs.storage.files import write_whole
from llm_coop_envs.storage.lock import lock, unlock

HEARTBEAT = 10.0
STALE = 60.0


class PartLock:
    """The right to write one part; held until it is closed.

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
        locked = lock(descriptor)
        holder = self._holder()
        who = "another process" if holder is None else f"process {holder.get('pid')} on {holder.get('host')}"
        if locked is False or (holder is not None and self._lives(holder, locked=locked is True)):
            if locked:
                unlock(descriptor)
            raise JournalError(
                f"{path}: {who} is writing it; wait for its end, or give this one another part of the run to write"
            )
        if holder is not None:
            self.took_over = f"{who} no longer writes it"
        content = {"token": self._token, "machine": machine(), "host": socket.gethostname(), "pid": os.getpid()}
        write_whole(self._beside, json.dumps(content).encode())

    def beat(self) -> bool:
        """Show that this writer lives, and say whether it still holds the part: a sleeping machine may have lost it."""
        if not self._is_mine():
            return False
        os.utime(self._beside)
        return True

    def close(self) -> None:
        """Give the part up; to be called before the file is closed."""
        if self._is_mine():
            self._beside.unlink(missing_ok=True)
        unlock(self._descriptor)

    def _is_mine(self) -> bool:
        holder = self._holder()
        return holder is not None and holder.get("token") == self._token

    def _holder(self) -> dict[str, Any] | None:
        try:
            found = json.loads(self._beside.read_bytes())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None

    def _lives(self, holder: dict[str, Any], *, locked: bool) -> bool:
        """Whether the process that the file beside names may still be writing."""
        if holder.get("machine") == machine():
            return not locked and _runs(holder.get("pid"))
        try:  # by the clock of the disk's machine
            with tempfile.NamedTemporaryFile(dir=self._path.parent) as probe:
                now = os.stat(probe.name).st_mtime
        except OSError:
            now = time.time()
        return now - self._beside.stat().st_mtime < STALE


def machine() -> str:
    """This machine since its last start: a process number says nothing elsewhere, or after a restart."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()} {boot}"


def _runs(process: Any) -> bool:
    try:
        os.kill(process, 0)
    except PermissionError:
        return True
    except (ProcessLookupError, OverflowError, TypeError):
        return False
    return True
