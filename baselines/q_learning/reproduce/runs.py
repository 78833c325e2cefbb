"""Many sessions: spread over cores, written down as they end, continued after an interruption, kept as Parquet.

In the run folder (`storage.folder`) `sessions.jsonl` gets one line per finished session, and `sessions.parquet` is made
of it when all are there. Sessions do not depend on each other, so neither the number of workers nor an interruption
changes a result.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from llm_coop_envs.baselines.q_learning.analyse.measures import Row, session_row
from llm_coop_envs.baselines.q_learning.learn.game import Game
from llm_coop_envs.baselines.q_learning.learn.sessions import Session, run_docked_session, run_session
from llm_coop_envs.baselines.q_learning.learn.settings import GIB, QLearningSettings, machine_memory
from llm_coop_envs.errors import SettingsError
from llm_coop_envs.storage.files import open_for_append, read_appended
from llm_coop_envs.storage.folder import RunFolder
from llm_coop_envs.storage.parquet import need_arrow, write_rows
from llm_coop_envs.util.checks import check_int, require_int

JOURNAL, RESULT = "sessions.jsonl", "sessions.parquet"

REMATCHED = 2**31
"""From this number on a seed's sessions are those of firms that met before."""

Report = Callable[[Row], None]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is run.

    Attributes:
        settings: what learns.
        seed: seed of the fast stream; must be 0 with `docked`, which has seeds of its own.
        docked: draw with the authors' random numbers.
        deep: also compute what needs the value of every state; see `session_row`.
        misread: analyse as the authors' code does; see `session_row`.
        rematched: let firms that were trained in sessions of their own meet, and learn on with exploration begun anew;
            what they do after that is measured.
    """

    settings: QLearningSettings
    seed: int = 0
    docked: bool = False
    deep: bool = True
    misread: bool = False
    rematched: bool = False

    def __post_init__(self) -> None:
        """Check the seed."""
        check_int(self, "seed", 0)
        if self.docked and self.seed:
            raise SettingsError("seed", self.seed, "the authors' random numbers have seeds of their own; leave it out")
        if self.docked and self.rematched:
            raise SettingsError("docked", True, "firms that meet again draw our own random numbers; leave it out")

    @property
    def first(self) -> int:
        """The number of the first session (the authors count from 1)."""
        return 1 if self.docked else 0

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        settings = self.settings.to_json()
        del settings["memory_limit"]  # does not change a result
        shown = {name: getattr(self, name) for name in ("seed", "docked", "deep", "misread")}
        # Said only where it is so, because older folders do not say it.
        return {"settings": settings, **shown, **({"rematched": True} if self.rematched else {})}

    def row(self, number: int, game: Game) -> Row:
        """Run one session and measure it."""
        return session_row(self.settings, game, self.session(number, game), deep=self.deep, misread=self.misread)

    def session(self, number: int, game: Game, *, trace: int = 0) -> Session:
        """Run one session; `trace` as in `run_session`."""
        if self.docked:
            return run_docked_session(self.settings, number, game=game, trace=trace)
        if not self.rematched:
            return run_session(self.settings, self.seed, number, game=game, trace=trace)
        firms = range(game.firms)
        q = [run_session(self.settings, self.seed, number * game.firms + i, game=game).q[i] for i in firms]
        met = run_session(self.settings, self.seed, REMATCHED + number, game=game, q=np.array(q), trace=trace)
        return replace(met, number=number)


@dataclass(kw_only=True)
class SessionFolder(RunFolder):
    """The folder of a run; its manifest holds the fields of the plan."""

    kind: ClassVar[str] = "q_learning"

    @property
    def settings(self) -> QLearningSettings:
        """What learns."""
        return QLearningSettings.from_json(self.manifest["settings"])

    def _check(self) -> None:
        _ = self.manifest["settings"]["market"]


def plan_of(folder: Path) -> Plan:
    """What a folder's sessions were run with.

    Raises:
        RunError: the folder holds no run, or is damaged.
    """
    manifest = SessionFolder.open(folder).manifest
    given = {one.name: manifest[one.name] for one in fields(Plan) if one.name in manifest and one.name != "settings"}
    return Plan(settings=QLearningSettings.from_json(manifest["settings"]), **given)


def run_rows(plan: Plan, numbers: Sequence[int], workers: int = 1) -> Iterator[Row]:
    """Run sessions, yielding each one's row when it ends, in any order.

    Raises:
        SettingsError: the tables of so many sessions do not fit in memory.
        MissingExtra: the compiler is not installed.
    """
    require_int("workers", workers, 1)
    size = workers * plan.settings.table_bytes
    if workers > 1 and size > 0.75 * machine_memory():
        raise SettingsError(
            "workers",
            workers,
            f"so many sessions at a time need {size / GIB:,.3g} GiB where this machine has "
            f"{machine_memory() / GIB:,.3g}; take fewer workers",
        )
    game = plan.settings.game()
    left = iter(numbers)
    with ThreadPoolExecutor(workers) as pool:
        # Few at a time, so that an interruption need not wait for all of them.
        running: set[Future[Row]] = set()
        try:
            while True:
                for number in left:
                    running.add(pool.submit(plan.row, number, game))
                    if len(running) > workers:
                        break
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield future.result()
        finally:
            for future in running:
                future.cancel()


def run(
    plan: Plan, sessions: int, folder: Path, *, workers: int | None = None, report: Report | None = None
) -> list[Row]:
    """Run the first `sessions` sessions of a plan in a folder, going on with what is there; their rows in order.

    Args:
        plan: which learners.
        sessions: how many; a folder with fewer is filled up, one with more is left as it is.
        folder: made if it is not there.
        workers: sessions at a time; `None`: as many as there are cores.
        report: called with each new row.

    Raises:
        MissingExtra: pyarrow (extra `study`) or the compiler (extra `rl`) is not installed.
        RunError: the folder holds another run, another process writes there, or it cannot be read or written.
        SettingsError: an impossible number.
    """
    require_int("sessions", sessions, 1)
    need_arrow()
    store = SessionFolder.make(folder, plan.to_json())
    with store.lock():
        rows = {row["session"]: row for row in read_journal(folder)}
        wanted = range(plan.first, plan.first + sessions)
        missing = [number for number in wanted if number not in rows]
        if missing or not store.complete or not (folder / RESULT).exists():
            workers = workers or os.cpu_count() or 1
            with store.session(workers=workers):
                with open_for_append(folder / JOURNAL) as append:
                    for row in run_rows(plan, missing, workers):
                        append(_packed(row))
                        rows[row["session"]] = row
                        if report is not None:
                            report(row)
                write_rows(folder / RESULT, [rows[number] for number in sorted(rows)])
    return [rows[number] for number in wanted]


def read_journal(folder: Path) -> list[Row]:
    """The finished sessions of a run, in the order in which they ended; see `read_appended`."""
    return read_appended(folder / JOURNAL, lambda line: _unpacked(json.loads(line)))


def _packed(row: Row) -> Row:
    """A row as JSON: the strategies become compressed text."""
    return row | {"strategies": base64.b64encode(zlib.compress(row["strategies"], 1)).decode("ascii")}


def _unpacked(row: Row) -> Row:
    return row | {"strategies": zlib.decompress(base64.b64decode(row["strategies"]))}
