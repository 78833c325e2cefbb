"""The one place that opens files which somebody else may have made.

Only regular files are opened: a pipe in place of a file would block for ever. A file of a run folder must lie in that
folder: a link out of it could show, or send to a model, what is none of the run's. Sizes are bounded before anything is
read, and again while it is decompressed: a gigabyte of zeros takes a megabyte on disk.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import os
import re
import stat
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import LlmCoopError, RunError, SettingsError
from llm_coop_envs.util.fastjson import loads

MIB = 1 << 20
#: The largest file that is read at once: a manifest, an order, a study.
MAX_TEXT = 64 * MIB
#: The largest episode, decompressed, unless `EPISODE_VARIABLE` names more MiB; and the largest file of arrays.
MAX_EPISODE = 512 * MIB
EPISODE_VARIABLE = "LLM_COOP_MAX_EPISODE_MIB"
#: The largest episode, decompressed, that is read bit by bit: four rounds of a million players take half a gigabyte.
MAX_STREAMED = 8 << 30
#: The largest file that is read in pieces: a journal.
MAX_FILE = 1 << 36
#: The most gzip members of a file that is read whole; we write one.
MAX_MEMBERS = 1000
MANIFEST = "run.json"

#: What reading the content of a damaged file may raise, whoever reads it.
DAMAGED = (
    *(ArithmeticError, AssertionError, AttributeError, EOFError, LookupError, MemoryError, NotImplementedError),
    *(RecursionError, StopIteration, SyntaxError, TypeError, ValueError),
    *(struct.error, tokenize.TokenError, zipfile.BadZipFile, zlib.error),
)
# Looking for them takes a hundredth of the time that parsing takes.
_LONG_NUMBER = re.compile(rb"[0-9]{19}")
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


class TooLarge(ValueError):
    """Something holds more than is read of its kind."""


class NoRegularFile(OSError):
    """What is at a path is no regular file of the folder, or is too large."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(None, reason, str(path))


def open_file(path: Path, limit: int = MAX_FILE) -> io.BufferedReader:
    """Open a regular file for reading, in binary.

    Args:
        path: the file. If it lies in a run folder, its links must end in that folder.
        limit: the largest size in bytes.

    Raises:
        OSError: it cannot be opened, is no regular file, lies elsewhere, or is larger; `strerror` says which.
    """
    descriptor = open_descriptor(path, os.O_RDONLY)
    try:
        size = os.fstat(descriptor).st_size
        if size > limit:
            raise NoRegularFile(path, f"it has {size:,} bytes, more than the {limit:,} that are read")
        return os.fdopen(descriptor, "rb")
    except BaseException:
        with contextlib.suppress(OSError):
            os.close(descriptor)
        raise


