"""What a page needs of a run, looked up in a moment: an SQLite file made once from events and journal.

It lies among the user's caches, never in the run's folder. An episode is taken in when it is first asked for and again
when its file changed; of the journal, which only grows, what is new. Prompts and answers stay in the journal: the index
says where. `python -m llm_coop_envs.page.index RUN EPISODE` does it in a process of its own, for large runs.
"""

from __future__ import annotations

import contextlib
import gc
import gzip
import hashlib
import json
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from llm_coop_envs.core.scenario import Event
from llm_coop_envs.errors import RunError
from llm_coop_envs.page.episode_reader import EpisodeReader
from llm_coop_envs.policies.llm.journal import journal_files, read_from
from llm_coop_envs.runs.folder import Run, open_run
from llm_coop_envs.storage.lock import FileLock
from llm_coop_envs.util.fastjson import loads
from llm_coop_envs.util.opening import DAMAGED, MAX_STREAMED, MAX_TEXT, open_file

FORMAT = 4
LARGE = 1 << 20
"""From how many compressed bytes on a process of its own reads them."""
_COUNTED = 50_000
_SCHEMA = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
_INDEXES = {statement.split()[5]: statement for statement in _SCHEMA.splitlines() if "EXISTS agents_" in statement}
_BLOCK = 1 << 20
_TOLD_SECONDS = 0.5
_READ = " % of "
_ACTS = tuple(b'{"type":%b"%b"' % (space, kind) for space in (b"", b" ") for kind in (b"choice", b"message"))
"""How the lines begin of what players do; in large episodes most are of these kinds."""


