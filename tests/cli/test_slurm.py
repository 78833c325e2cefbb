"""Job arrays: with a stand-in for sbatch that plays the array's tasks one after the other, on this machine."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from llm_tools import ENVIRONMENT
from small import command, contents, learning_cells

from llm_coop_envs.baselines.q_learning.reproduce.studies import STUDIES
from llm_coop_envs.errors import RunError
from llm_coop_envs.runs.folder import open_run
from llm_coop_envs.runs.runner import run_study
from llm_coop_envs.runs.slurm import check_options, submit, write_script
from llm_coop_envs.studies.study import load_study

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="SLURM runs on Unix")
STUDY = """\
name: two
conditions:
  - {name: a, scenario: kbc, settings: {players: 3, talk: false}, policies: level_k, seeds: [1, 2]}
  - {name: b, scenario: kbc, settings: {players: 4, talk: false}, policies: poisson, seeds: [1, 2]}
"""
SBATCH = """\
#!/bin/bash
# Takes --parsable and a script, as sbatch does; reads the array's last index there.
last=$(sed -n 's/^#SBATCH --array=0-//p' "$2")
cd "$(sed -n 's/^#SBATCH --chdir=//p' "$2")"
for ((task = 0; task <= last; task++)); do
    SLURM_ARRAY_TASK_ID=$task bash "$2" >> "$(dirname "$2")/$task.log" 2>&1 || exit 1
done
echo "77;cluster"
"""


@pytest.fixture
def sbatch(tmp_path, monkeypatch):
    """A stand-in, first on the path."""

    def install(text=SBATCH):
        folder = tmp_path / "bin"
        folder.mkdir()
        (folder / "sbatch").write_text(text)
        (folder / "sbatch").chmod(0o755)
        path = f"{folder}{os.pathsep}{os.environ['PATH']}"
        monkeypatch.setenv("PATH", path)
        return {**ENVIRONMENT, "PATH": path}

    return install


def llm_coop(*words, env=ENVIRONMENT, cwd=None):
    return subprocess.run(command(*words), capture_output=True, text=True, env=env, cwd=cwd, check=False)


def test_an_array_plays_a_study(sbatch, study_file, tmp_path):
    path, folder = study_file(STUDY), tmp_path / "it's a run"
    done = llm_coop("slurm", path, "--array", "2", "--workers", "1", "-o", folder, env=sbatch())
    assert (done.returncode, "Job 77: 2 parts play" in done.stderr) == (0, True), done.stderr
    run = open_run(folder)
    assert run.complete
    assert len(run.manifest["sessions"]) == 2
    llm_coop("run", path, "-o", tmp_path / "whole")
    assert contents(folder) == contents(tmp_path / "whole")
    shown = llm_coop("slurm", path, "--array", "5", "--sbatch=--time=1:00", "-o", folder, "--print")
    assert "#SBATCH --array=0-4\n" in shown.stdout
    assert "#SBATCH --time=1:00\nexec " in shown.stdout


@pytest.mark.slow
@pytest.mark.rare
def test_thirty_cells_of_learners_are_shared_by_an_array(sbatch, study_file, tmp_path):
    pytest.importorskip("numba")
    from llm_coop_envs.baselines.q_learning.learn.sessions import run_session
    from llm_coop_envs.baselines.q_learning.learn.settings import QLearningSettings

    path, folder = study_file(learning_cells()), tmp_path / "run"
    done = llm_coop("slurm", path, "--array", "2", "--workers", "1", "-o", folder, env=sbatch())
    assert done.returncode == 0, done.stderr
    run = open_run(folder)
    assert (run.complete, run.total, len(run.manifest["sessions"])) == (True, 60, 2)
    run_study(load_study(str(path)), tmp_path / "whole")
    assert contents(folder) == contents(tmp_path / "whole")
    # An episode is the session of its number, as the program of Q-learning alone runs it.
    options = run.conditions[7].players[0].options
    session = run_session(QLearningSettings(**options), 3, 1)
    header, _ = run.read_events("cell-7", run.conditions[7].seeds[1])
    assert header["measures"]["learned_periods"] == session.periods < 400


def test_the_grid_of_thirty_cells_is_a_study():
    study = load_study(str(Path(__file__).parents[2] / "examples" / "calvano_grid.yaml"))
    found = [one.players[0].options for one in study.conditions]
    cells = [one.settings for one in STUDIES["alpha_beta"].variants]
    assert [(one["alpha"], one["beta"]) for one in found] == [(one.alpha, one.beta) for one in cells]
    assert {len(one.seeds) for one in study.conditions} == {1000}
    market = study.conditions[0].spec.environment(**study.conditions[0].settings).settings
    assert (market.market, market.grids) == (cells[0].market.market, cells[0].market.grids)


def test_without_slurm_the_script_is_shown(study_file, tmp_path):
    env = {**ENVIRONMENT, "PATH": str(tmp_path)}
    done = llm_coop("slurm", study_file(STUDY), "--array", "2", "-o", tmp_path / "run", env=env)
    assert done.returncode == 0
    assert done.stdout.startswith("#!/bin/bash\n#SBATCH --job-name=run\n")
    assert "no sbatch on this machine" in done.stderr
    assert not open_run(tmp_path / "run").complete


def test_what_cannot_be_submitted_is_said(sbatch, tmp_path):
    with pytest.raises(RunError, match="must be an option of sbatch"):
        check_options(["--time=1\nrm -rf /"])
    sbatch('#!/bin/sh\necho "sbatch: error: invalid partition" >&2\nexit 1\n')
    with pytest.raises(RunError, match=r"does not take .*parts\.sh: sbatch: error: invalid partition"):
        submit(write_script(tmp_path, ["run"], 2))


def test_a_study_that_cannot_be_played_is_refused_first(study_file, tmp_path):
    bad = study_file(STUDY.replace("poisson", "poison"))
    done = llm_coop("slurm", bad, "--array", "2", "-o", tmp_path / "run")
    assert done.returncode == 2
    assert "did you mean 'poisson'" in done.stderr
    assert not (tmp_path / "run").exists()
