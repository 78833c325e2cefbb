"""What `llm-coop verify` says of a report in a run's folder."""

import shutil

import pytest
from invoking import invoke

from llm_coop_envs.reports import verification as checking
from llm_coop_envs.reports.build import write_report
from llm_coop_envs.reports.verification import report_faults
from llm_coop_envs.runs.folder import open_run

TWO = """\
name: two
conditions:
  - {name: silent, scenario: kbc, settings: {players: 3, talk: false}, policies: poisson, seeds: [0, 1]}
"""


@pytest.mark.slow
def test_the_first_row_that_does_not_follow_is_named(everything, tmp_path, monkeypatch):
    folder = shutil.copytree(everything, tmp_path / "run")
    assert report_faults(open_run(folder)) == []
    write_report(folder)
    assert report_faults(open_run(folder)) == []
    made = shutil.copytree(folder / "report", tmp_path / "made")
    # Making it takes seconds, and it is the same.
    monkeypatch.setattr(checking, "write_report", lambda run, out: shutil.copytree(made, out, dirs_exist_ok=True))
    table = next(path for path in sorted((folder / "report" / "tables").glob("*.csv")) if path.read_text().count(",1,"))
    text = table.read_text()
    table.write_text(text.replace(",1,", ",9,", 1))
    found = invoke("verify", folder)
    assert found.exit_code == 2
    assert f"{table.name}: row " in found.stderr
    assert "from the episodes" in found.stderr
    table.unlink()
    assert "is not there" in report_faults(open_run(folder))[0]
    table.write_text(text)
    (folder / "report" / "zz.csv").write_text("a\n1\n")
    assert "is no table of this report" in report_faults(open_run(folder))[0]


def test_a_report_of_a_run_that_went_on_is_old_and_not_wrong(tmp_path, study_file):
    path, folder = study_file(TWO), tmp_path / "run"
    for words in (("run", path, "--limit", 1, "-o", folder), ("report", folder, "--partial"), ("run", folder)):
        assert invoke(*words).exit_code == 0
    verified = invoke("verify", folder)
    assert verified.exit_code == 0, verified.stderr
    assert "Not checked: the report (it is of 1 of 2 episodes; llm-coop report" in verified.stderr
    episodes = folder / "report" / "episodes.csv"
    episodes.write_text(episodes.read_text().replace("silent", "loud"))
    assert invoke("verify", folder).exit_code == 2