def open_descriptor(path: Path, flags: int) -> int:
    """Open a regular file as `os.open` does, which never waits for a pipe, and follows no link out of a run folder.

    Raises:
        OSError: it cannot be opened, is no regular file, or lies elsewhere; `strerror` says which.
    """
    check_inside(path)
    # Without blocking: opening a pipe would otherwise wait for a writer.
    without_waiting = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    descriptor = os.open(path, flags | without_waiting, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NoRegularFile(path, "it is no regular file")
    return descriptor


def check_inside(path: Path) -> None:
    """Check that a path that begins in a run folder ends there.

    Raises:
        OSError: it is a link that leads out.
    """
    if not lies_inside(path):
        raise NoRegularFile(path, "it is a link that leads out of its run folder")


def read_file(path: Path, limit: int = MAX_TEXT) -> bytes:
    """Read a regular file; see `open_file`."""
    with open_file(path, limit) as file:
        # Asking for all of a large limit would take that much memory.
        content = file.read(min(limit, os.fstat(file.fileno()).st_size) + 1)
    if len(content) > limit:
        raise NoRegularFile(path, f"it has more than {limit:,} bytes")
    return content


def episode_limit() -> int:
    """The largest episode that is read whole, in bytes: whoever made a larger one can allow it.

    Raises:
        SettingsError: the environment variable is no number of MiB.
    """
    value = os.environ.get(EPISODE_VARIABLE, "").strip()
    if value and not (value.isdecimal() and 0 < int(value[:9]) < 1 << 20):
        raise SettingsError(EPISODE_VARIABLE, value, "must be a number of MiB, such as 4096")
    return max(MAX_EPISODE, int(value or 0) * MIB)


def decompress(content: bytes, limit: int = MAX_EPISODE) -> bytes:
    """Decompress gzip, of one member or several; each of very many would cost a copy of all that follow.

    Raises:
        TooLarge: the result is larger than `limit`, or has too many members.
        EOFError, zlib.error: the content is cut off or damaged.
    """
    parts, size = [], 0
    while content:
        unpacker = zlib.decompressobj(wbits=31)
        part = unpacker.decompress(content, limit - size + 1)
        size += len(part)
        if size > limit:
            raise TooLarge(f"it holds more than the {limit:,} bytes that are read")
        if not unpacker.eof:
            raise EOFError("it is cut off")
        parts.append(part)
        if len(parts) > MAX_MEMBERS:
            raise TooLarge(f"it has more than {MAX_MEMBERS:,} parts")
        content = unpacker.unused_data.lstrip(b"\0")
    return b"".join(parts)


def check_archive(archive: zipfile.ZipFile) -> None:
    """Check that what is in an archive is not too large to be read; no more than it states is read of a file in it.

    Raises:
        ValueError: it is, or it is encrypted.
    """
    size = sum(member.file_size for member in archive.infolist())
    if size > MAX_EPISODE:
        raise ValueError(f"it holds {size:,} bytes, more than the {MAX_EPISODE:,} that are read")
    if any(member.flag_bits & 1 for member in archive.infolist()):
        raise ValueError("it is encrypted")


def parse_json(content: bytes) -> Any:
    """Parse JSON whose integers fit into 64 bits, and whose texts can be written again.

    Raises:
        ValueError, RecursionError: it is no such JSON.
    """
    data = json.loads(content, parse_int=_read_integer) if _LONG_NUMBER.search(content) else loads(content)
    if _SURROGATE.search(content):
        json.dumps(data, ensure_ascii=False).encode()  # raises UnicodeEncodeError for half a pair
    return data


def _read_integer(digits: str) -> int:
    value = int(digits)
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"the integer {digits[:24]}{'...' if len(digits) > 24 else ''} has more than 64 bits")
    return value


@contextlib.contextmanager
def explain_damage(path: Path, cure: str) -> Iterator[None]:
    """Turn what a damaged file or folder raises in the block into a sentence.

    Raises:
        RunError: instead of the errors in `DAMAGED`; our own errors pass.
    """
    try:
        yield
    except LlmCoopError:
        raise
    except DAMAGED as error:
        reason = " ".join(str(error).split())[:200]
        raise RunError(f"{path}: is damaged ({type(error).__name__}: {reason}); {cure}") from error


def open_memory(path: Path, limit: int = MAX_EPISODE) -> io.BytesIO:
    """A regular file's content, for libraries that want a file; see `open_file`."""
    return io.BytesIO(read_file(path, limit))


def lies_inside(path: Path) -> bool:
    """Whether a path that begins in a run folder ends there, too; true for one in no run folder."""
    folder = run_folder_of(path)
    if folder is None:
        return True
    below = path.absolute().parts[len(folder.parts) :]
    steps = itertools.accumulate(below, os.path.join, initial=str(folder))
    if os.name == "posix" and ".." not in below and not any(map(os.path.islink, itertools.islice(steps, 1, None))):
        return True  # as nearly always: asking for two real paths takes five times as long
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def run_folder_of(path: Path) -> Path | None:
    """The farthest folder above a path that has a manifest; `None` without one."""
    *parents, _ = itertools.accumulate(path.absolute().parts, os.path.join)
    return next((Path(folder) for folder in parents if os.path.lexists(os.path.join(folder, MANIFEST))), None)
