"""Several processes that write one run."""

import asyncio
import signal
import subprocess
import sys

import pytest
from llm_tools import ENVIRONMENT
from model_studies import SHORT, answering, asking, play, study_with_model
from small import command, contents, small_study

from llm_coop_envs.errors import RunError
from llm_coop_envs.policies.llm.chat import ClaimLost
from llm_coop_envs.policies.llm.journal import JournalError, read_run
from llm_coop_envs.runs.claims import Claims
from llm_coop_envs.runs.folder import make_run, open_run
from llm_coop_envs.runs.model_access import ModelAccess
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.storage import lease
from llm_coop_envs.storage.folder import COMPLETE
from llm_coop_envs.storage.lock import lock_folder

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs file locks")
# Sixteen conversations, each of some dozens of questions.
MANY = SHORT.replace("seeds: [0, 1]", "episodes: 8").replace("    seeds: [0]\n", "    seeds: [0, 1, 2]\n")


@pytest.fixture
def run(tmp_path):
    return make_run(small_study(), tmp_path / "run")


def test_an_episode_is_claimed_once(run):
    one, other = Claims(run, "a"), Claims(run, "b")
    assert one.claim((0, 1))
    assert one.claim((0, 1))
    assert not other.claim((0, 1))
    assert other.claim((0, 2))
    assert one.count_elsewhere() == other.count_elsewhere() == 1


def test_what_a_part_left_goes_to_those_that_start_later(tmp_path):
    run = make_run(study_with_model(), tmp_path / "run")
    seeds = [(0, seed) for seed in run.conditions[0].seeds]
    gone, playing = Claims(run, "a"), Claims(run, "b")
    gone.claim(seeds[0])
    gone.close()
    # This one read its journal while the other was still writing answers: it must not ask them again.
    assert not playing.claim(seeds[0])
    later = Claims(run, "c")
    later.take_over(seeds)
    assert later.claim(seeds[0])
    assert playing.count_elsewhere() == 1


def test_a_written_episode_is_claimed_by_nobody(run, tmp_path):
    done = tmp_path / "done"
    run_study(small_study(), done)
    finished = open_run(done)
    claims = Claims(finished, "a")
    assert not claims.claim((0, 1))
    assert not list((done / "claims").rglob("[0-9]*"))


def test_the_same_part_twice_is_refused(tmp_path):
    study = study_with_model()
    with answering() as server:
        journal_open = ModelAccess(part="a").open(tmp_path / "run", asking(server).endpoints(study), print)

        async def twice():
            async with journal_open:
                with pytest.raises(JournalError, match="is writing it"):
                    async with ModelAccess(part="a").open(tmp_path / "run", [], print):
                        pass

        asyncio.run(twice())


