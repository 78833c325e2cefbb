"""Many sessions: spread over cores, written down as they end, continued after an interruption, kept as Parquet.

A run is a folder. `run.json` says what is run, `sessions.jsonl` gets one line per finished session, and
`sessions.parquet` is made of it when all are there. Sessions do not depend on each other, so neither the number of
workers nor an interruption changes a result.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from llm_coop_envs.baselines.q_learning.analyse.measures import Row, session_row
from llm_coop_envs.baselines.q_learning.learn.game import Game
from llm_coop_envs.baselines.q_learning.learn.sessions import run_docked_session, run_session
from llm_coop_envs.baselines.q_learning.learn.settings import GIB, QLearningSettings, machine_memory
from llm_coop_envs.errors import MissingExtra, RunError, SettingsError

PLAN, JOURNAL, RESULT = "run.json", "sessions.jsonl", "sessions.parquet"

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
    """

    settings: QLearningSettings
    seed: int = 0
    docked: bool = False
    deep: bool = True
    misread: bool = False

    def __post_init__(self) -> None:
        """Check the seed."""
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise SettingsError("seed", self.seed, "must be a whole number, 0 or more")
        if self.docked and self.seed:
            raise SettingsError("seed", self.seed, "the authors' random numbers have seeds of their own; leave it out")

    @property
    def first(self) -> int:
        """The number of the first session (the authors count from 1)."""
        return 1 if self.docked else 0

    def to_json(self) -> dict[str, Any]:
        """As plain data."""
        settings = self.settings.to_json()
        del settings["memory_limit"]  # does not change a result
        shown = {name: getattr(self, name) for name in ("seed", "docked", "deep", "misread")}
        return {"settings": settings, **shown}

    def row(self, number: int, game: Game) -> Row:
        """Run one session and measure it."""
        if self.docked:
            session = run_docked_session(self.settings, number, game=game)
        else:
            session = run_session(self.settings, self.seed, number, game=game)
        return session_row(self.settings, game, session, deep=self.deep, misread=self.misread)


def run_rows(plan: Plan, numbers: Sequence[int], workers: int = 1) -> Iterator[Row]:
    """Run sessions, yielding each one's row when it ends, in any order.

    Args:
        plan: what is run.
        numbers: which sessions.
        workers: how many at a time, each on a core.

    Raises:
        SettingsError: the tables of so many sessions do not fit in memory.
        MissingExtra: the compiler is not installed.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 1:
        raise SettingsError("workers", workers, "must be a whole number, 1 or more")
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
    """Run the first `sessions` sessions of a plan in a folder, going on with what is already there.

    Args:
        plan: what is run.
        sessions: how many; a folder with fewer is filled up, one with more is left as it is.
        folder: where; made if it is not there.
        workers: how many sessions at a time; `None`: as many as there are cores.
        report: called with each new row.

    Returns:
        The rows of the first `sessions` sessions, in order.

    Raises:
        MissingExtra: pyarrow (extra `study`) or the compiler (extra `rl`) is not installed.
        RunError: the folder holds another run, or cannot be read or written.
        SettingsError: an impossible number.
    """
    if isinstance(sessions, bool) or not isinstance(sessions, int) or sessions < 1:
        raise SettingsError("sessions", sessions, "must be a whole number, 1 or more")
    _parquet()
    _check_plan(plan, folder)
    rows = {row["session"]: row for row in read_journal(folder)}
    wanted = range(plan.first, plan.first + sessions)
    missing = [number for number in wanted if number not in rows]
    if missing:
        with (folder / JOURNAL).open("a", encoding="utf-8") as journal:
            for row in run_rows(plan, missing, workers or os.cpu_count() or 1):
                journal.write(json.dumps(_packed(row)) + "\n")
                journal.flush()
                rows[row["session"]] = row
                if report is not None:
                    report(row)
    if missing or not (folder / RESULT).exists():
        write_parquet([rows[number] for number in sorted(rows)], folder / RESULT)
    return [rows[number] for number in wanted]


def read_journal(folder: Path) -> list[Row]:
    """The finished sessions of a run; see `read_lines`."""
    return read_lines(folder / JOURNAL, lambda line: _unpacked(json.loads(line)))


def read_lines(path: Path, read: Callable[[bytes], Row] = json.loads) -> list[Row]:
    """The rows of a file that is written line by line; a last line cut off by an interruption is dropped from it.

    Args:
        path: the file; if it is not there, there are no rows.
        read: makes a row of a line; raises `ValueError` or `KeyError` for a damaged one.

    Raises:
        RunError: another line is damaged.
    """
    if not path.exists():
        return []
    data = path.read_bytes()
    whole = data[: data.rfind(b"\n") + 1]
    if whole != data:
        path.write_bytes(whole)
    rows = []
    for number, line in enumerate(whole.splitlines(), 1):
        try:
            rows.append(read(line))
        except (ValueError, KeyError) as error:
            raise RunError(f"{path}, line {number}, is damaged; delete that line and run again") from error
    return rows


def write_parquet(rows: Sequence[Row], path: Path) -> None:
    """Write rows as Parquet, at once or not at all.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    arrow, parquet = _parquet()
    unfinished = path.with_suffix(".part")
    parquet.write_table(arrow.Table.from_pylist(list(rows)), unfinished, compression="zstd")
    unfinished.replace(path)


def read_parquet(path: Path) -> list[Row]:
    """The rows of a finished run.

    Raises:
        MissingExtra: pyarrow is not installed.
    """
    _, parquet = _parquet()
    rows: list[Row] = parquet.read_table(path).to_pylist()
    return rows


def _parquet() -> tuple[Any, Any]:
    """The two modules that write Parquet."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtra("writing Parquet", "study") from error
    return pyarrow, pyarrow.parquet


def _check_plan(plan: Plan, folder: Path) -> None:
    """Make the folder, or see that it holds the same plan."""
    path = folder / PLAN
    wanted = plan.to_json()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.write_text(json.dumps(wanted, indent=2) + "\n", encoding="utf-8")
            return
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise RunError(f"the run folder {folder} cannot be used ({error}); name another one") from error
    if found != wanted:
        raise RunError(
            f"the folder {folder} holds another run ({_difference(found, wanted)}); name another folder, or run what "
            "it was begun with"
        )


def _difference(found: Any, wanted: dict[str, Any], where: str = "") -> str:
    """The first field in which two plans differ."""
    if not isinstance(found, dict):
        return f"{where or 'the plan'} is {found!r}"
    for name, value in wanted.items():
        if found.get(name) != value:
            if isinstance(value, dict):
                return _difference(found.get(name), value, name)
            return f"{name} is {found.get(name)!r} there and {value!r} here"
    return "it has fields unknown here"


def _packed(row: Row) -> Row:
    """A row as JSON: the strategies become compressed text."""
    return row | {"strategies": base64.b64encode(zlib.compress(row["strategies"], 1)).decode("ascii")}


def _unpacked(row: Row) -> Row:
    return row | {"strategies": zlib.decompress(base64.b64decode(row["strategies"]))}
