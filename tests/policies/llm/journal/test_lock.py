import json
import os
import subprocess
import sys

import pytest
from llm_tools import ENVIRONMENT

from llm_coop_envs.policies.llm.journal import JournalError
from llm_coop_envs.policies.llm.journal import lock as room
from llm_coop_envs.policies.llm.journal.lock import PartLock


@pytest.fixture
def part(tmp_path):
    """A journal file, and a way to lock it as another process would."""
    path = tmp_path / "main.jsonl.zst"
    descriptors = []

    def lock():
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT)
        descriptors.append(descriptor)
        return PartLock(path, descriptor)

    yield path, lock
    for descriptor in descriptors:
        os.close(descriptor)


def beside(path):
    return path.with_name(path.name + ".lock")


def left_by(path, **fields):
    holder = {"token": "t", "machine": room.machine(), "host": "here", "pid": 1, **fields}
    beside(path).write_text(json.dumps(holder))


def test_one_holds_it_and_gives_it_up(part):
    path, lock = part
    first = lock()
    with pytest.raises(JournalError, match=f"process {os.getpid()} .*another part"):
        lock()
    assert first.beat()
    first.close()
    assert not beside(path).exists()
    assert lock().took_over is None


def test_a_process_that_died_holds_nothing(part):
    path, lock = part
    code = f"""
import os, signal
from llm_coop_envs.policies.llm.journal.lock import PartLock
from pathlib import Path
path = Path({str(path)!r})
PartLock(path, os.open(path, os.O_RDWR | os.O_CREAT))
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], env=ENVIRONMENT, check=False).returncode == -9
    assert beside(path).exists()
    taken = lock()
    assert "no longer writes it" in taken.took_over


def test_a_sign_of_life_from_another_machine_is_heeded(part):
    path, lock = part
    left_by(path, machine="elsewhere", host="there", pid=7)
    with pytest.raises(JournalError, match="process 7 on there is writing it"):
        lock()


def test_a_machine_that_was_silent_for_a_minute_has_lost_it(part):
    path, lock = part
    left_by(path, machine="elsewhere", host="there", pid=7)
    fresh, stale = (path.parent.stat().st_mtime - seconds for seconds in (58, 61))
    os.utime(beside(path), (fresh, fresh))
    with pytest.raises(JournalError):
        lock()
    os.utime(beside(path), (stale, stale))
    assert lock().took_over == "process 7 on there no longer writes it"


def test_a_sign_of_life_is_given_six_times_before_it_is_missed():
    assert room.STALE / room.HEARTBEAT == 6


def test_who_was_taken_over_notices(part):
    path, lock = part
    first = lock()
    left_by(path, token="other", machine="elsewhere")
    assert not first.beat()
    first.close()
    assert beside(path).exists()


def test_where_the_folder_has_no_locks_a_living_process_is_heeded(part, monkeypatch):
    path, lock = part
    monkeypatch.setattr(room, "lock", lambda descriptor: None)
    monkeypatch.setattr(room, "unlock", lambda descriptor: None)
    left_by(path, pid=os.getpid())
    with pytest.raises(JournalError):
        lock()
    left_by(path, pid=2**22 + 1)
    assert lock().took_over is not None


def test_a_spoilt_note_beside_the_journal_is_no_holder(part):
    path, lock = part
    beside(path).write_text("{")
    assert lock().took_over is None
