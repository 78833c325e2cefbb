"""What a page needs of a run, looked up in a moment: an SQLite file made once from events and journal.

It lies among the user's caches, never in the run's folder. An episode is taken in when it is first asked for and again
when its file changed; of the journal, which only grows, what is new. Prompts and answers stay in the journal: the index
says where. `python -m llm_coop_envs.benchmarks.view.index RUN EPISODE` does it in a process of its own, for large runs.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import itertools
import json
import os
import sqlite3
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from llm_coop_envs.benchmarks.run.folder import Run, open_run
from llm_coop_envs.benchmarks.view.reading import EpisodeReader
from llm_coop_envs.core.scenario import Event
from llm_coop_envs.errors import RunError
from llm_coop_envs.policies.llm.fastjson import loads
from llm_coop_envs.policies.llm.journal import journal_files, read_from

FORMAT = 2
LARGE = 4 << 20
"""From how many compressed bytes on a process of its own reads them."""
_TOGETHER = 20_000


class Index:
    """The index of one run.

    Args:
        run: the run.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.path = _place(run)
        with self.opened() as table:
            table.execute("PRAGMA journal_mode=WAL")
            if table.execute("SELECT 1 FROM sqlite_master WHERE name = 'parts'").fetchone() is None:
                table.executescript(Path(__file__).with_name("schema.sql").read_text(encoding="utf-8"))

    @contextlib.contextmanager
    def opened(self) -> Iterator[sqlite3.Connection]:
        """A connection; what is changed is kept if the block ends well.

        Raises:
            RunError: the file cannot be used.
        """
        try:
            table = sqlite3.connect(self.path, timeout=60)
            try:
                table.execute("PRAGMA synchronous=OFF")  # it can be made again
                with table:
                    yield table
            finally:
                table.close()
        except sqlite3.DatabaseError as error:
            raise RunError(f"{self.path}: cannot be used ({error}); delete it, it is made again") from error

    def mark(self, condition: str, seed: int) -> str:
        """What tells an episode's file from another one of its name; `RunError` if it is not there."""
        path = self.run.events_path(condition, seed)
        try:
            held = path.stat()
        except OSError as error:
            raise RunError(f"{path}: cannot be read ({error.strerror}); the episode is not there (yet)") from error
        return f"{held.st_size} {held.st_mtime_ns}"

    def large(self, condition: str, seed: int) -> bool:
        """Whether taking in an episode takes long."""
        return self.run.events_path(condition, seed).stat().st_size > LARGE

    def known(self, name: str, mark: str) -> bool:
        """Whether an episode was taken in as it is now."""
        with self.opened() as table:
            return bool(table.execute("SELECT 1 FROM episodes WHERE name = ? AND mark = ?", (name, mark)).fetchone())

    def take_episode(self, condition: str, seed: int) -> None:
        """Take in a finished episode, unless it is known.

        Raises:
            RunError: it is not there, or damaged.
        """
        name, mark = f"{condition}/{seed}", self.mark(condition, seed)
        if not self.known(name, mark):
            header, events = self._events(condition, seed)
            self.take(name, mark, header, events)

    def take(self, name: str, mark: str, header: dict[str, Any], events: Iterable[Event]) -> None:
        """Take in an episode in place of what was known of it.

        Args:
            name: the episode's name.
            mark: see `mark`.
            header: the header of its file; of one that is being played, empty.
            events: its events so far.
        """
        condition = next(one for one in self.run.conditions if one.name == name.rpartition("/")[0])
        reader = EpisodeReader(condition.spec, header, large=not isinstance(events, list))
        with self.opened() as table:
            self._forget(table, name)
            rows = ((name, *message) for message in reader.messages(events))
            into = "INSERT INTO messages (episode, round, step, agent, text, hearers) VALUES (?, ?, ?, ?, ?, ?)"
            for some in _some(rows):
                table.executemany(into, some)
            table.execute("INSERT INTO said (rowid, text) SELECT id, text FROM messages WHERE episode = ?", (name,))
            table.executemany(
                "INSERT INTO frames VALUES (?, ?, ?, ?)",
                ((name, place, one["round"], _json(one)) for place, one in enumerate(reader.frames)),
            )
            for some in _some((name, *row) for row in reader.agents()):
                table.executemany("INSERT INTO agents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", some)
            table.execute("INSERT INTO episodes VALUES (?, ?, ?)", (name, mark, _json(reader.about())))

    def journal_left(self) -> int:
        """How many bytes of the journal were not taken in."""
        with self.opened() as table:
            until = dict(table.execute("SELECT name, until FROM parts").fetchall())
        return sum(path.stat().st_size - until.get(path.name, 0) for path in journal_files(self.run.folder))

    def take_journal(self) -> None:
        """Take in what was answered since."""
        for path in journal_files(self.run.folder):
            with self.opened() as table:
                row = table.execute("SELECT until FROM parts WHERE name = ?", (path.name,)).fetchone()
                start = until = row[0] if row else 0
                for some in _some(_calls(path, start)):
                    table.executemany(
                        "INSERT INTO calls (episode, agent, step, call, attempt, part, start, line, tokens, cost, "
                        "model, failed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        [row[1:] for row in some if row[1] is not None],
                    )
                    until = some[-1][0]
                if until > start:
                    table.execute("INSERT OR REPLACE INTO parts VALUES (?, ?)", (path.name, until))

    def _events(self, condition: str, seed: int) -> tuple[dict[str, Any], Iterable[Event]]:
        if not self.large(condition, seed):
            return self.run.read_events(condition, seed)
        path = self.run.events_path(condition, seed)
        found = self.run.changed(self.run.file_name(path))
        if found:
            raise RunError(f"{found[0]}; restore it, or run the study again with -o to replace it")
        records = _lines(path)
        return next(records), records

    def _forget(self, table: sqlite3.Connection, name: str) -> None:
        table.execute(
            "INSERT INTO said (said, rowid, text) SELECT 'delete', id, text FROM messages WHERE episode = ?", (name,)
        )
        for where in ("messages", "frames", "agents"):
            table.execute(f"DELETE FROM {where} WHERE episode = ?", (name,))
        table.execute("DELETE FROM episodes WHERE name = ?", (name,))


