"""Tests of the one run folder, with a kind of its own."""

import dataclasses
import json
import os
import subprocess
import sys
from typing import ClassVar

import pytest
from small import write_manifest

import llm_coop_envs
from llm_coop_envs.errors import RunError
from llm_coop_envs.storage import folder
from llm_coop_envs.storage.folder import (
    COMPLETE,
    FORMAT,
    INTERRUPTED,
    RUNNING,
    RunFolder,
    chosen_folder,
    digest_of,
    kind_of,
    new_folder,
    versions,
)
from llm_coop_envs.storage.lock import lock_folder

PLAN = {"seed": 3, "settings": {"rates": (0.1, 0.2), "name": "x"}}


EMPTY = {"format": FORMAT, "kind": "toys", "digest": "", "status": "", "sessions": [], "files": {}}


@dataclasses.dataclass(kw_only=True)
class Toys(RunFolder):
    kind: ClassVar[str] = "toys"

    def _check(self) -> None:
        _ = self.manifest["settings"]


class Bricks(Toys):
    kind = "bricks"


def test_a_run_is_made_and_found_again(tmp_path):
    run = Toys.make(tmp_path / "run", PLAN, colour="red")
    assert (run.manifest["format"], run.manifest["kind"], run.manifest["status"]) == (FORMAT, "toys", RUNNING)
    assert (run.manifest["seed"], run.manifest["colour"], run.manifest["sessions"]) == (3, "red", [])
    again = Toys.make(tmp_path / "run", PLAN, colour="blue")
    assert again.manifest == run.manifest == Toys.open(tmp_path / "run").manifest
    assert kind_of(tmp_path / "run") == "toys"


@pytest.mark.parametrize(
    ("other", "words"),
    [
        ({**PLAN, "seed": 4}, "seed is 3 there and 4 here"),
        ({**PLAN, "settings": {"rates": (0.1, 0.3), "name": "x"}}, "settings.rates.1 is 0.2 there and 0.3 here"),
        (
            {**PLAN, "settings": {"rates": (0.1,), "name": "x"}},
            r"settings.rates is \[0.1, 0.2\] there and \[0.1\] here",
        ),
        ({**PLAN, "more": 1}, "more is None there and 1 here"),
        ({"seed": 3}, "written by another version"),
    ],
)
def test_it_is_not_continued_as_another(tmp_path, other, words):
    Toys.make(tmp_path, PLAN)
    with pytest.raises(RunError, match=f"holds a run of kind 'toys' with other settings .{words}.; choose another"):
        Toys.make(tmp_path, other)


def test_it_is_not_continued_as_another_kind(tmp_path):
    Toys.make(tmp_path, PLAN)
    for use in (Bricks.open, lambda folder: Bricks.make(folder, PLAN)):
        with pytest.raises(RunError, match="holds a run of kind 'toys', not 'bricks'"):
            use(tmp_path)


def test_an_older_format_is_refused(tmp_path):
    Toys.make(tmp_path, PLAN)
    for old in (FORMAT - 1, None):
        write_manifest(tmp_path, format=old)
        with pytest.raises(RunError, match=f"has format {old}, this version of llm-coop-envs reads format {FORMAT}"):
            Toys.open(tmp_path)
        assert kind_of(tmp_path) is None


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "damaged"),
        ("[]", "no JSON object"),
        ({"format": FORMAT, "kind": "toys"}, r"damaged \(digest is missing"),
        ({**EMPTY, "sessions": 3}, r"damaged \(sessions must be of type list"),
        (EMPTY, r"damaged \(KeyError\('settings'"),
        (json.dumps({**EMPTY, "settings": {}}), r"damaged \(KeyError\('check'"),
        (json.dumps({**EMPTY, "settings": {}, "check": "0"}), r"damaged \(it is not what was written\)"),
    ],
)
def test_a_damaged_manifest_is_named(tmp_path, content, words):
    if isinstance(content, str):
        (tmp_path / "run.json").write_text(content)
    else:
        write_manifest(tmp_path, content)
    for use in (Toys.open, lambda folder: Toys.make(folder, PLAN)):
        with pytest.raises(RunError, match=rf"run\.json: .*{words}.*in a new folder"):
            use(tmp_path)


def test_folders_that_are_none(tmp_path):
    with pytest.raises(RunError, match=r"is no run folder \(there is no run.json in it\)"):
        Toys.open(tmp_path)
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(RunError, match=r"neither empty nor a run folder \(it holds thesis\.tex\)"):
        Toys.make(tmp_path, PLAN)
    for path in (tmp_path / "thesis.tex", tmp_path / "thesis.tex" / "below"):
        with pytest.raises(RunError, match="cannot be written"):
            Toys.make(path, PLAN)


