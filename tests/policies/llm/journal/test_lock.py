import json
import os

import pytest

from llm_coop_envs.policies.llm.journal import JournalError
from llm_coop_envs.policies.llm.journal.lock import PartLock
from llm_coop_envs.storage import lease
from llm_coop_envs.storage.machine import HERE


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
    return path.with_name(path.name + ".lock.1")


def left_by(path, **fields):
    beside(path).write_text(json.dumps({"token": "t", "machine": "m", "host": "there", "pid": 7, **fields}))


def test_one_holds_it_and_gives_it_up(part):
    path, lock = part
    first = lock()
    with pytest.raises(JournalError, match=f"process {os.getpid()} .*another part"):
        lock()
    assert first.beat()
    first.close()
    assert not beside(path).exists()
    assert lock().took_over is None


def test_a_sign_of_life_from_another_machine_is_heeded(part, monkeypatch):
    path, lock = part
    left_by(path)
    with pytest.raises(JournalError, match="process 7 on there is writing it"):
        lock()
    os.utime(beside(path), (0, 0))
    monkeypatch.setattr(lease, "WATCH", 0.0)
    assert lock().took_over == "process 7 on there no longer writes it"


def test_who_was_taken_over_notices(part):
    path, lock = part
    first = lock()
    left_by(path, token="other")
    assert not first.beat()
    first.close()
    assert beside(path).exists()


def test_where_the_folder_has_no_locks_the_lease_alone_decides(part, monkeypatch):
    _, lock = part
    monkeypatch.setattr(HERE, "lock", lambda descriptor: None)
    monkeypatch.setattr(HERE, "unlock", lambda descriptor: None)
    first = lock()
    with pytest.raises(JournalError, match="is writing it"):
        lock()
    first.close()
    lock()
