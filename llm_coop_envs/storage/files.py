"""Writing files atomically, fingerprints, JSON, and files of JSON lines."""

from __future__ import annotations

import contextlib
import errno
import gzip
import hashlib
import io
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import RunError
from llm_coop_envs.util.opening import (
    DAMAGED,
    EPISODE_VARIABLE,
    MAX_EPISODE,
    TooLarge,
    check_inside,
    decompress,
    episode_limit,
    lies_inside,
    open_file,
    parse_json,
    read_file,
)

# Events compress well at any level; higher levels take longer than playing the episode did.
GZIP_LEVEL = 4
# What file systems without hard links answer.
_NO_LINKS = (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.EMLINK, errno.EINVAL, errno.EACCES)
#: The ending of files that are being written.
TEMPORARY = ".partial"


class OversizedFile(RunError):
    """A file may be whole, but holds more than this process reads."""


def write_whole(path: Path, content: bytes, *, replaces: bool = True) -> None:
    """Write a file atomically: it is never half-written, whatever happens meanwhile.

    Args:
        path: the file.
        content: what it is to hold.
        replaces: whether a file that is there is replaced.

    Raises:
        RunError: the file cannot be written; the sentence says why.
        FileExistsError: it is there, and is not to be replaced.
    """
    with atomic_path(path, replaces=replaces) as temporary, temporary.open("wb") as file:
        file.write(content)


@contextlib.contextmanager
def atomic_path(path: Path, *, replaces: bool = True) -> Iterator[Path]:
    """Write a file under a temporary path, which becomes `path` when the block ends without an exception.

    Args:
        path: the file.
        replaces: whether a file that is there is replaced.

    Yields:
        The temporary path, in the same folder.

    Raises:
        RunError: the file cannot be written.
        FileExistsError: it is there, and is not to be replaced.
    """
    # Processes of two containers that share the folder may have the same number.
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}{TEMPORARY}")
    check_folder_inside(path.parent)
    try:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            yield temporary
            # Without it, a power cut may leave an empty file under the new name.
            with temporary.open("rb+") as file:
                os.fsync(file.fileno())
            if replaces:
                os.replace(temporary, path)
            else:
                _link(temporary, path)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    except FileExistsError:
        if not replaces:
            raise
        raise cannot_write(path, FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))) from None
    except OSError as error:
        raise cannot_write(path, error) from error


def _link(temporary: Path, path: Path) -> None:
    """Give a file its name unless that is taken: of two processes one succeeds."""
    try:
        os.link(temporary, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if path.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path)) from None
        os.replace(temporary, path)
    else:
        temporary.unlink()


def check_folder_inside(folder: Path) -> None:
    """Check that a folder in a run folder is not a link out of it, before something is written there.

    Raises:
        RunError: it is.
    """
    if not lies_inside(folder):
        raise RunError(f"{folder}: is a link that leads out of the run folder, nothing is written there; remove it")