def test_a_session_says_how_it_ended(tmp_path):
    run = Toys.make(tmp_path, PLAN)
    with run.lock(), run.session(command="x") as session:
        session["far"] = 3
        run.write(done=3)
        assert Toys.open(tmp_path).manifest["sessions"] == [session]
        assert Toys.open(tmp_path).manifest["status"] == RUNNING
    assert run.complete
    (entry,) = Toys.open(tmp_path).manifest["sessions"]
    assert (entry["command"], entry["far"], entry["versions"]) == ("x", 3, versions())
    assert entry["started"] <= entry["ended"]
    with pytest.raises(KeyboardInterrupt), run.session():
        raise KeyboardInterrupt
    assert Toys.open(tmp_path).manifest["status"] == INTERRUPTED
    assert len(run.manifest["sessions"]) == 2
    run.end(0, COMPLETE, {"more": 1}, done=4)
    assert Toys.open(tmp_path).manifest == run.manifest
    assert (run.manifest["sessions"][0]["more"], run.manifest["done"]) == (1, 4)


HOLD = """
import sys, time
from pathlib import Path
from llm_coop_envs.storage.lock import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_second_writer_is_refused_until_the_first_one_is_gone(tmp_path):
    run = Toys.make(tmp_path, PLAN)
    with subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(RunError, match="another process is writing this run"), run.lock():
            pass
        leftover = tmp_path / ".a.txt.1.partial"
        leftover.write_text("half")
        holder.kill()
        holder.wait()
        with run.lock():
            assert not leftover.exists()


def test_every_flipped_bit_of_a_manifest_is_found(tmp_path):
    Toys.make(tmp_path, PLAN, title="no talk")
    path = tmp_path / "run.json"
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        with pytest.raises(RunError, match=r"run\.json"):
            Toys.open(tmp_path)


def test_files_are_known_again(tmp_path):
    class Growing(Toys):
        growing = "log/"

    run = Growing.make(tmp_path, PLAN)
    (tmp_path / "log").mkdir()
    plain, log = tmp_path / "one", tmp_path / "log" / "a"
    plain.write_bytes(b"12345")
    log.write_bytes(b"first\n")
    with run.lock():
        run.end(run.begin(), INTERRUPTED, files=run.fingerprints(plain, log))
    run = Growing.open(tmp_path)
    assert run.describe_damage() == []
    log.write_bytes(b"first\nand more")
    assert run.describe_damage() == []
    log.write_bytes(b"First\nand more")
    assert run.describe_damage("log/") == [f"{log}: is not what this run wrote (its bytes are others)"]
    log.write_bytes(b"fi")
    assert run.describe_damage() == [f"{log}: is not what this run wrote (it had 6 bytes, now 2)"]
    log.write_bytes(b"first\nand more")
    run.write(status=COMPLETE)
    assert run.describe_damage() == [f"{log}: is not what this run wrote (it had 6 bytes, now 14)"]
    plain.unlink()
    (gone,) = run.describe_damage("one")
    assert "was written, and cannot be read now" in gone


def test_a_file_of_another_size_is_not_read(tmp_path, monkeypatch):
    run = Toys.make(tmp_path, PLAN)
    path = tmp_path / "one"
    path.write_bytes(b"12345")
    run.write(files=run.fingerprints(path))
    os.truncate(path, 1 << 35)  # a sparse one: it takes no space, and minutes to read
    monkeypatch.setattr(folder, "fingerprint", lambda *_: pytest.fail("it was read"))
    assert run.describe_damage() == [f"{path}: is not what this run wrote (it had 5 bytes, now {1 << 35})"]
    os.truncate(path, 1 << 37)
    (refused,) = run.describe_damage()
    assert "more than the 68,719,476,736 that are read" in refused


def test_whoever_waited_sees_what_the_other_did(tmp_path):
    first, other = Toys.make(tmp_path, PLAN), Toys.make(tmp_path, PLAN)
    first.write(done=7)
    with other.lock():
        assert other.manifest["done"] == 7
    write_manifest(tmp_path, digest=digest_of({}))
    with pytest.raises(RunError, match="another process began another run there"), other.lock():
        pass


def test_shared_locks(tmp_path):
    two = lock_folder(tmp_path, shared=True), lock_folder(tmp_path, shared=True)
    with two[0], two[1], pytest.raises(RunError, match="another process"), lock_folder(tmp_path):
        pass
    with lock_folder(tmp_path), pytest.raises(RunError, match="does not share it"), lock_folder(tmp_path, shared=True):
        pass


def test_new_folders_are_numbered(tmp_path):
    assert [new_folder("a", tmp_path / "runs").name for _ in range(3)] == ["a-1", "a-2", "a-3"]
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        new_folder("a", tmp_path / "file")


def test_a_new_folder_goes_again_if_nothing_came_into_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with chosen_folder(None, "a") as folder:
        assert folder.is_dir()
    assert not os.listdir(tmp_path)
    with chosen_folder(None, "a") as folder:
        (folder / "file").touch()
    with chosen_folder(None, "a"):
        pass
    assert os.listdir("runs") == ["a-1"]
    (tmp_path / "given").mkdir()
    with chosen_folder(tmp_path / "given", "a") as folder:
        pass
    assert folder.is_dir()


def test_versions_name_what_is_installed():
    installed = versions()
    assert installed["llm-coop-envs"] == llm_coop_envs.__version__
    assert set(installed) >= {"python", "numpy", "pettingzoo"}
