"""Run many sessions in a run folder: in parallel, continued after an interruption, written as Parquet in the end.

In the run folder (`storage.folder`), `sessions.jsonl` gets one line per finished session; `sessions.parquet` is made of
it when all are finished. Sessions do not depend on each other, so neither the number of workers nor an interruption
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

from llm_coop_envs.baselines.q_learning.analyse.analysis import limit_cycle
from llm_coop_envs.baselines.q_learning.analyse.measures import Row, session_row
from llm_coop_envs.baselines.q_learning.analyse.stored import StoredRun
from llm_coop_envs.baselines.q_learning.learn.game import Game
from llm_coop_envs.baselines.q_learning.learn.sessions import Session, run_docked_session, run_session
from llm_coop_envs.baselines.q_learning.learn.settings import GIB, QLearningSettings, machine_memory
from llm_coop_envs.errors import RunError, SettingsError
from llm_coop_envs.storage.files import open_for_append, read_appended
from llm_coop_envs.storage.folder import RunFolder
from llm_coop_envs.storage.parquet import need_arrow, write_rows
from llm_coop_envs.util.checks import check_int, require_int

JOURNAL, RESULT = "sessions.jsonl", "sessions.parquet"

REMATCHED = 2**31
"""The first session number, of a seed, of rematched firms; see `Plan`."""

Report = Callable[[Row], None]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The sessions of a run.

    Attributes:
        settings: the learners.
        seed: seed of the fast stream; must be 0 with `docked`, which has its own seeds.
        docked: draw the authors' random numbers.
        deep: also measure what needs the value of every state; see `session_row`.
        misread: analyse as the authors' code does; see `session_row`.
        rematched: firms that were trained in different sessions meet and go on learning, with exploration begun anew;
            their strategies after that are measured.
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
        del settings["memory_limit"]  # has no effect on results
        options = {name: getattr(self, name) for name in ("seed", "docked", "deep", "misread")}
        # Left out where it is false, because older folders lack it.
        return {"settings": settings, **options, **({"rematched": True} if self.rematched else {})}

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
        """The learners."""
        return QLearningSettings.from_json(self.manifest["settings"])

    def _check(self) -> None:
        _ = self.manifest["settings"]["market"]


def plan_of(folder: Path) -> Plan:
    """Read the plan of a run folder.

    Raises:
        RunError: the folder holds no run, or is damaged.
    """
    manifest = SessionFolder.open(folder).manifest
    options = {
        setting.name: manifest[setting.name]
        for setting in fields(Plan)
        if setting.name in manifest and setting.name != "settings"
    }
    return Plan(settings=QLearningSettings.from_json(manifest["settings"]), **options)


def run_rows(plan: Plan, numbers: Sequence[int], workers: int = 1) -> Iterator[Row]:
    """Run sessions and yield the row of each when it ends, in any order.

    Raises:
        SettingsError: the tables of as many sessions as `workers` do not fit into memory.
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
    waiting = iter(numbers)
    with ThreadPoolExecutor(workers) as pool:
        # Only a few sessions are submitted at a time, so that an interruption need not wait for all of them.
        running: set[Future[Row]] = set()
        try:
            while True:
                for number in waiting:
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
    """Run the first `sessions` sessions of a plan in a folder, or those that are missing there; their rows in order.

    Args:
        plan: the learners.
        sessions: number of sessions; a folder that holds more is left as it is.
        folder: the run folder, made if it does not exist.
        workers: number of parallel sessions; `None`: the number of cores.
        report: called with each new row.

    Raises:
        MissingExtra: pyarrow (extra `study`) or the compiler (extra `rl`) is not installed.
        RunError: the folder holds another run, another process writes there, or it cannot be read or written.
        SettingsError: a number is impossible.
    """
    require_int("sessions", sessions, 1)
    need_arrow()
    store = SessionFolder.make(folder, plan.to_json())
    with store.lock():
        rows = {row["session"]: row for row in read_journal(folder)}
        planned = range(plan.first, plan.first + sessions)
        missing = [number for number in planned if number not in rows]
        if missing or not store.complete or not (folder / RESULT).exists():
            workers = workers or os.cpu_count() or 1
            with store.session(workers=workers):
                with open_for_append(folder / JOURNAL) as append:
                    for row in run_rows(plan, missing, workers):
                        append(_pack_row(row))
                        rows[row["session"]] = row
                        if report is not None:
                            report(row)
                write_rows(folder / RESULT, [rows[number] for number in sorted(rows)])
    return [rows[number] for number in planned]


def read_journal(folder: Path) -> list[Row]:
    """Read the finished sessions of a run, in the order in which they ended; see `read_appended`."""
    return read_appended(folder / JOURNAL, lambda line: _unpack_row(json.loads(line)))


def load_run(folder: Path) -> StoredRun:
    """Read the sessions of a run folder.

    Raises:
        RunError: the folder holds no finished sessions, or is damaged.
    """
    rows = sorted(read_journal(folder), key=lambda row: int(row["session"]))
    if not rows:
        raise RunError(f"{folder} holds no finished sessions; run some first")
    settings = SessionFolder.open(folder).settings
    game = settings.game()
    kind = "<u1" if game.points <= 256 else "<u2"
    strategies = [
        np.frombuffer(row["strategies"], kind).reshape(game.firms, game.states).astype(np.int64) for row in rows
    ]
    cycles = [limit_cycle(game, s, row["last_state"]) for s, row in zip(strategies, rows, strict=True)]
    return StoredRun(settings, game, rows, strategies, cycles)


def _pack_row(row: Row) -> Row:
    """Turn a row into JSON data: strategies become compressed text."""
    return row | {"strategies": base64.b64encode(zlib.compress(row["strategies"], 1)).decode("ascii")}


def _unpack_row(row: Row) -> Row:
    return row | {"strategies": zlib.decompress(base64.b64decode(row["strategies"]))}