class Index:
    """The index of one run.

    Args:
        run: the run.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.path = _place(run)
        with self.connect() as table:
            table.execute("PRAGMA journal_mode=WAL")
            if table.execute("SELECT 1 FROM sqlite_master WHERE name = 'parts'").fetchone() is None:
                table.executescript(_SCHEMA)

    @contextlib.contextmanager
    def connect(self) -> Iterator[sqlite3.Connection]:
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
            status = path.stat()
        except OSError as error:
            raise RunError(f"{path}: cannot be read ({error.strerror}); the episode is not there (yet)") from error
        return f"{status.st_size} {status.st_mtime_ns}"

    def large(self, condition: str, seed: int) -> bool:
        """Whether taking in an episode takes long."""
        return self.run.events_path(condition, seed).stat().st_size > LARGE

    def holds(self, name: str, mark: str) -> bool:
        """Whether an episode was taken in as it is now."""
        with self.connect() as table:
            return bool(table.execute("SELECT 1 FROM episodes WHERE name = ? AND mark = ?", (name, mark)).fetchone())

    def share(self, name: str, mark: str) -> int | None:
        """How many percent of an episode were read, if some of it can be shown; `None` if it cannot."""
        with self.connect() as table:
            row = table.execute("SELECT mark FROM episodes WHERE name = ?", (name,)).fetchone()
        percent, _, of = ("" if row is None else str(row[0])).partition(_READ)
        return int(percent) if of == mark else None

    def take_episode(self, condition: str, seed: int) -> None:
        """Take in a finished episode, unless it is known.

        Raises:
            RunError: it is not there, or damaged.
        """
        name, mark = f"{condition}/{seed}", self.mark(condition, seed)
        if self.holds(name, mark):
            return
        if self.large(condition, seed):
            with FileLock(self.path.with_suffix(".lock")) as lock:
                lock.take(wait=True)
                if not self.holds(name, mark):
                    self._take_large(name, mark, self.run.events_path(condition, seed))
        else:
            header, events = self.run.read_events(condition, seed)
            taking = Taking(self, name, header)
            taking.add(events)
            taking.keep(mark)

    def _take_large(self, name: str, mark: str, path: Path) -> None:
        """Take in an episode bit by bit, so that what was read can be shown; first of all its first round."""
        changes = self.run.describe_damage(self.run.file_name(path))
        if changes:
            raise RunError(f"{changes[0]}; restore it, or run the study again with -o to replace it")
        try:
            taking = Taking(self, name, {}, large=True)
            with _open_compressed(path) as (file, _):
                file.readline(MAX_TEXT)
                taking.add([loads(file.readline(MAX_TEXT))])
                for lines in _blocks(file) if taking.reader.blind else ():
                    taking.add(loads(line) for line in lines if not line.startswith(_ACTS))
                    if taking.reader.frames:
                        break
                taking.keep(f"0{_READ}{mark}", agents=False)
            with _open_compressed(path) as (file, share):
                taking.start_again(loads(file.readline(MAX_TEXT)))
                taking.add([loads(file.readline(MAX_TEXT))])
                due = 0.0
                for lines in _blocks(file):
                    taking.add(loads(b"[%b]" % b",".join(lines)))
                    if time.monotonic() >= due:
                        taking.keep(f"{share():.0f}{_READ}{mark}", agents=False)
                        due = time.monotonic() + _TOLD_SECONDS
        except (OSError, sqlite3.Error, *DAMAGED) as error:
            raise RunError(
                f"{path}: cannot be read ({error}); delete it and run the study again to replace it"
            ) from error
        taking.keep(mark)

    def journal_left(self) -> tuple[int, int]:
        """How many bytes of the journal were not taken in, and how many there are."""
        with self.connect() as table:
            until = dict(table.execute("SELECT name, until FROM parts").fetchall())
        sizes = {path.name: path.stat().st_size for path in journal_files(self.run.folder)}
        return sum(size - until.get(name, 0) for name, size in sizes.items()), sum(sizes.values())

    def take_journal(self) -> None:
        """Take in what was answered since."""
        count = 0
        for path in journal_files(self.run.folder):
            with self.connect() as table:
                row = table.execute("SELECT until FROM parts WHERE name = ?", (path.name,)).fetchone()
                due = 0.0
                for end, rows in _calls(path, row[0] if row else 0):
                    table.executemany(
                        "INSERT INTO calls (episode, agent, step, call, attempt, part, start, line, tokens, cost, "
                        "model, failed) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                        rows,
                    )
                    count += len(rows)
                    table.execute("INSERT OR REPLACE INTO parts VALUES (?, ?)", (path.name, end))
                    if time.monotonic() >= due:
                        table.commit()
                        due = time.monotonic() + _TOLD_SECONDS
        with self.connect() as table:
            table.execute("DELETE FROM models")
            if count > _COUNTED:  # else it is quickly counted when it is asked for
                table.execute(
                    "INSERT INTO models SELECT episode, model, COUNT(*) FROM "
                    "(SELECT DISTINCT episode, agent, model FROM calls) GROUP BY episode, model"
                )


class Taking:
    """An episode on its way into an index, in portions; shown is what was kept.

    Args:
        index: the index.
        name: the episode's name.
        header: the header of its file; empty if it is being played.
        large: whether its events are too many to be held.
    """

    def __init__(self, index: Index, name: str, header: dict[str, Any], *, large: bool = False) -> None:
        self._index = index
        self._name = name
        self._large = large
        self._scenario = next(
            condition.spec for condition in index.run.conditions if condition.name == name.rpartition("/")[0]
        )
        self._spoken: list[tuple[Any, ...]] = []
        self._about: dict[str, Any] = {"rounds": ()}
        self._anew = True
        self.start_again(header)

    def start_again(self, header: dict[str, Any]) -> None:
        """Read it again from its start; what was kept is shown until there is more."""
        self.reader = EpisodeReader(self._scenario, header, large=self._large)
        self._frames = 0

    def add(self, events: Iterable[Event]) -> None:
        """Read its next events."""
        self._spoken += self.reader.messages(events)

    def keep(self, mark: str, *, agents: bool = True) -> None:
        """Keep what was read so far.

        Args:
            mark: see `Index.mark`.
            agents: keep the agents, too.
        """
        reader, name = self.reader, self._name
        frames: list[dict[str, Any]] = []
        if agents or len(reader.frames) >= len(self._about["rounds"]):
            frames = [*reader.frames[self._frames :], *reader.moving()]
            self._about = reader.summarise()
        with self._index.connect() as table:
            table.execute("BEGIN IMMEDIATE")
            if self._anew:
                _forget(table, name)
                self._anew = False
            (last,) = table.execute("SELECT COALESCE(MAX(id), 0) FROM messages").fetchone()
            into = "INSERT INTO messages (episode, round, step, agent, text, hearers) VALUES (?, ?, ?, ?, ?, ?)"
            table.executemany(into, ((name, *message) for message in self._spoken))
            table.execute("INSERT INTO said (rowid, text) SELECT id, text FROM messages WHERE id > ?", (last,))
            rows = ((name, number, frame["round"], _json(frame)) for number, frame in enumerate(frames, self._frames))
            table.executemany("INSERT OR REPLACE INTO frames VALUES (?, ?, ?, ?)", rows)
            if agents:
                table.execute("DELETE FROM agents WHERE episode = ?", (name,))
                # Made at the end, indexes of a million rows take a third of the time.
                late = _INDEXES if self._large and table.execute("SELECT 1 FROM agents").fetchone() is None else {}
                for index_name in late:
                    table.execute(f"DROP INDEX {index_name}")
                into = "INSERT INTO agents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
                table.executemany(into, ((name, *row) for row in reader.agents()))
                for statement in late.values():
                    table.execute(statement)
            table.execute("INSERT OR REPLACE INTO episodes VALUES (?, ?, ?)", (name, mark, _json(self._about)))
        self._spoken.clear()
        self._frames = len(reader.frames)


def _forget(table: sqlite3.Connection, name: str) -> None:
    table.execute(
        "INSERT INTO said (said, rowid, text) SELECT 'delete', id, text FROM messages WHERE episode = ?", (name,)
    )
    for where in ("messages", "frames", "agents"):
        table.execute(f"DELETE FROM {where} WHERE episode = ?", (name,))
    table.execute("DELETE FROM episodes WHERE name = ?", (name,))


@contextlib.contextmanager
def _open_compressed(path: Path) -> Iterator[tuple[gzip.GzipFile, Callable[[], float]]]:
    """A compressed file, and how many percent of it were read."""
    size = path.stat().st_size
    with open_file(path, MAX_STREAMED) as raw, gzip.GzipFile(fileobj=raw) as file:
        yield file, lambda: min(99.0, 100 * raw.tell() / size)


def _blocks(file: gzip.GzipFile) -> Iterator[list[bytes]]:
    """The rest of a file's lines, many at a time."""
    remainder = b""
    while block := file.read(_BLOCK):
        if file.tell() > MAX_STREAMED or len(remainder) > MAX_TEXT:
            raise ValueError(f"it holds more than {MAX_STREAMED:,} bytes, or a line of more than {MAX_TEXT:,}")
        *lines, remainder = (remainder + block).split(b"\n")
        yield lines
    if remainder:
        yield [remainder]


def _calls(path: Path, start: int) -> Iterator[tuple[int, list[tuple[Any, ...]]]]:
    """Where each answer of a part lies, commit by commit from a byte on, each with the byte at which it ends."""
    for commit in read_from(path, start):
        rows = []
        with contextlib.suppress(*DAMAGED):  # damage is told by `llm-coop journal`
            for number, entry in enumerate(commit.lines()):
                if "request" in entry:
                    reply = entry.get("reply", {})
                    model = reply.get("model") or entry["request"]["model"]
                    usage = entry.get("tokens", 0), reply.get("cost"), model, int("reply" not in entry)
                    rows.append((*entry["key"], path.name, commit.start, number, *usage))
        yield commit.end, rows


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
    gc.disable()  # next to nothing is a cycle, and millions of objects would be looked through
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