def test_a_run_that_is_not_shared_is_left_alone(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    with lock_folder(folder), pytest.raises(RunError, match="--part"), lock_folder(folder, shared=True):
        pass
    two = lock_folder(folder, shared=True), lock_folder(folder, shared=True)
    with two[0], two[1], pytest.raises(RunError, match="another process"), lock_folder(folder):
        pass


def test_a_part_that_was_silent_too_long_does_not_write(run, monkeypatch):
    one = Claims(run, "a")
    assert one.claim((0, 1))
    name = f"{run.conditions[0].name}/1"
    assert one.number(name) == 0, "nobody disputed it"
    held = next((run.folder / "claims").rglob("1.1"))
    held.with_name("1.2").write_text(held.read_text())
    assert one.number(name) == 0, "its own heartbeat is young"
    monkeypatch.setattr(lease, "TRUST", 0.0)
    for _ in range(2):
        with pytest.raises(ClaimLost, match="/1: another part took it over"):
            one.number(name)
        monkeypatch.undo()  # what was lost stays lost
    one.close()


def test_rules_are_shared_too(run, tmp_path):
    """What another part holds is left to it; what a part left that is gone is played, whoever comes."""
    left, held = Claims(run, "gone"), Claims(run, "b")
    left.claim((0, 1))
    left.close()
    held.claim((0, 2))
    first = run_study(small_study(), run.folder, access=ModelAccess(part="a"))
    assert (first.complete, first.elsewhere) == (False, 1)
    held.close()
    last = run_study(small_study(), run.folder, access=ModelAccess(part="c"), workers=2)
    assert last.complete
    assert last.played == 1
    run_study(small_study(), tmp_path / "whole")
    assert contents(run.folder) == contents(tmp_path / "whole")


def test_a_part_that_looks_just_before_another_ends_the_run_has_not_stopped(run, monkeypatch):
    other = Claims(run, "b")
    other.claim((0, 2))

    def count_elsewhere(claims):
        other.close()
        assert run_study(small_study(), run.folder, access=ModelAccess(part="c")).complete
        return 0

    monkeypatch.setattr(Claims, "count_elsewhere", count_elsewhere)
    assert run_study(small_study(), run.folder, access=ModelAccess(part="a")).complete
    assert open_run(run.folder).complete


@pytest.mark.slow
@pytest.mark.rare
def test_two_processes_share_a_run_and_one_is_killed(tmp_path, study_file):
    """Both play; one is killed; the other ends its share; the killed one is started again and ends the run."""
    folder, path = tmp_path / "run", study_file(MANY)
    with answering(latency=0.02) as server:

        def begin(part):
            flags = [
                "--policy",
                "llm:scripted",
                "--base-url",
                server.base_url,
                "--part",
                part,
                "--episodes-at-once",
                "3",
            ]
            return subprocess.Popen(
                command("run", path, "-o", folder, *flags), stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
            )

        one, other = begin("a"), begin("b")
        while sum(server.asked.values()) < 250:
            with pytest.raises(subprocess.TimeoutExpired):
                one.wait(0.02)
        other.send_signal(signal.SIGKILL)
        _, said = one.communicate(timeout=120)
        other.communicate()
        assert not open_run(folder).complete
        assert one.returncode == 130, said  # what the killed one began is left
        again = begin("b")
        _, said = again.communicate(timeout=120)
        assert again.returncode == 0, said
        asked = dict(server.asked)
        play(server, tmp_path / "whole", MANY)
    run = open_run(folder)
    assert run.manifest["status"] == COMPLETE
    assert len(run.manifest["sessions"]) == 3
    whole = contents(tmp_path / "whole")
    assert contents(folder) == whole
    reports = read_run(folder)
    assert [report.path.name.split(".")[0] for report in reports] == ["a", "b"]
    assert all(report.answers for report in reports)
    assert sum(report.answers for report in reports) == len(asked)
    assert not any(report.double for report in reports)
    assert sum(asked.values()) - len(asked) <= sum(report.lost for report in reports)


def test_a_part_does_not_play_what_another_began_and_left_while_it_looked(tmp_path, monkeypatch):
    run = make_run(study_with_model(), tmp_path / "run")
    task = 0, run.conditions[0].seeds[0]
    slow, quick = Claims(run, "a"), Claims(run, "b")

    def is_whole(claims, _):
        if claims is slow:  # stopped in the middle; what was written meanwhile is not shown yet
            quick.claim(task)
            quick.release(task)

    monkeypatch.setattr(Claims, "_is_whole", is_whole)
    assert not slow.claim(task)


def test_what_was_written_while_a_part_waited_is_not_taken_over(tmp_path, monkeypatch):
    run = make_run(study_with_model(), tmp_path / "run")
    task = 0, run.conditions[0].seeds[0]
    other, late = Claims(run, "b"), Claims(run, "a")
    other.claim(task)
    settle = lease.Lease.settle_holder

    def settle_and_leave(one):
        holder = settle(one)
        other.release(task)  # the episode is written, which a shared folder shows late
        return holder

    monkeypatch.setattr(lease.Lease, "settle_holder", settle_and_leave)
    late.take_over([task])
    assert not late.claim(task)


def test_a_damaged_episode_makes_room_and_a_whole_one_stays(run, tmp_path):
    run_study(small_study(), tmp_path / "done")
    done = open_run(tmp_path / "done")
    name, seed = done.conditions[0].name, done.conditions[0].seeds[0]
    path = done.events_path(name, seed)
    assert not Claims(done, "a").claim((0, seed))
    assert path.exists()
    path.write_bytes(b"damaged")
    assert Claims(done, "a").claim((0, seed))
    assert not path.exists()