def cannot_write(path: Path, error: OSError) -> RunError:
    """The error for a file that could not be written."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return RunError(f"{path}: cannot be written, the disk is full; free some space")
    reason = error.strerror or str(error)
    return RunError(f"{path}: cannot be written ({reason}); choose a folder you can write to with -o")


def size_of(path: Path) -> int:
    """The size of a regular file in bytes, whatever it holds; see `opening.open_file`."""
    with open_file(path) as file:
        return os.fstat(file.fileno()).st_size


def fingerprint(path: Path, size: int | None = None) -> str:
    """A file's size in bytes and its SHA-256, as in `"12 9f86..."`.

    Args:
        path: the file.
        size: count and hash only the first `size` bytes; `None` for all.

    Raises:
        OSError: it cannot be read.
    """
    hashed, count = hashlib.sha256(), 0
    with open_file(path) as file:
        while chunk := file.read(1 << 20 if size is None else min(1 << 20, size - count)):
            hashed.update(chunk)
            count += len(chunk)
    return f"{count} {hashed.hexdigest()}"


def fingerprint_of(content: bytes) -> str:
    """The `fingerprint` of a file with this content."""
    return f"{len(content)} {hashlib.sha256(content).hexdigest()}"


def sweep(folder: Path, min_age: float = 0.0) -> None:
    """Remove the half-written files of killed writers that are older than `min_age` seconds."""
    for path in folder.rglob(f".*{TEMPORARY}"):
        with contextlib.suppress(OSError):
            if min_age <= 0 or time.time() - path.stat().st_mtime > min_age:
                path.unlink()


def write_json(path: Path, data: Any) -> None:
    """Write indented JSON."""
    write_whole(path, (json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())


def pack_lines(records: Iterable[Any]) -> bytes:
    """Pack records as gzipped JSON lines; the same records give the same bytes."""
    buffer = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=GZIP_LEVEL, fileobj=buffer, mtime=0) as file:
        for record in records:
            line = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
            file.write(line.encode() + b"\n")
    return buffer.getvalue()


def read_lines(path: Path) -> list[Any]:
    """Read the records of a file that `pack_lines` packed.

    Raises:
        RunError: the file cannot be read, is damaged, or larger than `opening.episode_limit`.
    """
    return read_lines_and_fingerprint(path)[0]


def read_lines_and_fingerprint(path: Path) -> tuple[list[Any], str]:
    """Read the records of a file that `pack_lines` packed, and the file's `fingerprint`; see `read_lines`."""
    limit = episode_limit()
    try:
        content = read_file(path, limit)
        data = decompress(content, limit)
        lines = data.removesuffix(b"\n").split(b"\n") if data else []
        # One call for all lines takes half the time of one for each. It takes lines with two records, too.
        records: list[Any] = parse_json(b"[%s]" % b",".join(lines))
        if len(records) != len(lines):
            raise ValueError("not one record in each line")
        return records, fingerprint_of(content)
    except TooLarge as error:
        raise OversizedFile(
            f"{path}: {error}; if you have the memory, allow more MiB with {EPISODE_VARIABLE}"
        ) from error
    except (OSError, *DAMAGED) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise RunError(f"{path}: cannot be read ({reason}); delete it and run the study again to replace it") from error


@contextlib.contextmanager
def open_for_append(path: Path) -> Iterator[Callable[[Any], None]]:
    """Open a file of JSON lines for appending records.

    First cuts off a last line that a killed writer left incomplete, so only the one writer of a locked folder may call
    this.

    Yields:
        A function that appends a record; the record is in the file when it returns.

    Raises:
        RunError: the file cannot be written.
    """
    try:
        check_inside(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
        file.truncate(_end_of_last_line(read_file(path, MAX_EPISODE)))
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


def read_appended(path: Path, read: Callable[[bytes], Any] = parse_json) -> list[Any]:
    """Read the records of a file that `open_for_append` wrote, without an incomplete last line.

    The file is not changed: a writer may be at work.

    Args:
        path: the file; a missing one has no records.
        read: makes a record of a line; raises one of `DAMAGED` for a damaged one.

    Raises:
        RunError: it cannot be read, or a complete line is damaged.
    """
    try:
        data = read_file(path, MAX_EPISODE)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"{path}: cannot be read ({error.strerror or error})") from error
    records = []
    for number, line in enumerate(data[: _end_of_last_line(data)].splitlines(), 1):
        try:
            records.append(read(line))
        except DAMAGED as error:
            raise RunError(f"{path}, line {number}, is damaged; delete that line and run again") from error
    return records


def _end_of_last_line(data: bytes) -> int:
    """How many bytes the complete lines have."""
    return data.rfind(b"\n") + 1


def read_json(path: Path, describe: Callable[[str], str]) -> dict[str, Any]:
    """Read a JSON object from a file.

    Args:
        path: the file.
        describe: makes the error's sentence from the reason.

    Raises:
        RunError: the file cannot be read or holds no JSON object.
    """
    try:
        data = parse_json(read_file(path))
    except OSError as error:
        raise RunError(describe(error.strerror or str(error))) from error
    except DAMAGED as error:
        raise RunError(describe(f"it is damaged: {error}")) from error
    if not isinstance(data, dict):
        raise RunError(describe("it holds no JSON object"))
    return data
