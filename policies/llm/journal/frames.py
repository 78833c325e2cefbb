"""Frames: the journal's lines as they lie on the disk.

A journal file is a sequence of compressed frames, each a whole commit of JSON lines with a checksum of its own: zstd
frames (`.jsonl.zst`), or gzip members (`.jsonl.gz`) where the zstandard library is not installed. Both are what the
usual tools write, so that `zstdcat` or `zcat` show a journal.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from llm_coop_envs.errors import MissingExtra

zstandard: Any
try:
    import zstandard
except ImportError:
    zstandard = None

_REFUSALS: tuple[type[Exception], ...] = (zlib.error,) if zstandard is None else (zlib.error, zstandard.ZstdError)

ZSTD, GZIP = ".jsonl.zst", ".jsonl.gz"
MAGIC = {ZSTD: b"\x28\xb5\x2f\xfd", GZIP: b"\x1f\x8b\x08"}
_CHUNK = 64 * 1024
_FIRST = 8 * 1024
_LEVEL_ZSTD = 3
_LEVEL_GZIP = 1


class Damaged(Exception):
    """Bytes are no frame, or not what was written."""


class Unfinished(Exception):
    """The file ends inside a frame."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One commit.

    Attributes:
        start: its first byte in the file.
        end: the first byte after it.
        data: its lines.
    """

    start: int
    end: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Gap:
    """Bytes that could not be read.

    Attributes:
        start: the first of them.
        end: the first byte after them.
        tail: whether nothing readable follows: a commit that was cut short, by a kill, a crash or a full disk.
        why: what is wrong with them.
    """

    start: int
    end: int
    tail: bool
    why: str


def default_suffix() -> str:
    """The kind of file that is written here."""
    return ZSTD if zstandard is not None else GZIP


def suffix_of(path: Path) -> str:
    """Which kind of journal a file is.

    Raises:
        MissingExtra: it is compressed with zstd, and that library is not installed.
    """
    if path.name.endswith(GZIP):
        return GZIP
    if zstandard is None:
        raise MissingExtra(f"reading {path}", "openai")
    return ZSTD


def packer(suffix: str) -> Callable[[bytes], bytes]:
    """A function that makes a frame of lines; for one thread."""
    if suffix == GZIP:
        return lambda data: gzip.compress(data, _LEVEL_GZIP, mtime=0)
    compress: Callable[[bytes], bytes] = zstandard.ZstdCompressor(level=_LEVEL_ZSTD, write_checksum=True).compress
    return compress


def read_frames(file: BinaryIO, suffix: str) -> Iterator[Frame | Gap]:
    """The frames of a file in order, and the gaps between readable ones.

    Args:
        file: open for reading bytes, seekable.
        suffix: which kind it is.
    """
    size = file.seek(0, 2)
    new = _decoders(suffix)
    start = 0
    while start < size:
        try:
            frame = _read_frame(file, new(), start)
        except (Damaged, Unfinished) as error:
            following = _next_frame(file, suffix, start + 1, size)
            end = size if following is None else following
            yield Gap(start, end, following is None, str(error))
            start = end
        else:
            yield frame
            start = frame.end


def _read_frame(file: BinaryIO, decoder: Any, start: int) -> Frame:
    file.seek(start)
    parts: list[bytes] = []
    taken = 0
    while True:
        # Most frames are small; what is read beyond one is read again for the next.
        chunk = file.read(_CHUNK if taken else _FIRST)
        if not chunk:
            raise Unfinished("the last commit is cut short")
        taken += len(chunk)
        try:
            parts.append(decoder.decompress(chunk))
        except _REFUSALS as error:
            raise Damaged(f"not what was written ({error})") from None
        if decoder.eof:
            return Frame(start, start + taken - len(decoder.unused_data), b"".join(parts))


def _decoders(suffix: str) -> Callable[[], Any]:
    if suffix == GZIP:
        return lambda: zlib.decompressobj(wbits=31)
    new: Callable[[], Any] = zstandard.ZstdDecompressor().decompressobj
    return new


def _next_frame(file: BinaryIO, suffix: str, start: int, size: int) -> int | None:
    """Where the next whole frame begins, if there is one."""
    magic, new = MAGIC[suffix], _decoders(suffix)
    overlap = len(magic) - 1
    for position in range(start, size, _CHUNK):
        file.seek(position)
        window = file.read(_CHUNK + overlap)
        found = window.find(magic)
        while found >= 0:
            try:
                _read_frame(file, new(), position + found)
            except (Damaged, Unfinished):
                found = window.find(magic, found + 1)
            else:
                return position + found
    return None
