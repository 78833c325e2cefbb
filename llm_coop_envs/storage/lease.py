"""Leases: exclusive rights for processes on one or several machines, held by a file in a shared folder.

A lease only needs a file system on which two processes cannot both create a file of one name. (Locks of the kernel,
see `storage.lock`, end at once when their holder dies, but many shared folders do not carry them between machines.)

The files of a lease are numbered, such as `it.1` and `it.2`; the holder is the one that the highest number names. A
process that finds the holder dead creates the file with the next number, which only one process can, and empties the
file of the holder, who so learns of it even where the folder shows new names late.

A holder in this process's own namespace is dead when its process has ended. Elsewhere only its heartbeat counts: it is
dead when it has been silent for a minute by the clock of the folder, and for half a minute by the clock of whoever
looks, because clocks may be wrong. A holder that has not sent a heartbeat for a third of a minute therefore looks at
its file before it does anything by its right (`Lease.holds`): it may have been stopped, or its machine asleep.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import RunError
from llm_coop_envs.storage.files import cannot_write
from llm_coop_envs.storage.machine import HERE, Machine
from llm_coop_envs.util.fastjson import loads

#: Seconds between heartbeats; and for how long a holder elsewhere must have been silent to count as dead, by the clock
#: of the folder, and by the clock of whoever looks.
HEARTBEAT, STALE, WATCH = 10.0, 60.0, 30.0
#: For how many seconds after a heartbeat its sender relies on its lease; shorter than `WATCH`.
TRUST = 20.0
_POLL = 0.05  # seconds


@dataclass(frozen=True, kw_only=True)
class Holder:
    """The present or last holder of a lease.

    Attributes:
        name: the holder's name; `None` if it died before it could write it.
        process: its process and machine, in words.
        lives: whether it may still be running.
        gone: whether it is known to have ended; false if it is only silent.
        watched: whether it is silent, and being watched for a sign of life.
        machine: the `Machine.name` of where it runs or ran.
        kernel: its `Machine.kernel`.
    """

    name: str | None
    process: str
    lives: bool
    gone: bool = False
    watched: bool = False
    machine: str | None = None
    kernel: str | None = None


class Lease:
    """A lease that this process may take.

    Args:
        path: the path of the lease's files without their numbers; its folder must exist.
        name: the name under which this process holds it.
        machine: where this process runs.

    Attributes:
        number: the number of the file by which this process holds it; `None` if it does not. Whoever holds it later
            has a higher one, unless it was released meanwhile.
    """

    def __init__(self, path: Path, name: str = "", machine: Machine = HERE) -> None:
        self._path = path
        self._name = name
        self._machine = machine
        self._token = secrets.token_hex(8)
        self._beaten = 0.0
        self._disputed = False
        self.number: int | None = None

    def holder(self) -> Holder | None:
        """The process that holds the lease, or held it last without releasing it; `None` if there is none."""
        numbers = self._numbers()
        return self._read(numbers[-1]) if numbers else None

    def settle_holder(self) -> Holder | None:
        """The same, when it has become clear whether it lives; that takes half a minute if it is silent."""
        while (found := self.holder()) is not None and found.watched:
            self._machine.sleep(10 * _POLL)
        return found

    @property
    def claim(self) -> int:
        """The lease's number if a holder before was only silent, and may wake up; 0 if all of them surely ended."""
        return (self.number or 0) if self._disputed else 0

    def take(self, *, is_dead: bool = False, after: str | None = None) -> bool:
        """Try to take the lease; it is free if it has no holder or a dead one.

        Args:
            is_dead: whether it is known otherwise that its present holder is dead.
            after: the only name that its last holder may have, if there was one; any name if `None`.

        Returns:
            Whether this process holds it now.

        Raises:
            RunError: its folder cannot be written.
        """
        try:
            return self._take(is_dead, after)
        except FileExistsError:
            return False
        except OSError as error:
            raise cannot_write(self._path, error) from error

    def _take(self, is_dead: bool, after: str | None) -> bool:
        began = self._machine.now()
        numbers = self._numbers()
        top = numbers[-1] if numbers else 0
        before = self._load(top) if numbers else {}
        if before is None:
            return False
        if numbers and not is_dead:
            holder = self._read(top)
            if holder.lives or (after is not None and holder.name != after):
                return False
            self._disputed = bool(before.get("disputed")) or not holder.gone
        descriptor = self._machine.create(self._file(top + 1))
        try:
            self._machine.write(descriptor, self._content(**self._this_process()))
        finally:
            self._machine.close(descriptor)
        if self._machine.now() - began >= TRUST:
            # It was stopped before it wrote: somebody may have emptied its file meanwhile, and is not shown yet.
            self._machine.remove(self._file(top + 1))
            return False
        return self._took_over(top + 1, numbers, before, began=began, is_dead=is_dead)

    def _took_over(
        self, number: int, numbers: list[int], before: dict[str, Any], *, began: float, is_dead: bool
    ) -> bool:
        """Make sure that the lease had not changed hands when its new file was made, and tell the last holder."""
        self.number, self._beaten = number, began
        # It may have been released since the numbers were listed, and taken again with a lower number.
        again = [other for other in self._numbers() if other != number]
        changed = bool(numbers) and (
            self._load(numbers[-1]) != before or (not is_dead and self._read(numbers[-1]).lives)
        )
        if changed or any(other > number or (other not in numbers and self._read(other).lives) for other in again):
            self._machine.remove(self._file(number))
            self.number = None
            return False
        for other in numbers:
            with contextlib.suppress(FileNotFoundError):
                self._machine.empty(self._file(other))
        if not self.holds():  # stopped for so long that it may have been taken for dead
            self.leave()
            return False
        return True

    def holds(self) -> bool:
        """Whether this process surely still holds the lease; only an old heartbeat makes it look at its file."""
        for _ in range(2):
            if self.number is None or self._machine.now() - self._beaten < TRUST:
                return self.number is not None
            if not self.beat():
                return False
        return self._machine.now() - self._beaten < TRUST  # it may have been stopped while it looked

    def beat(self) -> bool:
        """Send a heartbeat.

        Returns:
            Whether this process still holds the lease; one that was stopped, or whose machine slept, may have lost it.
        """
        number, now = self.number, self._machine.now()
        try:
            if number is None or not self._is_mine():
                return False
            self._machine.touch(self._file(number))
        except FileNotFoundError:
            return False
        except OSError:  # nobody can say; others see no sign of life
            return self._machine.now() - self._beaten < TRUST
        self._beaten = now
        return True

    def release(self) -> None:
        """Give up the lease and remove its files."""
        if self._is_mine():
            assert self.number is not None
            for number in range(1, self.number + 1):  # in rising order: the file that holds the lease is removed last
                self._machine.remove(self._file(number))
        self.number = None

    def leave(self) -> None:
        """Give up the lease, but keep its file, which tells the next process this holder's name."""
        if self._is_mine():
            assert self.number is not None
            self._machine.write_whole(self._file(self.number), self._content(machine=self._machine.name))
        self.number = None

    def _is_mine(self) -> bool:
        if self.number is None or self._numbers()[-1:] not in ([], [self.number]):
            return False
        return (self._load(self.number) or {}).get("token") == self._token

    def _content(self, **fields: Any) -> bytes:
        disputed = {"disputed": True} if self._disputed else {}
        return json.dumps({"name": self._name, "token": self._token, **disputed, **fields}).encode()

    def _this_process(self) -> dict[str, Any]:
        machine, process = self._machine, self._machine.process()
        where = {"machine": machine.name, "kernel": machine.kernel, "host": machine.host}
        return {**where, "pid": process, "started": machine.start_time(process)}

    def _file(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}")

    def _numbers(self) -> list[int]:
        """The numbers of the lease's files, in rising order."""
        prefix = f"{self._path.name}."
        with contextlib.suppress(FileNotFoundError):
            names = self._machine.names(self._path.parent)
            suffixes = [name[len(prefix) :] for name in names if name.startswith(prefix)]
            return sorted(int(suffix) for suffix in suffixes if suffix.isdecimal())
        return []

    def _read(self, number: int) -> Holder:
        """The holder that a file names; one that is listed and gone may have been replaced by what is not shown yet."""
        try:
            content = self._load(number)
        except OSError:
            content = None
        if content is None:
            return Holder(name=None, process="another process", lives=True)
        name, process, where = content.get("name"), content.get("pid"), content.get("machine")
        if content and process is None:
            return Holder(name=name, process="nobody", lives=False, gone=True, machine=where)
        runs = None
        if process is not None and where == self._machine.name:
            runs = self._machine.runs(process, content.get("started") or "")
        lives, watched = (runs, False) if runs is not None else self._beats(self._file(number))
        described = f"process {process} on {content.get('host')}" if content else "another process"
        return Holder(
            name=name,
            process=described,
            lives=lives,
            gone=runs is False,
            watched=watched,
            machine=where,
            kernel=content.get("kernel"),
        )

    def _load(self, number: int) -> dict[str, Any] | None:
        """The content of a file; empty if its writer has not written it yet, or was told of a later one."""
        try:
            data = self._machine.read(self._file(number))
            content = loads(data) if data else {}
        except FileNotFoundError:
            return None
        except ValueError:
            return {}
        return content if isinstance(content, dict) else {}

    def _beats(self, path: Path) -> tuple[bool, bool]:
        """Whether a holder elsewhere may live, and whether it is being watched for a sign of life."""
        machine = self._machine
        try:
            stamp = machine.touched(path)
            # A sign of life from the future says that clocks differ.
            silent = not -HEARTBEAT < machine.untouched_for(path) < STALE
        except FileNotFoundError:
            return True, False
        except OSError:
            return True, True
        now = machine.now()
        if machine.watched.get(path, (None, 0.0))[0] != stamp:
            machine.watched[path] = stamp, now
        return not silent or now - machine.watched[path][1] < WATCH, silent and now - machine.watched[path][1] < WATCH


@contextlib.contextmanager
def hold_lease(path: Path, machine: Machine = HERE) -> Iterator[Lease]:
    """Wait for a lease, and hold it during the block.

    Raises:
        RunError: the folder cannot be written.
    """
    lease = Lease(path, machine=machine)
    while not lease.take():
        machine.sleep(_POLL)
    try:
        with machine.repeat(lease.beat, HEARTBEAT):
            yield lease
    finally:
        lease.release()


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
