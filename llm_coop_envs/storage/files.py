"""Files that are whole or not there at all."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import io
import json
import os
import time
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import RunError

# Events compress well at any level; higher ones cost more time than playing the episode did.
GZIP_LEVEL = 4
TEMPORARY = ".partial"


def write_whole(path: Path, content: bytes) -> None:
    """Write or replace a file so that it is either complete or not there, whatever happens meanwhile.

    Raises:
        RunError: the file cannot be written; the sentence says why.
    """
    with whole(path) as temporary, temporary.open("wb") as file:
        file.write(content)


@contextlib.contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that takes its place when the block ends well.

    Raises:
        RunError: something cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}{TEMPORARY}")
    try:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            # Without it a power cut may leave the new name with no content.
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise cannot_write(path, error) from error


def cannot_write(path: Path, error: OSError) -> RunError:
    """The sentence for a file that could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunError(f"{path}: cannot be written, the disk is full; free some space")
    why = error.strerror or str(error)
    return RunError(f"{path}: cannot be written ({why}); choose a folder you can write to with -o")


def fingerprint(path: Path, size: int | None = None) -> str:
    """A file's size in bytes and its SHA-256, as in `"12 9f86..."`; with `size`, of its first bytes alone.

    Raises:
        OSError: it cannot be read.
    """
    hashed, count = hashlib.sha256(), 0
    with path.open("rb") as file:
        while chunk := file.read(1 << 20 if size is None else min(1 << 20, size - count)):
            hashed.update(chunk)
            count += len(chunk)
    return f"{count} {hashed.hexdigest()}"


def fingerprint_of(content: bytes) -> str:
    """What `fingerprint` says of a file with this content."""
    return f"{len(content)} {hashlib.sha256(content).hexdigest()}"


def sweep(folder: Path, older: float = 0.0) -> None:
    """Remove what killed writers left behind, if it is older than so many seconds."""
    for left in folder.rglob(f".*{TEMPORARY}"):
        with contextlib.suppress(OSError):
            if older <= 0 or time.time() - left.stat().st_mtime > older:
                left.unlink()


def write_json(path: Path, data: Any) -> None:
    """Write readable JSON."""
    write_whole(path, (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())


def pack_lines(records: Iterable[Any]) -> bytes:
    """Records as compressed JSON lines; the same records give the same bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=GZIP_LEVEL, fileobj=buffer, mtime=0) as file:
        for record in records:
            line = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            file.write(line.encode() + b"\n")
    return buffer.getvalue()


def read_lines(path: Path) -> list[Any]:
    """The records that `pack_lines` packed.

    Raises:
        RunError: the file cannot be read or is damaged.
    """
    return read_known_lines(path)[0]


def read_known_lines(path: Path) -> tuple[list[Any], str]:
    """The records that `pack_lines` packed, and the fingerprint of the file that they are from; see `read_lines`."""
    try:
        content = path.read_bytes()
        data = gzip.decompress(content)
        lines = data.removesuffix(b"\n").split(b"\n") if data else []
        # One call for all lines takes half the time of one for each; then each must be one record by itself.
        records: list[Any] = json.loads(b"[%s]" % b",".join(lines))
        if len(records) != len(lines):
            raise ValueError("not one record in each line")
        return records, fingerprint_of(content)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise RunError(f"{path}: cannot be read ({why}); delete it and run the study again to replace it") from error


@contextlib.contextmanager
def appending(path: Path) -> Iterator[Callable[[Any], None]]:
    """What appends records to a file of JSON lines; each is there as soon as it was given.

    A last line that was torn when its writer was killed is cut off first, so only the one writer of a locked folder may
    call this.

    Raises:
        RunError: the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
        file.truncate(_lines_end(path.read_bytes()))
    except OSError as error:
        raise cannot_write(path, error) from error

    def append(record: Any) -> None:
        try:
            file.write(json.dumps(record, ensure_ascii=False).encode() + b"\n")
            file.flush()
        except OSError as error:
            raise cannot_write(path, error) from error

    with file:
        yield append


def read_appended(path: Path, read: Callable[[bytes], Any] = json.loads) -> list[Any]:
    """The records that `appending` wrote so far, without a last line that is being written or was torn.

    Nothing is changed: a writer may be at work.

    Args:
        path: the file; if it is not there, there are no records.
        read: makes a record of a line; raises `KeyError`, `ValueError` or `zlib.error` for a damaged one.

    Raises:
        RunError: it cannot be read, or another line is damaged.
    """
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror or error})") from error
    records = []
    for number, line in enumerate(data[: _lines_end(data)].splitlines(), 1):
        try:
            records.append(read(line))
        except (KeyError, ValueError, zlib.error) as error:
            raise RunError(f"{path}, line {number}, is damaged; delete that line and run again") from error
    return records


def _lines_end(data: bytes) -> int:
    """Where the last line that was ended ends."""
    return data.rfind(b"\n") + 1


def read_json(path: Path, what: Callable[[str], str]) -> dict[str, Any]:
    """A JSON object from a file; `what` makes the error's sentence from the reason.

    Raises:
        RunError: the file cannot be read or holds no JSON object.
    """
    try:
        data = json.loads(path.read_bytes())
    except OSError as error:
        raise RunError(what(error.strerror or str(error))) from error
    except (ValueError, RecursionError) as error:
        raise RunError(what(f"it is damaged: {error}")) from error
    if not isinstance(data, dict):
        raise RunError(what("it holds no JSON object"))
    return data
