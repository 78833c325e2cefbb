import json
import multiprocessing
import os
import subprocess
import sys
import time

import pytest
from llm_tools import ENVIRONMENT

from llm_coop_envs.errors import RunError
from llm_coop_envs.storage import lease as room
from llm_coop_envs.storage.lease import HEARTBEAT, STALE, TRUST, WATCH, Lease, check_leases, hold_lease
from llm_coop_envs.storage.machine import Machine


class Turned(Machine):
    """This machine, its clock turned by hand."""

    seconds_passed = 0.0

    def now(self):
        return self.seconds_passed

    def later(self, seconds):
        self.seconds_passed += seconds

    sleep = later


def left_by(path, **fields):
    """What a holder elsewhere left, with number 1."""
    file = path.with_name(path.name + ".1")
    file.write_text(json.dumps({"name": "b", "token": "t", "machine": "m", "host": "there", "pid": 7, **fields}))
    return file


def test_one_holds_it_and_gives_it_up(tmp_path):
    first, other = Lease(tmp_path / "it", "a"), Lease(tmp_path / "it", "b")
    assert first.holder() is None
    assert first.take()
    assert not other.take()
    assert first.beat()
    assert not other.beat()
    assert other.holder().name == "a"
    assert other.holder().lives
    other.release()
    assert first.beat()
    first.release()
    assert not list(tmp_path.iterdir())
    assert other.take()


def test_who_leaves_leaves_the_name(tmp_path):
    first, other = Lease(tmp_path / "it", "a"), Lease(tmp_path / "it", "b")
    first.take()
    first.leave()
    assert not first.beat()
    assert (other.holder().name, other.holder().lives) == ("a", False)
    assert other.take()
    assert other.holder().name == "b"
    other.release()
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(sys.platform == "win32", reason="there a dead process is known by its silence")
def test_a_process_that_died_holds_nothing(tmp_path):
    code = f"""
import os, signal
from pathlib import Path
from llm_coop_envs.storage.lease import Lease
assert Lease(Path({str(tmp_path / "it")!r}), "dead").take()
os.kill(os.getpid(), signal.SIGKILL)
"""
    dead = subprocess.Popen([sys.executable, "-c", code], env=ENVIRONMENT)
    os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)  # dead, but nobody has asked what became of it
    mine = Lease(tmp_path / "it", "next")
    assert mine.holder().name == "dead"
    assert mine.take()
    dead.wait()


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs the times at which processes were started")
def test_another_process_of_the_same_number_is_another_one(tmp_path):
    file = left_by(tmp_path / "it", **Lease(tmp_path / "it")._this_process())
    assert not Lease(tmp_path / "it").take()
    file.write_text(json.dumps({**json.loads(file.read_text()), "started": "1"}))
    assert Lease(tmp_path / "it").take()


def test_a_machine_that_was_silent_for_a_minute_has_lost_it(tmp_path):
    file = left_by(tmp_path / "it")
    machine = Turned()
    first = Lease(tmp_path / "it", machine=machine)
    assert not first.take()
    assert first.holder().process == "process 7 on there"
    fresh, stale = (file.stat().st_mtime - seconds for seconds in (STALE - 2, STALE + 1))
    os.utime(file, (fresh, fresh))
    assert not first.take()
    os.utime(file, (stale, stale))
    assert not first.take(), "the folder's clock may be wrong: it is watched for a sign of life"
    assert first.holder().watched
    machine.later(WATCH)
    os.utime(file, (stale + 1, stale + 1))
    assert first.holder().lives, "that was one"
    machine.later(WATCH)
    assert first.take()
    assert (file.read_bytes(), first.claim) == (b"", 2)
    assert STALE / HEARTBEAT == 6  # signs of life, before they are missed
    assert TRUST < WATCH, "a holder looks at its file before anybody takes it over"


def test_who_was_taken_over_notices(tmp_path):
    first = Lease(tmp_path / "it")
    first.take()
    path = tmp_path / "it.2"
    path.write_text((tmp_path / "it.1").read_text())
    assert not first.beat()
    first.release()
    first.leave()
    assert path.exists()


