"""Tests of locks on files."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from llm_coop_envs.errors import RunError
from llm_coop_envs.storage.lock import FileLock, lock, unlock

HOLD = (
    "import sys, time; from pathlib import Path; from llm_coop_envs.storage.lock import FileLock; "
    "held = FileLock(Path(sys.argv[1])); print(held.take(), flush=True); time.sleep(60)"
)


def test_one_holder_at_a_time(tmp_path: Path) -> None:
    with FileLock(tmp_path / "a") as first, FileLock(tmp_path / "a") as other:
        assert first.take() is True
        assert other.take() is False
        assert other.take(shared=True) is False
    with FileLock(tmp_path / "a") as third:
        assert third.take() is True


def test_shared_locks_stand_side_by_side_and_keep_an_exclusive_one_out(tmp_path: Path) -> None:
    with FileLock(tmp_path / "a") as first, FileLock(tmp_path / "a") as other, FileLock(tmp_path / "a") as third:
        assert first.take() is True
        assert first.take(shared=True) is True
        assert other.take(shared=True) is True
        assert third.take() is False


def test_unlocking_lets_the_next_one_in(tmp_path: Path) -> None:
    descriptors = [os.open(tmp_path / "a", os.O_RDWR | os.O_CREAT) for _ in range(2)]
    assert lock(descriptors[0]) is True
    unlock(descriptors[0])
    assert lock(descriptors[1], wait=True) is True
    for descriptor in descriptors:
        os.close(descriptor)


def test_the_lock_of_a_killed_process_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(path)], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    with holder, FileLock(path) as mine:
        assert holder.stdout.readline() == "True\n"
        assert mine.take() is False
        holder.kill()
        holder.wait()
        assert mine.take() is True


def test_a_folder_without_locks_is_told_from_a_held_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "no locks available")

    with FileLock(tmp_path / "a") as lock:
        monkeypatch.setattr(fcntl, "flock", refuse)
        assert lock.take() is None


def test_a_file_that_cannot_be_opened_is_explained(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot be written"):
        FileLock(tmp_path / "missing" / "a")
