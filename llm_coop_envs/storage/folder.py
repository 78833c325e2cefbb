"""A run is a folder: a manifest says what is run and how far it is, and a lock keeps a second writer out.

`run.json`, the manifest, holds `format`, `kind`, `status`, `digest` (a hash of what is run), what describes the run,
`sessions`: one entry for each time somebody worked on it, with the versions of the libraries; `files`: size and SHA-256
of what was written; and last `check`, a hash of all the rest, by which damage is told. Each kind of run derives from
`RunFolder` and says what else its folder holds. Only the status `complete` says that everything is there; it is written
last.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import itertools
import json
import platform
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from typing_extensions import Self

from llm_coop_envs.errors import RunError
from llm_coop_envs.storage.files import (
    cannot_write,
    fingerprint,
    fingerprint_of,
    read_json,
    sweep,
    write_json,
    write_whole,
)
from llm_coop_envs.storage.lease import alone_with
from llm_coop_envs.storage.lock import FileLock
from llm_coop_envs.version import __version__

FORMAT = 3
MANIFEST, CHECK = "run.json", "check"
RUNS = Path("runs")
_HOUR = 3600.0
RUNNING, COMPLETE, INTERRUPTED = "running", "complete", "interrupted"

_LIBRARIES = (
    *("aiohttp", "gymnasium", "jinja2", "litellm", "matplotlib", "numba", "numpy", "openai", "pettingzoo", "pyarrow"),
    *("sb3-contrib", "stable-baselines3", "torch"),
)


class DamagedManifest(RunError):
    """The manifest of a run is not what was written."""


@dataclass(frozen=True, kw_only=True)
class RunFolder:
    """A run as its folder tells it; each `kind` of run is a class of its own.

    `begun_with` is what a user gives to begin or continue one, `cure` what helps if the manifest is damaged, both for
    errors; `growing` is a folder whose files only grow until the run is complete; `manifest` the content of `run.json`.
    """

    kind: ClassVar[str]
    begun_with: ClassVar[str] = "the settings and the seed"
    cure: ClassVar[str] = "begin the run again in a new folder"
    growing: ClassVar[str | None] = None

    folder: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Read a run's manifest.

        Raises:
            RunError: there is no run of this kind in the folder, or it is of another format.
            DamagedManifest: it is damaged.
        """
        path = folder / MANIFEST
        if not path.is_file():
            raise RunError(f"{folder}: is no run folder (there is no {MANIFEST} in it); give the folder of a run")
        try:
            manifest = read_json(path, lambda why: f"{path}: cannot be read ({why}); {cls.cure}")
        except RunError as error:
            raise error if isinstance(error.__cause__, OSError) else DamagedManifest(str(error)) from error
        check = manifest.pop(CHECK, None)
        if check is not None and check != digest_of(manifest):
            raise DamagedManifest(f"{path}: is damaged (it is not what was written); {cls.cure}")
        if manifest.get("format") != FORMAT:
            raise RunError(
                f"{path}: has format {manifest.get('format')!r}, this version of llm-coop-envs reads format {FORMAT}; "
                "use the version that wrote it, or begin the run again in a new folder"
            )
        if check is None:
            raise DamagedManifest(f"{path}: is damaged (KeyError({CHECK!r})); {cls.cure}")
        if manifest.get("kind") != cls.kind:
            found = manifest.get("kind")
            raise RunError(f"{folder}: holds a run of kind {found!r}, not {cls.kind!r}; give another folder")
        run = cls(folder=folder, manifest=manifest)
        try:
            _ = str(manifest["digest"]), str(manifest["status"]), list(manifest["sessions"]), dict(manifest["files"])
            run._check()
        except (KeyError, TypeError, ValueError) as error:
            raise RunError(f"{path}: is damaged ({error!r}); begin the run again in a new folder") from error
        return run

    @classmethod
    def make(
        cls, folder: Path, identity: Mapping[str, Any], files: Mapping[str, bytes] = MappingProxyType({}), **about: Any
    ) -> Self:
        """Begin a run in a folder, or continue the one that is there.

        Args:
            folder: a new or empty folder, or one that holds this run.
            identity: everything that decides the results, as plain data; kept in the manifest.
            files: what a new run begins with, by name.
            **about: what else the manifest of a new run says; replaces fields of `identity` of the same name.

        Raises:
            RunError: the folder holds something else, or cannot be written.
        """
        try:
            held = sorted(p.name for p in folder.iterdir() if not p.name.startswith(".")) if folder.exists() else []
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(folder, error) from error
        if held and not (folder / MANIFEST).is_file():
            raise RunError(f"{folder}: is neither empty nor a run folder (it holds {held[0]}); choose another with -o")
        # Of several that begin at the same time one begins the run, and the others wait until it is there.
        with alone_with(folder / ".begin"):
            if not (folder / MANIFEST).is_file():
                recorded = {name: fingerprint_of(text) for name, text in files.items()}
                run = cls.new(folder, identity, **about, files=recorded)
                for name, text in files.items():
                    write_whole(folder / name, text)
                return run
        run = cls.open(folder)
        run.check_same(identity)
        return run

    @classmethod
    def new(cls, folder: Path, identity: Mapping[str, Any], **about: Any) -> Self:
        """Write the manifest of a run that is begun, whatever the folder holds; see `make`."""
        known = {"format": FORMAT, "kind": cls.kind, "status": RUNNING, "digest": digest_of(identity)}
        run = cls(folder=folder, manifest={**known, **plain_json(identity), "files": {}, "sessions": [], **about})
        run.write()
        return run

    @property
    def complete(self) -> bool:
        """Whether everything is there."""
        return bool(self.manifest["status"] == COMPLETE)

    @property
    def title(self) -> str:
        """What the run is called in errors."""
        return f"a run of kind {self.kind!r}"

    def _check(self) -> None:
        """Look for what this kind keeps in the manifest; `KeyError`, `TypeError` or `ValueError` if it is not there."""

    def check_same(self, identity: Mapping[str, Any]) -> None:
        """Refuse to continue a run as another one.

        Raises:
            RunError: the results of the other would be others.
        """
        if self.manifest["digest"] != digest_of(identity):
            how = difference(self.manifest, plain_json(identity)) or "written by another version"
            raise RunError(
                f"{self.folder}: holds {self.title} with other settings ({how}); choose another folder with -o, or "
                f"continue it with {self.begun_with} that it was begun with"
            )

    def write(self, **changes: Any) -> None:
        """Change the manifest, on disk first.

        Raises:
            RunError: it cannot be written.
        """
        content = {**self.manifest, **changes}
        write_json(self.folder / MANIFEST, {**content, CHECK: digest_of(content)})
        self.manifest.update(changes)

    def recorded(self, *paths: Path) -> dict[str, str]:
        """Files as the manifest records them under `files`: each one's path in the folder, size and SHA-256."""
        return {self.file_name(path): fingerprint(path) for path in paths}

    def file_name(self, path: Path) -> str:
        """What the manifest calls a file of the folder."""
        return path.relative_to(self.folder).as_posix()

    def changed(self, under: str = "") -> list[str]:
        """A sentence on each recorded file below a folder, or of a name, that is gone or not as it was written."""
        known = self.manifest["files"]
        names = [under] if under in known else [name for name in known if name.startswith(under)]
        files = {name: known[name] for name in names}
        return [f"{self.folder / name}: {why}" for name, record in files.items() if (why := self._why(name, record))]

    def _why(self, name: str, record: str) -> str:
        """What is wrong with a recorded file; empty if nothing is."""
        begun = self.growing is not None and name.startswith(self.growing) and not self.complete
        try:
            found = fingerprint(self.folder / name, int(record.split()[0]) if begun else None)
        except OSError as error:
            return f"was written, and cannot be read now ({error.strerror or error})"
        sizes = record.split()[0], found.split()[0]
        how = "its bytes are others" if sizes[0] == sizes[1] else f"it had {sizes[0]} bytes, now {sizes[1]}"
        return "" if found == record else f"is not what this run wrote ({how})"

    def reload(self) -> None:
        """Take the manifest from disk again: others may have changed it.

        Raises:
            RunError: it is damaged, or somebody began something else there.
        """
        found = self.open(self.folder).manifest
        if found["digest"] != self.manifest["digest"]:
            raise RunError(f"{self.folder}: another process began another run there; choose another folder with -o")
        self.manifest.update(found)

    @contextlib.contextmanager
    def locked(self, *, shared: bool = False) -> Iterator[None]:
        """Keep a second writer out; see `locked`. The manifest is then as the last writer left it.

        Raises:
            RunError: another process is writing there.
        """
        with locked(self.folder, shared=shared):
            self.reload()
            yield

    def begin(self, **record: Any) -> int:
        """Note in the manifest that somebody works on the run from now on, with a `record`; the session's number."""
        session = {"started": _now(), "ended": None, **record, "versions": versions()}
        self.write(status=RUNNING, sessions=[*self.manifest["sessions"], session])
        return len(self.manifest["sessions"]) - 1

    def end(
        self,
        number: int,
        status: str,
        record: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
        **changes: Any,
    ) -> None:
        """Note the run's status after a session, what else is kept of that session, and changes of the manifest.

        `files` are what the session wrote, as `recorded` gives them.
        """
        sessions = list(self.manifest["sessions"])
        sessions[number] = {**sessions[number], **(record or {}), "ended": _now()}
        self.write(status=status, sessions=sessions, files={**self.manifest["files"], **(files or {})}, **changes)

    @contextlib.contextmanager
    def session(self, **record: Any) -> Iterator[dict[str, Any]]:
        """A session of a run that is already locked; what leaves the block by an exception leaves it interrupted.

        Yields:
            The session's entry in the manifest, to be added to; `write` brings it to the disk.
        """
        number = self.begin(**record)
        try:
            yield self.manifest["sessions"][number]
        except BaseException:
            # On a full disk this fails too; the manifest then still says "running", which nobody takes for complete.
            with contextlib.suppress(RunError):
                self.end(number, INTERRUPTED)
            raise
        self.end(number, COMPLETE)