def test_a_file_that_is_just_being_written_has_a_holder(tmp_path):
    file = tmp_path / "it.1"
    file.touch()
    machine = Turned()
    mine = Lease(tmp_path / "it", machine=machine)
    assert mine.holder().name is None
    assert not mine.take()
    os.utime(file, (0, 0))
    assert mine.settle_holder().lives is False
    assert machine.seconds_passed >= WATCH
    assert mine.take()


def test_the_higher_number_gives_way_to_a_living_lower_one(tmp_path, monkeypatch):
    """Released by all and taken anew while somebody still looks at the old number."""
    machine = Turned()
    mine, other = Lease(tmp_path / "it", machine=machine), Lease(tmp_path / "it")
    file = left_by(tmp_path / "it")
    os.utime(file, (0, 0))
    mine.settle_holder()
    look, create = mine._numbers, machine.create

    def lose_time_then_create(path):
        file.unlink()
        assert other.take()
        return create(path)

    monkeypatch.setattr(machine, "create", lose_time_then_create)
    assert look() == [1]
    assert not mine.take()
    assert other.beat()


def _count(path, times):
    for _ in range(times):
        with hold_lease(path / "it"):
            number = int((path / "count").read_text())
            (path / "count").write_text(str(number + 1))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_many_take_turns(tmp_path):
    (tmp_path / "count").write_text("0")
    context = multiprocessing.get_context("fork")
    processes = [context.Process(target=_count, args=(tmp_path, 25)) for _ in range(6)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert (tmp_path / "count").read_text() == "150"
    assert [path.name for path in tmp_path.iterdir()] == ["count"]


def test_who_holds_it_for_long_shows_signs_of_life(tmp_path, monkeypatch):
    monkeypatch.setattr(room, "HEARTBEAT", 0.01)
    with hold_lease(tmp_path / "it"):
        file = tmp_path / "it.1"
        os.utime(file, (0, 0))
        for _ in range(500):
            if file.stat().st_mtime > 0:
                break
            time.sleep(0.01)
        assert file.stat().st_mtime > 0
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_carry_leases_is_refused(tmp_path, monkeypatch):
    check_leases(tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(RunError, match="cannot be written"):
        check_leases(tmp_path / "nowhere")
    create = os.open
    monkeypatch.setattr(room.os, "open", lambda path, flags, *mode: create(path, flags & ~os.O_EXCL, *mode))
    with pytest.raises(RunError, match="two processes create one file"):
        check_leases(tmp_path)


def test_a_lease_is_taken_only_after_the_holder_that_is_named(tmp_path):
    """Else a part would play what another one began and left while it looked, without knowing its answers."""
    left, other = Lease(tmp_path / "it", "a"), Lease(tmp_path / "it", "b")
    assert left.take(after="a"), "there was no holder"
    left.leave()
    assert not other.take(after="b")
    assert other.take(after="a")


def test_who_was_stopped_while_it_looked_at_its_file_looks_again(tmp_path, monkeypatch):
    machine = Turned()
    mine, other = Lease(tmp_path / "it", "a", machine), Lease(tmp_path / "it", "b")
    assert mine.take()
    machine.later(TRUST)

    def touch(path):
        if machine.now() == TRUST:  # stopped just here, for so long that another one took it over
            machine.later(45.0)
            assert other.take(is_dead=True)
        Machine.touch(machine, path)

    monkeypatch.setattr(machine, "touch", touch)
    assert not mine.holds()


def test_who_was_stopped_before_it_wrote_its_name_does_not_write_over_who_took_over(tmp_path):
    """Its file was emptied by then, and the folder does not show it the other one's yet."""
    machine, other = Turned(), Lease(tmp_path / "it", "other")
    write, names = machine.write, machine.names

    def stopped_first(descriptor, data):
        machine.later(STALE)
        assert other.take(is_dead=True)
        return write(descriptor, data)

    machine.write = stopped_first
    machine.names = lambda folder: [name for name in names(folder) if name != "it.2"]
    late = Lease(tmp_path / "it", "late", machine)
    assert not late.take()
    assert late.number is None
    assert other.beat()
