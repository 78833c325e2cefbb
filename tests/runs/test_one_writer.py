"""One folder has one writer, whatever is played; and workers do not outlive who started them."""

import contextlib
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
from llm_tools import ENVIRONMENT
from small import command, contents, events_in, small_study

from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.verify import verify_run

# Rules, Q-learners that learn anew before each episode, and branches after it.
STUDY = """\
name: compared
conditions:
  - name: rules
    scenario: bertrand
    preset: calvano
    settings: {talk: false, rounds: 60}
    policies: grim_trigger
    seeds: [0, 1, 2, 3]
    after: {horizon: 10}
  - name: learners
    scenario: bertrand
    preset: calvano
    settings: {talk: false, rounds: 60}
    policies: {name: q_learning, options: {beta: 0.001, window: 1000}}
    seeds: [0, 1, 2]
    after: {horizon: 10}
"""
ENDLESS = """\
name: endless
conditions:
  - name: learners
    scenario: bertrand
    preset: calvano
    settings: {talk: false, rounds: 60}
    policies: {name: q_learning, options: {window: 1250000000}}
    seeds: [0, 1]
"""
SECONDS = 20  # busy machines; it takes milliseconds


def begin(path, folder, workers=2):
    return subprocess.Popen(
        command("run", path, "-o", folder, "--workers", str(workers)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )


def lives(pid):
    try:
        return " Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


def until(what, seconds=120):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def children_of(pid):
    with contextlib.suppress(OSError):
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(one) for one in found if "spawn_main" in Path(f"/proc/{one}/cmdline").read_text()]
    return []


@pytest.mark.slow
def test_of_many_processes_on_one_folder_one_writes(tmp_path, study_file):
    pytest.importorskip("numba")
    path, folder = study_file(STUDY), tmp_path / "run"
    run_study(small_study(STUDY), tmp_path / "alone")
    racing = [begin(path, folder) for _ in range(3)]
    said = [one.communicate(timeout=300)[1] for one in racing]
    codes = [one.returncode for one in racing]
    assert codes.count(0) >= 1
    assert set(codes) <= {0, 2}
    refused = [text for text, code in zip(said, codes, strict=True) if code == 2]
    assert all("another process is writing this run" in text for text in refused), refused
    assert "Traceback" not in "".join(said)
    run = open_run(folder)
    # Whoever came when all was done found nothing to do.
    played = [int(text.split("Done: ")[1].split()[0]) for text, code in zip(said, codes, strict=True) if code == 0]
    assert sorted(played) == [0] * (len(played) - 1) + [run.total]
    assert contents(folder) == contents(tmp_path / "alone")
    assert verify_run(folder).faults == []


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.rare
def test_workers_end_with_a_killed_parent_even_while_they_learn(tmp_path, study_file):
    pytest.importorskip("numba")
    path, folder = study_file(ENDLESS), tmp_path / "run"
    parent = begin(path, folder)
    workers = []
    try:
        until(lambda: len(children_of(parent.pid)) == 2 or parent.poll() is not None)
        workers = children_of(parent.pid)
        assert len(workers) == 2, parent.communicate()
        # They have begun to learn: nothing but the compiled loop takes so much time.
        ticks = os.sysconf("SC_CLK_TCK")
        until(
            lambda: all(sum(map(int, Path(f"/proc/{w}/stat").read_text().split()[13:15])) > 4 * ticks for w in workers)
        )
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        until(lambda: not any(map(lives, workers)), SECONDS)
    finally:
        for process in (parent.pid, *workers):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        parent.communicate()
    assert not events_in(folder)
    # The folder is free for the next one.
    assert not open_run(folder).complete
    with open_run(folder).lock():
        pass
