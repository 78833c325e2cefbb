"""One budget and one set of limits for all processes that play parts of a run.

A small file in the run's folder has a row for each part: what it used and what it has reserved. To reserve, a process
locks the file, adds up all rows and writes its own before anything is sent. So the budget is never exceeded, whichever
process dies when. What an attempt did not use is given back a moment later. The row of a dead part keeps all its
reservations until the part is opened again and its journal shows what was used.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import struct
from collections.abc import Callable, Iterator

from llm_coop_envs.errors import RunError
from llm_coop_envs.policies.llm.asking.budget import Budget, Ledger, Reserved, Used, budget_reached
from llm_coop_envs.policies.llm.journal import Journal
from llm_coop_envs.policies.llm.journal.frames import GZIP, ZSTD
from llm_coop_envs.policies.llm.journal.writer import MAIN, PART
from llm_coop_envs.storage.files import cannot_write
from llm_coop_envs.storage.lease import Lease, hold_lease

FILE = ".ledger"
# The part's name; calls, tokens and dollars used; attempts, tokens and dollars reserved.
_ROW = struct.Struct("<104sqqdqqd")
_ROUNDING = 1e-6  # dollars that are reserved and given back may not sum to exactly nothing
_GIVE_BACK_SECONDS = 0.02  # until the other parts see what an attempt did not use
_POLL = 0.1  # seconds until a part that waits for the others looks again
_LOOK = 0.5  # seconds between looks at which parts are being played; a new part sends nothing before all have looked


def open_ledger(budget: Budget, journal: Journal) -> Ledger:
    """Open the ledger of a run: a plain one if one process plays the run, else the one that its parts share.

    Raises:
        RunError: the file cannot be written.
    """
    if journal.part != MAIN:
        return SharedLedger(budget, journal)
    own = journal.report
    ledger = Ledger(budget, calls=own.calls, tokens=own.tokens, usd=own.usd)
    others = journal.others.values()
    ledger.others = Used(
        sum(part.calls for part in others), sum(part.tokens for part in others), math.fsum(part.usd for part in others)
    )
    return ledger


class SharedLedger(Ledger):
    """The account of one part of a run under a budget that all parts share."""

    def __init__(self, budget: Budget, journal: Journal) -> None:
        own = journal.report
        super().__init__(budget, calls=own.calls, tokens=own.tokens, usd=own.usd)
        self._path = journal.path.with_name(FILE)
        self._machine = journal.machine
        self._name = journal.part.encode()
        self._alarm: asyncio.TimerHandle | None = None
        self._live: list[bytes] = []
        self._looked_at = 0.0
        self._closed = False
        try:
            self._descriptor = self._machine.open(self._path)
        except OSError as error:
            raise cannot_write(self._path, error) from error
        with self._locked():
            parts = [row[0].rstrip(b"\0") for row in self._rows()]
            for part, report in journal.others.items():
                if part.encode() not in parts:
                    self._write(len(parts), part.encode(), report.calls, report.tokens, report.usd, 0, 0, 0.0)
                    parts.append(part.encode())
            self._number = parts.index(self._name) if self._name in parts else len(parts)
            self._write_own()
            self._add_up(self._rows())
        self._see_who_plays()
        self._position: tuple[int | None, int] = (None, len(self._live)) if len(self._live) > 1 else (0, 1)

    async def reserve(self, tokens: int, usd: float) -> Reserved:
        """Reserve the most that an attempt may use; see `Ledger.reserve`."""
        while True:
            with self._locked() as holds:
                rows = self._rows()
                self._add_up(rows)
                obstacle = self._obstacle(tokens, usd)
                if obstacle is None:
                    reserved = self._set_aside(tokens, usd)
                    self._write_own()
                    if holds():
                        return reserved
                    # This process was stopped for so long that others may have counted without it.
                    self._take_back(reserved)
                    self._write_own()
            if obstacle is not None and not self._open:
                self._see_who_plays()
                if not any(row[4] and row[0].rstrip(b"\0") in self._live for row in rows):
                    raise budget_reached(obstacle)
            await asyncio.sleep(_POLL)

    def settle(self, reserved: Reserved, *, tokens: int, usd: float) -> None:
        """Replace a reservation by what was used; see `Ledger.settle`."""
        super().settle(reserved, tokens=tokens, usd=usd)
        if self._alarm is None and not self._closed:
            self._alarm = asyncio.get_running_loop().call_later(_GIVE_BACK_SECONDS, self._give_back)

    @property
    def position(self) -> tuple[int | None, int]:
        """This process's number among those that play the run, and their count; see `Ledger.position`."""
        return self._position

    async def look(self) -> bool:
        """Wait until `position` has changed."""
        old_position = self._position
        while self._position == old_position:
            # A new part waits for two looks of the others, so that together they never exceed one process's limits.
            await asyncio.sleep(_LOOK if old_position[0] is not None else 2 * _LOOK)
            self._see_who_plays()
            self._position = self._live.index(self._name), len(self._live)
        return True

    def close(self) -> None:
        """Give back what is not used and close the file; may be called any number of times."""
        if self._closed:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._give_back()
        self._closed = True
        self._machine.close(self._descriptor)

    def _give_back(self) -> None:
        self._alarm = None
        with self._locked():
            self._write_own()

    def _add_up(self, rows: list[tuple[bytes, int, int, float, int, int, float]]) -> None:
        calls, tokens, usd = 0, 0, 0.0
        for number, (_, used_calls, used_tokens, used_usd, _, open_tokens, open_usd) in enumerate(rows):
            if number != self._number:
                calls += used_calls
                tokens += used_tokens + open_tokens
                usd += used_usd + open_usd
        self.others = Used(calls, tokens, usd)

    def _rows(self) -> list[tuple[bytes, int, int, float, int, int, float]]:
        """What all parts have used and reserved; less than nothing, which would add to the budget, nobody has."""
        content = self._machine.read_open(self._descriptor)
        rows = list(_ROW.iter_unpack(content[: len(content) - len(content) % _ROW.size]))
        if any(not all(-_ROUNDING <= number < math.inf for number in row[1:]) for row in rows):
            raise RunError(f"{self._path}: is damaged; delete it when nobody plays the run, it is made anew")
        return rows

    def _write_own(self) -> None:
        opened = len(self._open), self._open_tokens, self._open_usd
        self._write(self._number, self._name, self.calls, self.tokens, self.usd, *opened)

    def _write(self, number: int, *row: object) -> None:
        try:
            self._machine.write_at(self._descriptor, _ROW.pack(*row), number * _ROW.size)
        except OSError as error:
            raise cannot_write(self._path, error) from error

    def _see_who_plays(self) -> None:
        """Update which parts are being played, in the order of the rows."""
        if self._live and self._machine.now() - self._looked_at < _LOOK / 2:
            return
        names = [row[0].rstrip(b"\0") for row in self._rows()]
        self._live = [name for name in names if name == self._name or self._lives(name)]
        self._looked_at = self._machine.now()

    def _lives(self, name: bytes) -> bool:
        part = name.decode(errors="replace")
        if not PART.fullmatch(part):
            return False
        paths = (self._path.with_name(f"{part}{suffix}.lock") for suffix in (ZSTD, GZIP))
        holders = (Lease(path, machine=self._machine).holder() for path in paths)
        return any(holder is not None and holder.lives for holder in holders)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[Callable[[], bool]]:
        """Keep the other parts out; yields what says whether they still are."""
        if self._machine.lock(self._descriptor, wait=True) is None:  # a folder without locks: slower
            with hold_lease(self._path, self._machine) as lease:
                yield lease.holds
            return
        try:
            yield lambda: True
        finally:
            self._machine.unlock(self._descriptor)
