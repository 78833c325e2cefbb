"""What processes that share a folder get from their machine: files, time, and who is alive.

Leases, claims, journals and ledgers reach the system through a `Machine` alone, so that a simulation can bring its own.
"""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import BinaryIO

from llm_coop_envs.storage.files import write_whole
from llm_coop_envs.storage.lock import lock, unlock
from llm_coop_envs.util.opening import check_inside, open_descriptor, open_file


class Machine:
    """This machine, as this process sees it.

    Attributes:
        watched: the last sign of life in a lease's file, and when this process saw it first, by the file's path.
    """

    def __init__(self) -> None:
        self.watched: dict[Path, tuple[float | None, float]] = {}

    # Who and when

    @cached_property
    def host(self) -> str:
        """The name of this machine."""
        return socket.gethostname()

    @cached_property
    def kernel(self) -> str:
        """The name of this machine and its boot: two containers with the same kernel share it."""
        try:
            return f"{self.host} {Path('/proc/sys/kernel/random/boot_id').read_text(encoding='ascii').strip()}"
        except OSError:
            return f"{self.host} "

    @cached_property
    def name(self) -> str:
        """Where process numbers mean the same as here: this machine, its boot, and its namespace of processes.

        Two containers may have the same host name and the same kernel, and each a process 1.
        """
        try:
            return f"{self.kernel} {os.readlink('/proc/self/ns/pid')}"
        except OSError:
            return self.kernel

    def now(self) -> float:
        """Seconds on a clock that nobody sets, and that goes on while the machine sleeps."""
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Wait."""
        time.sleep(seconds)

    @contextlib.contextmanager
    def repeat(self, act: Callable[[], object], seconds: float) -> Iterator[None]:
        """Call a function every so many seconds in a thread, until the block ends."""
        ended = threading.Event()

        def keep_acting() -> None:
            while not ended.wait(seconds):
                act()

        thread = threading.Thread(target=keep_acting, daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def process(self) -> int:
        """The number of this process."""
        return os.getpid()

    def start_time(self, process: int) -> str | None:
        """The start time of a process of this namespace, in clock ticks since boot on Linux.

        Returns:
            `None` if it does not run; an empty string if it may run and the time is not known.
        """
        # A `/proc` of another namespace knows this process by another number, or not at all.
        shows_us = os.path.exists("/proc/self/stat") and os.readlink("/proc/self") == str(os.getpid())
        if shows_us:
            with contextlib.suppress(OSError):
                # The second field, the program's name, may hold spaces and parentheses: "12 (a) b) S 1 ...".
                state, *fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                return None if state in "ZX" else fields[18]
        if sys.platform == "win32":  # where the signal 0 is Ctrl-C
            return ""
        try:
            os.kill(process, 0)
        except (ProcessLookupError, OverflowError, TypeError):
            return None
        except PermissionError:
            return ""
        return ""

    def runs(self, process: int, started: str) -> bool | None:
        """Whether a process of this namespace runs that was started at a time; `None` if that cannot be told."""
        if sys.platform == "win32":
            return None
        found = self.start_time(process)
        # Process numbers are used again: one with another start time is another process.
        if found is None or (found and started):
            return found is not None and found == started
        return True if found == started else None

    # Files

    def names(self, folder: Path) -> list[str]:
        """The names in a folder; a shared one may show those that others made some seconds late."""
        return os.listdir(folder)

    def read(self, path: Path) -> bytes:
        """The content of a file."""
        with open_file(path) as file:
            return file.read()

    def read_own(self, path: Path, longest: int) -> bytes:
        """The content of a regular file of this user, no link, that has at most so many bytes.

        Raises:
            OSError: it is something else.
        """
        info = path.lstat()
        if not stat.S_ISREG(info.st_mode) or info.st_uid != os.getuid() or info.st_size > longest:
            raise PermissionError(f"{path}: is no small file of this user")
        return path.read_bytes()

    def reader(self, path: Path) -> BinaryIO:
        """A file, open for reading."""
        return open_file(path)

    def is_there(self, path: Path) -> bool:
        """Whether there is a file of this name."""
        return path.is_file()

    def touched(self, path: Path) -> float:
        """When a file was written or touched last."""
        with open_file(path) as file:  # on a network folder, opening asks the server
            return os.fstat(file.fileno()).st_mtime

    def untouched_for(self, path: Path) -> float:
        """For how many seconds nobody touched a file, by the clock of the machine that serves the folder."""
        check_inside(path)
        with tempfile.NamedTemporaryFile(dir=path.parent) as probe:
            return os.stat(probe.name).st_mtime - self.touched(path)

    def touch(self, path: Path) -> None:
        """Set the time of an existing file to now."""
        check_inside(path)
        os.utime(path)

    def make_folder(self, path: Path) -> None:
        """Make a folder, and those above it."""
        check_inside(path)
        path.mkdir(parents=True, exist_ok=True)

    def create(self, path: Path) -> int:
        """Open a new file for writing; of several processes that create one name, all but one get an error."""
        return open_descriptor(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY)

    def open(self, path: Path, flags: int = 0) -> int:
        """Open a file for reading and writing; it is made if it is missing."""
        return open_descriptor(path, os.O_RDWR | os.O_CREAT | flags)

    def write(self, descriptor: int, data: bytes | memoryview) -> int:
        """Write to an open file; returns how many bytes were taken."""
        return os.write(descriptor, data)

    def write_at(self, descriptor: int, data: bytes, start: int) -> int:
        """Write to an open file from a byte on."""
        return os.pwrite(descriptor, data, start)

    def read_open(self, descriptor: int) -> bytes:
        """All of an open file."""
        return os.pread(descriptor, os.fstat(descriptor).st_size, 0)

    def cut(self, descriptor: int, size: int) -> None:
        """Cut an open file to a size."""
        os.ftruncate(descriptor, size)

    def sync(self, descriptor: int) -> None:
        """Return when what was written to an open file is on the disk."""
        os.fsync(descriptor)

    def sync_folder(self, folder: Path) -> None:
        """Make the names of new files safe against a power cut, where folders can be synced."""
        if os.name == "posix":
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)

    def close(self, descriptor: int) -> None:
        """Close a file."""
        os.close(descriptor)

    def empty(self, path: Path) -> None:
        """Take the content from an existing file."""
        check_inside(path)
        os.truncate(path, 0)

    def remove(self, path: Path) -> None:
        """Remove a file, if it is there."""
        path.unlink(missing_ok=True)

    def move(self, path: Path, target: Path) -> None:
        """Give a file another name; a file that has it is replaced."""
        os.replace(path, target)

    def write_whole(self, path: Path, content: bytes) -> None:
        """Write or replace a file atomically; see `files.write_whole`."""
        write_whole(path, content)

    def lock(self, descriptor: int, *, wait: bool = False) -> bool | None:
        """Lock an open file; see `storage.lock.lock`."""
        return lock(descriptor, wait=wait)

    def unlock(self, descriptor: int) -> None:
        """Release the lock on an open file, if it is held."""
        unlock(descriptor)


#: The machine of this process.
HERE = Machine()