def _lines(path: Path) -> Iterator[Any]:
    try:
        with gzip.open(path, "rb") as file:
            for line in file:
                yield loads(line)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise RunError(f"{path}: cannot be read ({error}); delete it and run the study again to replace it") from error


def _calls(path: Path, start: int) -> Iterator[tuple[Any, ...]]:
    """Where each answer of a part lies, from a byte on; the first value is the byte up to which it was read."""
    for commit in read_from(path, start):
        for number, line in enumerate(commit.data.splitlines()):
            with contextlib.suppress(KeyError, TypeError, ValueError):  # damage is told by `llm-coop journal`
                found = loads(line)
                if "request" in found:
                    reply = found.get("reply", {})
                    model = reply.get("model") or found["request"]["model"]
                    more = found.get("tokens", 0), reply.get("cost"), model, int("reply" not in found)
                    yield (commit.end, *found["key"], path.name, commit.start, number, *more)
        yield (commit.end, None)


def _some(rows: Iterable[Any]) -> Iterator[Sequence[Any]]:
    rest = iter(rows)
    return iter(lambda: list(itertools.islice(rest, _TOGETHER)), [])


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=True, separators=(",", ":"))


def cache_folder() -> Path:
    """Where indexes lie: among the user's caches, or among temporary files if nothing can be written there."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    for folder in (Path(base, "llm-coop", "view"), Path(tempfile.gettempdir(), f"llm-coop-view-{os.getpid()}")):
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if os.access(folder, os.W_OK):
                return folder
    raise RunError(f"{base}: no folder for caches can be written there; set XDG_CACHE_HOME")


def _place(run: Run) -> Path:
    name = f"{FORMAT} {run.folder.resolve()} {run.manifest['digest']}"
    return cache_folder() / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.sqlite"


def main(arguments: Sequence[str]) -> None:
    """Take in an episode, or the journal if none is named."""
    folder, *episode = arguments
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)  # a run may be going on
    index = Index(open_run(Path(folder)))
    if episode:
        condition, _, seed = episode[0].rpartition("/")
        index.take_episode(condition, int(seed))
    else:
        index.take_journal()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except RunError as error:
        sys.exit(str(error))
