"""Leases: the right to something that processes of one or several machines may want, held by a file in a shared folder.

They need nothing of the file system but that two processes cannot both create a file of one name; locks of the kernel
(`storage.lock`) go at once when their holder dies, but many shared folders do not carry them between machines. A
lease's files are numbered. The highest number holds; who finds its holder dead creates the next one, which only one
can. A holder on this machine is dead when its process is; one elsewhere when it has not shown a sign of life for a
minute.
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

HEARTBEAT = 10.0
STALE = 60.0
_POLL = 0.05


@dataclass(frozen=True, kw_only=True)
class Holder:
    """Who holds or held a lease.

    Attributes:
        name: what the holder calls itself; `None` if it died before it had said so.
        process: its process and machine, in words.
        lives: whether it may still be at work.
    """

    name: str | None
    process: str
    lives: bool


class Lease:
    """A lease that this process may take.

    Args:
        path: what the files are called, but for their numbers; its folder must exist.
        name: what this holder calls itself.
    """

    def __init__(self, path: Path, name: str = "") -> None:
        self._path = path
        self._name = name
        self._token = secrets.token_hex(8)
        self._number: int | None = None

    def holder(self) -> Holder | None:
        """Who holds it, or held it last and did not release it; `None` if nobody did."""
        numbers = self._numbers()
        return _read(self._file(numbers[-1])) if numbers else None

    def take(self) -> bool:
        """Take it, if whoever holds it is dead; whether it was got.

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
        # Between looking and creating, it may have been released and taken again with a lower number.
        others = [one for one in self._numbers() if one != number]
        if any(one > number or _read(self._file(one)).lives for one in others):
            self._file(number).unlink(missing_ok=True)
            return False
        self._number = number
        return True

    def beat(self) -> bool:
        """Show a sign of life; whether this process still holds it. A machine that slept may have lost it."""
        if not self._is_mine():
            return False
        assert self._number is not None
        with contextlib.suppress(OSError):
            os.utime(self._file(self._number))
        return True

    def release(self) -> None:
        """Give it up; nothing is left of it."""
        if self._is_mine():
            for number in self._numbers():  # the one that holds goes last
                self._file(number).unlink(missing_ok=True)
        self._number = None

    def leave(self) -> None:
        """Give it up, and leave this holder's name for whoever comes next."""
        if self._is_mine():
            assert self._number is not None
            write_whole(self._file(self._number), self._content())
        self._number = None

    def _is_mine(self) -> bool:
        if self._number is None or self._numbers()[-1:] != [self._number]:
            return False
        return bool(_load(self._file(self._number)).get("token") == self._token)

    def _content(self, **more: Any) -> bytes:
        return json.dumps({"name": self._name, "token": self._token, **more}).encode()

    def _file(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _numbers(self) -> list[int]:
        start = f"{self._path.name}."
        with contextlib.suppress(FileNotFoundError):
            names = (one[len(start) :] for one in os.listdir(self._path.parent) if one.startswith(start))
            return sorted(int(one) for one in names if one.isdecimal())
        return []


@contextlib.contextmanager
def alone_with(path: Path) -> Iterator[None]:
    """Wait for a lease, and hold it.

    Raises:
        RunError: the folder cannot be written.
    """
    lease = Lease(path)
    while not lease.take():
        time.sleep(_POLL)
    try:
        with beating(lease.beat):
            yield
    finally:
        lease.release()


@contextlib.contextmanager
def beating(beat: Callable[[], object]) -> Iterator[None]:
    """Show signs of life in a thread: `beat` is called every `HEARTBEAT` seconds."""
    ended = threading.Event()

    def live() -> None:
        while not ended.wait(HEARTBEAT):
            beat()

    heart = threading.Thread(target=live, daemon=True)
    heart.start()
    try:
        yield
    finally:
        ended.set()
        heart.join()


def check_leases(folder: Path) -> None:
    """Find out whether a folder carries leases.

    Raises:
        RunError: two processes could both create a file of one name there, or it cannot be written.
    """
    probe = folder / f".probe-{secrets.token_hex(8)}"
    try:
        for last in (False, True):
            with contextlib.suppress(FileExistsError):
                os.close(os.open(probe, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
                if last:
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
    """Who a lease's file names."""
    found = _load(path)
    name, process, host = found.get("name"), found.get("pid"), found.get("host")
    if found and process is None:
        return Holder(name=name, process="nobody", lives=False)
    here = found.get("machine") == _machine() and sys.platform != "win32"
    lives = _started(process) == found.get("started") if here else _shows_life(path)
    return Holder(name=name, process=f"process {process} on {host}" if found else "another process", lives=lives)


def _load(path: Path) -> dict[str, Any]:
    """A lease's file; empty while it is being written, or if its writer died over it."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_bytes())
        return found if isinstance(found, dict) else {}
    return {}


def _shows_life(path: Path) -> bool:
    """Whether a file was touched in the last minute, by the clock of the disk's machine."""
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent) as probe:
            return os.stat(probe.name).st_mtime - path.stat().st_mtime < STALE
    except OSError:
        return path.exists()


def _this_process() -> dict[str, Any]:
    process = os.getpid()
    return {"machine": _machine(), "host": socket.gethostname(), "pid": process, "started": _started(process)}


def _machine() -> str:
    """This machine since its last start: a process number says nothing elsewhere, or after a restart."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        boot = ""
    return f"{socket.gethostname()} {boot}"


def _started(process: Any) -> str | None:
    """When a process of this machine was started, in whatever the system counts; `None` if it does not run."""
    try:
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
