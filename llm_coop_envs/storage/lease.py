"""Leases: exclusive rights for processes on one or several machines, held by a file in a shared folder.

A lease only needs a file system on which two processes cannot both create a file of one name. (Locks of the kernel,
see `storage.lock`, end at once when their holder dies, but many shared folders do not carry them between machines.)

The files of a lease are numbered, such as `it.1` and `it.2`; the holder is the one that the highest number names. A
process that finds the holder dead creates the file with the next number, which only one process can. A holder on this
machine is dead when its process has ended, one on another machine when it has sent no heartbeat for a minute.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import RunError
from llm_coop_envs.storage.files import cannot_write, write_whole

#: Seconds between heartbeats, and the seconds without one after which a holder on another machine counts as dead.
HEARTBEAT, STALE = 10.0, 60.0
_POLL = 0.05  # seconds


@dataclass(frozen=True, kw_only=True)
class Holder:
    """The present or last holder of a lease.

    Attributes:
        name: the holder's name; `None` if it died before it could write it.
        process: its process and machine, in words.
        lives: whether it may still be running.
    """

    name: str | None
    process: str
    lives: bool


class Lease:
    """A lease that this process may take.

    Args:
        path: the path of the lease's files without their numbers; its folder must exist.
        name: the name under which this process holds it.
    """

    def __init__(self, path: Path, name: str = "") -> None:
        self._path = path
        self._name = name
        self._token = secrets.token_hex(8)
        self._number: int | None = None

    def holder(self) -> Holder | None:
        """The process that holds the lease, or held it last without releasing it; `None` if there is none."""
        numbers = self._numbers()
        return _read(self._file(numbers[-1])) if numbers else None

    def take(self) -> bool:
        """Try to take the lease; it is free if it has no holder or a dead one.

        Returns:
            Whether this process holds it now.

        Raises:
            RunError: its folder cannot be written.
        """
        numbers = self._numbers()
        if numbers and _read(self._file(numbers[-1])).lives:
            return False
        number = numbers[-1] + 1 if numbers else 1
        try:
            descriptor = os.open(self._file(number), os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644)
        except FileExistsError:
            return False
        except OSError as error:
            raise cannot_write(self._file(number), error) from error
        with open(descriptor, "wb") as file:
            file.write(self._content(**_this_process()))
        # Since the numbers were listed, the lease may have been released and taken again with a lower number.
        others = [other for other in self._numbers() if other != number]
        if any(other > number or _read(self._file(other)).lives for other in others):
            self._file(number).unlink(missing_ok=True)
            return False
        self._number = number
        return True

    def beat(self) -> bool:
        """Send a heartbeat.

        Returns:
            Whether this process still holds the lease; a machine that slept may have lost it.
        """
        if not self._is_mine():
            return False
        assert self._number is not None
        with contextlib.suppress(OSError):
            os.utime(self._file(self._number))
        return True

    def release(self) -> None:
        """Give up the lease and remove its files."""
        if self._is_mine():
            for number in self._numbers():  # in rising order: the file that holds the lease is removed last
                self._file(number).unlink(missing_ok=True)
        self._number = None

    def leave(self) -> None:
        """Give up the lease, but keep its file, which tells the next process this holder's name."""
        if self._is_mine():
            assert self._number is not None
            write_whole(self._file(self._number), self._content())
        self._number = None

    def _is_mine(self) -> bool:
        if self._number is None or self._numbers()[-1:] != [self._number]:
            return False
        return bool(_load(self._file(self._number)).get("token") == self._token)

    def _content(self, **fields: Any) -> bytes:
        return json.dumps({"name": self._name, "token": self._token, **fields}).encode()

    def _file(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _numbers(self) -> list[int]:
        """The numbers of the lease's files, in rising order."""
        prefix = f"{self._path.name}."
        with contextlib.suppress(FileNotFoundError):
            suffixes = [name[len(prefix) :] for name in os.listdir(self._path.parent) if name.startswith(prefix)]
            return sorted(int(suffix) for suffix in suffixes if suffix.isdecimal())
        return []


@contextlib.contextmanager
def hold_lease(path: Path) -> Iterator[None]:
    """Wait for a lease, and hold it during the block.

    Raises:
        RunError: the folder cannot be written.
    """
    lease = Lease(path)
    while not lease.take():
        time.sleep(_POLL)
    try:
        with heartbeat(lease.beat):
            yield
    finally:
        lease.release()


@contextlib.contextmanager
def heartbeat(beat: Callable[[], object]) -> Iterator[None]:
    """Call `beat` every `HEARTBEAT` seconds in a thread, until the block ends."""
    ended = threading.Event()

    def keep_beating() -> None:
        while not ended.wait(HEARTBEAT):
            beat()

    thread = threading.Thread(target=keep_beating, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def check_leases(folder: Path) -> None:
    """Check that leases work in a folder.

    Raises:
        RunError: two processes could both create a file of one name there, or it cannot be written.
    """
    probe = folder / f".probe-{secrets.token_hex(8)}"
    try:
        for exists in (False, True):
            with contextlib.suppress(FileExistsError):
                os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
                if exists:
                    raise RunError(
                        f"{folder}: this file system lets two processes create one file, so that parts of a run cannot "
                        "share it; choose a folder elsewhere with -o, or play the run in one process"
                    )
    except OSError as error:
        raise cannot_write(probe, error) from error
    finally:
        with contextlib.suppress(OSError):
            probe.unlink()


def _read(path: Path) -> Holder:
    """The holder that a lease's file names."""
    content = _load(path)
    name, process, host = content.get("name"), content.get("pid"), content.get("host")
    if content and process is None:
        return Holder(name=name, process="nobody", lives=False)
    is_local = content.get("machine") == _machine() and sys.platform != "win32"
    # Process numbers are used again: a local holder lives if a process with its number and its start time does.
    lives = _start_time(process) == content.get("started") if is_local else _beats(path)
    return Holder(name=name, process=f"process {process} on {host}" if content else "another process", lives=lives)


def _load(path: Path) -> dict[str, Any]:
    """The content of a lease's file; empty while it is being written, or if its writer died meanwhile."""
    with contextlib.suppress(OSError, ValueError):
        content = json.loads(path.read_bytes())
        return content if isinstance(content, dict) else {}
    return {}


def _beats(path: Path) -> bool:
    """Whether a lease's file was touched in the last minute, by the clock of the machine that serves the folder."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent) as probe:
            return os.stat(probe.name).st_mtime - path.stat().st_mtime < STALE
    except OSError:
        return path.exists()


def _this_process() -> dict[str, Any]:
    process = os.getpid()
    return {"machine": _machine(), "host": socket.gethostname(), "pid": process, "started": _start_time(process)}


def _machine() -> str:
    """The name of this machine and its boot: process numbers mean nothing on another machine or after a restart."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()} {boot}"


def _start_time(process: Any) -> str | None:
    """The start time of a process on this machine, in clock ticks since boot on Linux.

    Returns:
        `None` if it does not run; an empty string where the system has no `/proc` to tell the time.
    """
    try:
        # The second field, the program's name, may hold spaces and parentheses: "12 (a) b) S 1 ...".
        state, *fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        if Path("/proc/self/stat").exists():
            return None
    else:
        return None if state in "ZX" else fields[18]
    try:
        os.kill(process, 0)
    except PermissionError:
        return ""
    except (ProcessLookupError, OverflowError, TypeError):
        return None
    return ""
