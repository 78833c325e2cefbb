"""A folder of files that another program wrote: bounded, inside the folder, and each fingerprinted when it is read."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from llm_coop_envs.errors import RunError
from llm_coop_envs.util.opening import DAMAGED, parse_json, read_file
from llm_coop_envs.util.paths import StrPath
from llm_coop_envs.util.shapes import check_shape, cut_to

#: The most files of one name that are looked for, and the most bytes that are read of all files together.
MOST_FILES, MOST_BYTES = 20_000, 1 << 31
_COMMIT = re.compile(r"[0-9a-f]{40}")


class ForeignFolder:
    """Reads files of a folder.

    Args:
        folder: the folder.
        writer: the program that wrote it, for errors.

    Attributes:
        folder: the folder.
        files: size and SHA-256 of each file that was read, by its path inside the folder.

    Raises:
        RunError: it is no folder.
    """

    def __init__(self, folder: StrPath, writer: str) -> None:
        folder = Path(folder)
        if not folder.is_dir():
            raise RunError(f"{folder}: is no folder; give the one that {writer} wrote")
        self.folder, self.writer = folder, writer
        self.files: dict[str, str] = {}
        self._bytes = 0

    def find(self, pattern: str) -> list[str]:
        """The paths inside the folder, in order, of all files with such a name; links to folders are not followed.

        Raises:
            RunError: there is none, or too many.
        """
        try:
            found = sorted(self._walk(pattern))
        except RecursionError as error:
            raise RunError(f"{self.folder}: has folders in folders in folders, too many; give a part of it") from error
        if not found:
            raise RunError(f"{self.folder}: holds no {pattern}; give the folder that {self.writer} wrote")
        return found

    def _walk(self, pattern: str) -> Iterator[str]:
        count = 0
        for parent, _, names in os.walk(self.folder):
            for name in fnmatch.filter(names, pattern):
                count += 1
                if count > MOST_FILES:
                    raise RunError(f"{self.folder}: holds more than {MOST_FILES:,} {pattern}; give a part of it")
                path = Path(parent, name).relative_to(self.folder).as_posix()
                try:
                    path.encode()
                except UnicodeEncodeError as error:
                    raise RunError(f"{self.folder}: the name of {path!r} is no text; rename it") from error
                yield path

    def json(self, name: str, shape: Any) -> Any:
        """A file of JSON of this shape (`util.shapes`).

        Raises:
            RunError: it cannot be read, or is something else.
        """
        return self._parse(name, self._read(name), shape)

    def lines(self, name: str, shape: Any) -> list[Any]:
        """The lines of a file, each JSON of this shape.

        Raises:
            RunError: as for `json`; the sentence names the line.
        """
        lines = self._read(name).splitlines()
        return [self._parse(f"{name}, line {number}", line, shape) for number, line in enumerate(lines, 1) if line]

    def check(self, name: str, data: Any, shape: Any) -> Any:
        """Check the shape of a part of what was read from a file.

        Returns:
            What the shape names of it: the rest takes memory.

        Raises:
            RunError: it is another one.
        """
        try:
            check_shape(data, shape)
        except ValueError as error:
            raise self.refuse(name, f"is of another form ({error})") from error
        return cut_to(data, shape)

    def refuse(self, place: str, reason: str) -> RunError:
        """An error that names a place in the folder and what is wrong there."""
        return RunError(f"{self.folder / place}: {reason}; this version reads what {self.writer} wrote")

    def _read(self, name: str) -> bytes:
        path = self.folder / name
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(self.folder)):
            raise self.refuse(name, "is a link that leads out of the folder")
        try:
            content = read_file(path)
        except OSError as error:
            raise self.refuse(name, f"cannot be read ({error.strerror or error})") from error
        self._bytes += len(content)
        if self._bytes > MOST_BYTES:
            raise RunError(f"{self.folder}: has more than {MOST_BYTES:,} bytes to read; give a part of it")
        self.files[name] = f"{len(content)} {hashlib.sha256(content).hexdigest()}"
        return content

    def _parse(self, place: str, content: bytes, shape: Any) -> Any:
        try:
            data = parse_json(content)
            check_shape(data, shape)
        except DAMAGED as error:
            raise self.refuse(
                place, f"is of another form ({' '.join(str(error).split())[:200] or 'too large'})"
            ) from error
        return data


def commit_of(folder: Path) -> str:
    """The commit of the Git repository that a folder lies in, read from its files; empty if they do not say."""
    for parent in (folder.absolute(), *folder.absolute().parents):
        try:
            head = read_file(parent / ".git" / "HEAD", 1000).decode().strip()
            reference = head.removeprefix("ref: ")
            if reference != head and ".." not in reference:
                head = _reference(parent / ".git", reference)
        except (OSError, UnicodeDecodeError):
            continue
        return head if _COMMIT.fullmatch(head) else ""
    return ""


def _reference(git: Path, reference: str) -> str:
    if (git / reference).is_file():
        return read_file(git / reference, 1000).decode().strip()
    packed = read_file(git / "packed-refs").decode().splitlines()
    return next((line.partition(" ")[0] for line in packed if line.endswith(f" {reference}")), "")