def kind_of(folder: Path) -> str | None:
    """The kind of run that a folder holds; `None` if it holds none that can be read."""
    with contextlib.suppress(RunError):
        manifest = read_json(folder / MANIFEST, str)
        return str(manifest.get("kind")) if manifest.get("format") == FORMAT else None
    return None


@contextlib.contextmanager
def locked(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Keep a second writer out of a folder; the lock goes when the process does, however it ends.

    What a killed writer left half-written is swept away by the first one that is alone. With `shared` other writers may
    come that share it, too.

    Raises:
        RunError: another process is writing there.
    """
    with FileLock(folder / ".lock") as lock:
        if lock.take() is not False:
            # Other machines' locks may not be seen here, and neither would be what their writers are at.
            sweep(folder, older=_HOUR if shared else 0.0)
        elif not shared:
            raise RunError(f"{folder}: another process is writing this run; wait for it or stop it first")
        if shared and lock.take(shared=True) is False:
            why = "another process is writing this run and does not share it (it has no --part); wait for it"
            raise RunError(f"{folder}: {why}")
        yield


def new_folder(name: str, parent: Path = RUNS) -> Path:
    """Make the folder `runs/<name>-<n>` with the smallest free n; `RunError` if it cannot be made."""
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            folder = parent / f"{name}-{number}"
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                return folder
    except OSError as error:
        raise cannot_write(parent, error) from error
    raise AssertionError("there are numbers enough")


@contextlib.contextmanager
def chosen_folder(given: Path | None, name: str) -> Iterator[Path]:
    """The folder that was given, or a new one in `RUNS`, which goes again if nothing comes into it."""
    if given is not None:
        yield given.expanduser()
        return
    made = [] if RUNS.exists() else [RUNS]
    folder = new_folder(name)
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):  # it holds something
            for empty in (folder, *made):
                empty.rmdir()


def versions() -> dict[str, str]:
    """The versions that results may depend on."""
    found = {"llm-coop-envs": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def digest_of(identity: Mapping[str, Any]) -> str:
    """A hash of plain data."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def plain_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data as it comes back from JSON, in which tuples are lists."""
    plain: dict[str, Any] = json.loads(json.dumps(data))
    return plain


def difference(there: Any, here: Any, where: str = "", *, every: bool = False) -> str:
    """The first place in which what is there differs from what is here, in words; empty if there is none.

    The fields of what is here alone count, with `every` those of what is there, too.
    """
    if isinstance(there, dict) and isinstance(here, dict):
        pairs = [(name, there.get(name), here.get(name)) for name in ({**here, **there} if every else here)]
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        pairs = [(str(k), *both) for k, both in enumerate(zip(there, here, strict=True))]
    else:
        return "" if there == here else f"{where} is {_short(there)} there and {_short(here)} here"
    found = (difference(old, new, f"{where}.{name}" if where else name, every=every) for name, old, new in pairs)
    return next(filter(None, found), "")


def _short(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
