"""Group commit: many lines share one frame, one write and one `fsync`.

Lines that arrive during a write go out together in the next one. Writing and syncing are two loops with a thread each.
A line that has to survive the death of this process waits for its write; a line that has to survive a power cut waits
for the next sync after its write. So a slow disk delays answers, but not the sending of questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from llm_coop_envs.policies.llm.journal.frames import JournalError, explain_os_errors
from llm_coop_envs.storage.machine import HERE, Machine

# Seconds between two writes at least, so that hundreds of answers per second share them.
APART = 0.005

_Waiting = list["asyncio.Future[None]"]


class GroupCommit:
    """Appends lines to a file.

    Args:
        path: the file, for messages.
        descriptor: the file, open for appending; the caller closes it.
        pack: compresses lines into a frame.
        may_write: asked just before each write; a process that was stopped may have lost the file to another one.
        machine: writes and syncs.
    """

    def __init__(
        self,
        path: Path,
        descriptor: int,
        pack: Callable[[bytes], bytes],
        may_write: Callable[[], bool] = lambda: True,
        machine: Machine = HERE,
    ) -> None:
        self._path = path
        self._may_write = may_write
        self._machine = machine
        self._descriptor = descriptor
        self._pack = pack
        self._lines: list[bytes] = []
        self._for_write: _Waiting = []
        self._for_sync: _Waiting = []
        self._unsynced: _Waiting = []
        self._dirty = False
        self._writer: asyncio.Task[None] | None = None
        self._syncer: asyncio.Task[None] | None = None
        self._last_write = 0.0
        self._failed: str | None = None
        self._threads = ThreadPoolExecutor(2, thread_name_prefix="journal")

    def add(self, line: bytes) -> None:
        """Append a line without waiting for its write.

        Raises:
            JournalError: writing has failed before.
        """
        if self._failed is not None:
            raise JournalError(self._failed)
        self._lines.append(line)
        if self._writer is None or self._writer.done():
            self._writer = asyncio.get_running_loop().create_task(self._writes())

    def append(self, line: bytes, *, sync: bool) -> asyncio.Future[None]:
        """Append a line.

        Returns:
            A future to wait for: with `sync` until the line survives a power cut, else until it survives the death of
            this process. It fails with a `JournalError` if the line cannot be written.
        """
        self.add(line)
        waiting: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        (self._for_sync if sync else self._for_write).append(waiting)
        return waiting

    def write_now(self, line: bytes) -> None:
        """Append a line and sync it, without an event loop."""
        self._write([line])
        self._sync()

    async def flush(self) -> None:
        """Wait until all lines added so far are on the disk."""
        while busy := [task for task in (self._writer, self._syncer) if task is not None and not task.done()]:
            await asyncio.wait(busy)

    def fail(self, reason: str, waiting: Sequence[asyncio.Future[None]] = ()) -> None:
        """Refuse further lines and fail all waiting futures."""
        # After a failed write the state of the file is unknown; the next opening reads it.
        self._failed = reason
        self._lines.clear()
        for future in (*waiting, *self._for_write, *self._for_sync, *self._unsynced):
            if not future.done():
                future.set_exception(JournalError(reason))
        self._for_write, self._for_sync, self._unsynced = [], [], []

    def close(self) -> None:
        """End the threads."""
        self._threads.shutdown()

    async def _writes(self) -> None:
        """Write frames until no line is left."""
        loop = asyncio.get_running_loop()
        while self._lines:
            pause = self._last_write + APART - loop.time()
            if pause > 0:
                await asyncio.sleep(pause)
            lines, self._lines = self._lines, []
            for_write, self._for_write = self._for_write, []
            for_sync, self._for_sync = self._for_sync, []
            self._last_write = loop.time()
            try:
                await loop.run_in_executor(self._threads, self._write, lines)
            except Exception as error:
                return self.fail(str(error), [*for_write, *for_sync])
            _release(for_write)
            self._unsynced += for_sync
            self._dirty = True
            if self._syncer is None or self._syncer.done():
                self._syncer = loop.create_task(self._syncs())

    async def _syncs(self) -> None:
        """Sync until everything written is on the disk."""
        while self._dirty:
            self._dirty = False
            waiting, self._unsynced = self._unsynced, []
            try:
                await asyncio.get_running_loop().run_in_executor(self._threads, self._sync)
            except Exception as error:
                return self.fail(str(error), waiting)
            _release(waiting)

    def _write(self, lines: list[bytes]) -> None:
        data = self._pack(b"".join(lines))
        with explain_os_errors(self._path):
            if not self._may_write():
                raise JournalError(f"{self._path}: another process took this part over; end this run")
            view = memoryview(data)
            while view:
                view = view[self._machine.write(self._descriptor, view) :]

    def _sync(self) -> None:
        with explain_os_errors(self._path):
            self._machine.sync(self._descriptor)


def _release(waiting: _Waiting) -> None:
    for future in waiting:
        if not future.done():
            future.set_result(None)
