"""Runs on Ray, started on this machine."""

import os
import signal
import subprocess
import sys
import time

import pytest
from llm_tools import ENVIRONMENT
from model_studies import SHORT, answering, play
from small import command, contents, learning_cells

from llm_coop_envs.errors import RunError
from llm_coop_envs.policies.llm.journal import read_run
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.ray_parts import run_on_ray
from llm_coop_envs.studies.study import parse_study

pytest.importorskip("ray", reason="needs the extra 'ray'")
pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(sys.platform == "win32", reason="parts of a run are refused on Windows"),
]
RULES = """\
name: rules
conditions:
  - {name: kbc, scenario: kbc, settings: {players: 4}, policies: poisson, episodes: 6}
  - {name: bertrand, scenario: bertrand, settings: {rounds: 20}, policies: price_matching, episodes: 6}
"""


def on_ray(path, folder, workers, *more):
    words = ("run", path, "-o", folder, "--ray", "local", "--workers", str(workers), *more)
    return subprocess.Popen(command(*words), stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)


@pytest.mark.parametrize(("workers", "study"), [(2, RULES), (4, RULES), (2, learning_cells())])
def test_the_same_bytes_as_without_ray(tmp_path, study_file, workers, study):
    path = study_file(study)
    # First, so that learners are compiled once and not in every worker.
    subprocess.run(command("run", path, "--workers", "1", "-o", tmp_path / "whole"), env=ENVIRONMENT, check=True)
    session = on_ray(path, tmp_path / "ray", workers)
    _, said = session.communicate(timeout=300)
    assert session.returncode == 0, said
    assert contents(tmp_path / "ray") == contents(tmp_path / "whole")
    run = open_run(tmp_path / "ray")
    assert len(run.manifest["sessions"]) == workers + 1
    assert f"{run.total} episodes; {workers} processes; run folder" in said
    assert f"Done: {run.total} episodes in" in said
    assert said.count("Study ") == 1


def test_a_worker_that_is_killed_is_replaced_and_loses_no_answer(tmp_path, study_file):
    many = SHORT.replace("seeds: [0, 1]", "episodes: 4")
    path = study_file(many)
    with answering(latency=0.05) as server:
        flags = ("--policy", "llm:scripted", "--base-url", server.base_url, "--episodes-at-once", "2")
        session = on_ray(path, tmp_path / "ray", 2, *flags)
        while sum(server.asked.values()) < 60:
            assert session.poll() is None, session.communicate()[1]
            time.sleep(0.05)
        workers = subprocess.run(["pgrep", "-f", "ray::_play_part"], capture_output=True, text=True, check=False)
        os.kill(int(workers.stdout.split()[0]), signal.SIGKILL)
        _, said = session.communicate(timeout=300)
        assert session.returncode == 0, said
        asked = dict(server.asked)
        play(server, tmp_path / "whole", many)
    assert contents(tmp_path / "ray") == contents(tmp_path / "whole")
    reports = read_run(tmp_path / "ray")
    assert sum(report.answers for report in reports) == len(asked)
    assert not any(report.double for report in reports)
    assert sum(asked.values()) - len(asked) <= sum(report.lost for report in reports)


def test_a_driver_that_is_killed_is_resumed(tmp_path, study_file):
    path, folder = study_file(RULES.replace("episodes: 6", "episodes: 40")), tmp_path / "ray"
    session = on_ray(path, folder, 2)
    while not (folder / "events").is_dir():
        assert session.poll() is None
        time.sleep(0.05)
    session.kill()
    session.communicate()
    again = on_ray(path, folder, 2)
    _, said = again.communicate(timeout=300)
    assert again.returncode == 0, said
    assert open_run(folder).complete


def test_no_cluster_is_a_sentence(tmp_path):
    with pytest.raises(
        RunError, match=r"--ray 127.0.0.1:9: no Ray cluster is reached there .*start one with 'ray start"
    ):
        run_on_ray(parse_study(RULES, "study.yaml"), tmp_path / "run", address="127.0.0.1:9", parts=2)
