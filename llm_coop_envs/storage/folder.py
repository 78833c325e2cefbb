"""Run folders: a manifest says what is run and how far it got, and a lock keeps a second writer out.

The manifest, `run.json`, holds:

- `format`, `kind` and `status`; only the status `complete`, which is written last, says that all files are there;
- `digest`, a hash of the settings that decide the results, and these settings;
- `sessions`, one entry for each process that worked on the run, with the versions of the libraries;
- `files`, size and SHA-256 of each written file;
- `check`, a hash of all other fields, by which damage is detected.

Each kind of run derives from `RunFolder` and adds what else its folder holds.
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

from llm_coop_envs.errors import LlmCoopError, RunError
from llm_coop_envs.storage.files import (
    cannot_write,
    fingerprint,
    fingerprint_of,
    read_json,
    size_of,
    write_json,
    write_whole,
)
from llm_coop_envs.storage.lease import hold_lease
from llm_coop_envs.storage.lock import lock_folder
from llm_coop_envs.storage.manifest import RECORD, SHAPE, is_file_name
from llm_coop_envs.util.opening import DAMAGED
from llm_coop_envs.util.paths import StrPath
from llm_coop_envs.util.shapes import check_shape
from llm_coop_envs.version import __version__

FORMAT = 3
MANIFEST, CHECK = "run.json", "check"
RUNS = Path("runs")
RUNNING, COMPLETE, INTERRUPTED = "running", "complete", "interrupted"

_LIBRARIES = (
    *("aiohttp", "gymnasium", "jinja2", "litellm", "matplotlib", "numba", "numpy", "openai", "pettingzoo", "pyarrow"),
    *("sb3-contrib", "stable-baselines3", "torch"),
)


class DamagedManifest(RunError):
    """The manifest of a run is not what was written."""


@dataclass(kw_only=True)
class RunFolder:
    """An open run folder; each `kind` of run is a subclass.

    Attributes:
        kind: the kind of run, as the manifest names it.
        begun_with: what a user gives to begin or continue such a run, for errors.
        cure: what helps if the manifest is damaged, for errors.
        growing: a folder inside whose files only grow until the run is complete; `None` if there is none.
        folder: the path of the run folder.
        manifest: the content of `run.json` without `check`. It is replaced by `change`, `write` and `reload`, never
            changed in place.
    """

    kind: ClassVar[str]
    begun_with: ClassVar[str] = "the settings and the seed"
    cure: ClassVar[str] = "begin the run again in a new folder"
    growing: ClassVar[str | None] = None

    folder: Path
    manifest: Mapping[str, Any]

    @classmethod
    def open(cls, folder: StrPath) -> Self:
        """Read a run's manifest.

        Raises:
            RunError: there is no run of this kind in the folder, or it is of another format.
            DamagedManifest: it is damaged.
        """
        folder = Path(folder)
        path = folder / MANIFEST
        if not path.is_file():
            why = f"there is no {MANIFEST} in it" if folder.exists() else "it does not exist"
            raise RunError(f"{folder}: is no run folder ({why}); give the folder of a run")
        try:
            manifest = read_json(path, lambda reason: f"{path}: cannot be read ({reason}); {cls.cure}")
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
        kind = manifest.get("kind")
        if kind != cls.kind:
            raise RunError(f"{folder}: holds a run of kind {kind!r}, not {cls.kind!r}; give another folder")
        run = cls(folder=folder, manifest=manifest)
        try:
            check_shape(manifest, SHAPE)
            run._check()
        except LlmCoopError:
            raise
        except DAMAGED as error:
            reason = " ".join((str(error) if isinstance(error, ValueError) else repr(error)).split())[:200]
            raise RunError(f"{path}: is damaged ({reason}); begin the run again in a new folder") from error
        return run

    @classmethod
    def make(
        cls, folder: Path, identity: Mapping[str, Any], files: Mapping[str, bytes] = MappingProxyType({}), **about: Any
    ) -> Self:
        """Begin a run in a folder, or open the run that the folder holds.

        Args:
            folder: a new or empty folder, or one that holds this run.
            identity: all settings that decide the results, as plain data; the manifest keeps them.
            files: the content of each file to write into a new run's folder, by name.
            **about: further fields of a new run's manifest; they replace fields of `identity` of the same name.

        Raises:
            RunError: the folder holds something else, or cannot be written.
        """
        try:
            names = sorted(p.name for p in folder.iterdir() if not p.name.startswith(".")) if folder.exists() else []
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(folder, error) from error
        if names and not (folder / MANIFEST).is_file():
            raise RunError(f"{folder}: is neither empty nor a run folder (it holds {names[0]}); choose another with -o")
        # Of several processes that begin at the same time, one writes the manifest and the others wait for it.
        with hold_lease(folder / ".begin"):
            if not (folder / MANIFEST).is_file():
                records = {name: fingerprint_of(content) for name, content in files.items()}
                run = cls.new(folder, identity, **about, files=records)
                for name, content in files.items():
                    write_whole(folder / name, content)
                return run
        run = cls.open(folder)
        run.check_same(identity)
        return run

    @classmethod
    def new(cls, folder: Path, identity: Mapping[str, Any], **about: Any) -> Self:
        """Write the manifest of a new run, whatever the folder holds; the arguments are those of `make`."""
        header = {"format": FORMAT, "kind": cls.kind, "status": RUNNING, "digest": digest_of(identity)}
        run = cls(folder=folder, manifest={**header, **plain_json(identity), "files": {}, "sessions": [], **about})
        run.write()
        return run

    @property
    def complete(self) -> bool:
        """Whether all files of the run have been written."""
        return bool(self.manifest["status"] == COMPLETE)

    @property
    def title(self) -> str:
        """The name of the run in errors."""
        return f"a run of kind {self.kind!r}"

    def _check(self) -> None:
        """Read the fields that this kind of run keeps in the manifest; subclasses override it.

        Raises:
            Exception: one of `opening.DAMAGED`: a field is missing or damaged.
        """

    def check_same(self, identity: Mapping[str, Any]) -> None:
        """Refuse to continue the run with other settings.

        Args:
            identity: all settings that decide the results; see `make`.

        Raises:
            RunError: they differ from those in the manifest.
        """
        if self.manifest["digest"] != digest_of(identity):
            change = difference(dict(self.manifest), plain_json(identity)) or "written by another version"
            raise RunError(
                f"{self.folder}: holds {self.title} with other settings ({change}); choose another folder with -o, or "
                f"continue it with {self.begun_with} that it was begun with"
            )

    def change(self, **fields: Any) -> None:
        """Replace fields of the manifest in memory; the next `write` writes them to disk."""
        self.manifest = {**self.manifest, **fields}

    def write(self, **fields: Any) -> None:
        """Replace fields of the manifest, first on disk and then in memory.

        Raises:
            RunError: it cannot be written; the manifest in memory is then unchanged.
        """
        manifest = {**self.manifest, **fields}
        write_json(self.folder / MANIFEST, {**manifest, CHECK: digest_of(manifest)})
        self.manifest = manifest

    def fingerprints(self, *paths: Path) -> dict[str, str]:
        """The entries of files for the manifest's `files`: size and SHA-256 by path inside the folder."""
        return {self.file_name(path): fingerprint(path) for path in paths}

    def file_name(self, path: Path) -> str:
        """The name of a file in the manifest: its path inside the folder."""
        return path.relative_to(self.folder).as_posix()

    def describe_damage(self, prefix: str = "") -> list[str]:
        """Compare recorded files with those on disk.

        Args:
            prefix: the name of one file, or the beginning of the names of those to compare, such as `"journal/"`.

        Returns:
            A sentence on each file that is missing or differs from what was written.
        """
        files = self.manifest["files"]
        names = [prefix] if prefix in files else [name for name in files if name.startswith(prefix)]
        problems = {name: self._describe_file(name, files[name]) for name in names}
        return [f"{self.folder / name}: {problem}" for name, problem in problems.items() if problem]

    def _describe_file(self, name: str, record: str) -> str:
        """What is wrong with a recorded file; empty if nothing is."""
        if not RECORD.fullmatch(record) or not is_file_name(name):
            return "is recorded in a way that this program does not write"
        size = int(record.split()[0])
        # A file that still grows must begin with the bytes that were recorded.
        may_grow = self.growing is not None and name.startswith(self.growing) and not self.complete
        path = self.folder / name
        try:
            # Of another size it is another file: a sparse one of gigabytes need not be read to know that.
            current_size = size_of(path)
            if current_size < size or (current_size > size and not may_grow):
                return f"is not what this run wrote (it had {size} bytes, now {current_size})"
            current = fingerprint(path, size)
        except OSError as error:
            return f"was written, and cannot be read now ({error.strerror or error})"
        return "" if current == record else "is not what this run wrote (its bytes are others)"

    def reload(self) -> None:
        """Read the manifest from disk again: another process may have changed it.

        Raises:
            RunError: it is damaged, or another run was begun in the folder.
        """
        manifest = self.open(self.folder).manifest
        if manifest["digest"] != self.manifest["digest"]:
            raise RunError(f"{self.folder}: another process began another run there; choose another folder with -o")
        self.manifest = {**self.manifest, **manifest}

    @contextlib.contextmanager
    def lock(self, *, shared: bool = False) -> Iterator[None]:
        """Keep a second writer out, and reload the manifest as the last writer left it; see `lock_folder`.

        Raises:
            RunError: another process is writing there.
        """
        with lock_folder(self.folder, shared=shared):
            self.reload()
            yield

    def begin(self, **record: Any) -> int:
        """Add a session to the manifest and write it; returns the session's number.

        Args:
            **record: further fields of the session's entry, such as the command.
        """
        session = {"started": _now(), "ended": None, **record, "versions": versions()}
        self.write(status=RUNNING, sessions=[*self.manifest["sessions"], session])
        return len(self.manifest["sessions"]) - 1

    def end(
        self,
        number: int,
        status: str,
        record: Mapping[str, Any] | None = None,
        files: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> None:
        """Close a session and write the manifest.

        Args:
            number: the session's number, from `begin`.
            status: the status of the run from now on.
            record: further fields of the session's entry.
            files: the files that the session wrote, as `fingerprints` gives them.
            **fields: further fields of the manifest.
        """
        sessions = list(self.manifest["sessions"])
        sessions[number] = {**sessions[number], **(record or {}), "ended": _now()}
        self.write(status=status, sessions=sessions, files={**self.manifest["files"], **(files or {})}, **fields)

    @contextlib.contextmanager
    def session(self, **record: Any) -> Iterator[dict[str, Any]]:
        """Work on a locked run: the run is complete after the block, or interrupted if an exception leaves it.

        Yields:
            The session's entry in the manifest, to which fields may be added; `write` writes them to disk.
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
    """The kind of run in a folder; `None` if the folder holds no readable run."""
    with contextlib.suppress(RunError):
        manifest = read_json(folder / MANIFEST, str)
        return str(manifest.get("kind")) if manifest.get("format") == FORMAT else None
    return None


def new_folder(name: str, parent: Path = RUNS) -> Path:
    """Make the folder `<parent>/<name>-<n>` with the smallest free n.

    Raises:
        RunError: it cannot be made.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        for number in itertools.count(1):
            folder = parent / f"{name}-{number}"
            with contextlib.suppress(FileExistsError):
                folder.mkdir()
                return folder
    except OSError as error:
        raise cannot_write(parent, error) from error
    raise AssertionError("numbers do not run out")


@contextlib.contextmanager
def chosen_folder(path: Path | None, name: str) -> Iterator[Path]:
    """Use the folder at `path`, or else a new one in `RUNS`, which is removed after the block if it is still empty."""
    if path is not None:
        yield path.expanduser()
        return
    new_parents = [] if RUNS.exists() else [RUNS]
    folder = new_folder(name)
    try:
        yield folder
    finally:
        with contextlib.suppress(OSError):  # not empty
            for empty in (folder, *new_parents):
                empty.rmdir()


def versions() -> dict[str, str]:
    """The installed versions of Python, this package and the libraries that results may depend on."""
    installed = {"llm-coop-envs": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            installed[name] = importlib.metadata.version(name)
    return installed


def digest_of(identity: Mapping[str, Any]) -> str:
    """The SHA-256 of plain data, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()


def plain_json(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data as it would be read back from JSON: tuples become lists."""
    plain: dict[str, Any] = json.loads(json.dumps(data))
    return plain


def difference(old: Any, new: Any, path: str = "", *, every: bool = False) -> str:
    """Describe the first place in which plain data differ; empty if there is none.

    Args:
        old: the data that are there.
        new: the data to compare with them.
        path: the fields that lead to these data, such as `"settings.players"`.
        every: compare fields that only `old` has, too.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        pairs = [(name, old.get(name), new.get(name)) for name in ({**new, **old} if every else new)]
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = [(str(index), *both) for index, both in enumerate(zip(old, new, strict=True))]
    else:
        return "" if old == new else f"{path} is {_shorten(old)} there and {_shorten(new)} here"
    differences = (
        difference(old_value, new_value, f"{path}.{name}" if path else name, every=every)
        for name, old_value, new_value in pairs
    )
    return next(filter(None, differences), "")


def _shorten(value: Any) -> str:
    """A value as Python writes it, cut to 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _now() -> str:
    """The time in UTC as in `"2025-01-31T12:00:00+00:00"`."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
